"""SVG elements as text; the only module that escapes untrusted text."""

import math
from xml.sax.saxutils import escape as _xml_escape

from paceline.render.safe_text import printable

_QUOTES = {'"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """``text`` without control characters, safe as content and as the value of an attribute."""
    return _xml_escape(printable(text), _QUOTES)


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate cannot be {value}")
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, *children: str, tip: str = "", **attributes: str | float) -> str:
    """``<name attributes>children</name>``.

    ``children`` are elements already; ``tip`` is text shown when pointing at the element.
    Attribute names are written with underscores (``stroke_width``, ``class_``).
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
    )
    title = f"<title>{_lines(tip)}</title>" if tip else ""
    inner = title + "".join(children)
    return f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"


def group(*children: str, class_: str) -> str:
    """Elements that share a class; nothing if there are none."""
    return element("g", *children, class_=class_) if any(children) else ""


def text(content: str, x: float, y: float, *, class_: str, anchor: str = "start") -> str:
    """``content`` at a baseline point; ``anchor`` is start, middle or end."""
    extra = {} if anchor == "start" else {"text_anchor": anchor}
    return element("text", escape(content), x=x, y=y, class_=class_, **extra)


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def document(width: float, height: float, title: str, description: str, *parts: str) -> str:
    """The drawing: size in pixels, title, and description for screen readers."""
    return element(
        "svg",
        element("title", escape(title)),
        element("desc", escape(description)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="figure",
        role="img",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
    )


def _attribute(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def _lines(tip: str) -> str:
    return "\n".join(escape(line) for line in tip.split("\n"))
