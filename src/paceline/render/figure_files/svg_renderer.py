"""Render our SVG as PDF and PNG with CairoSVG (extra ``figures``)."""

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from paceline.errors import MissingExtraError
from paceline.render.html_page import package_text

DOTS_PER_PIXEL = 2
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_HEADER_BYTES = 33
"""Length of a PNG's signature and header chunk; other chunks may follow."""


def pdf_bytes(svg: str, caption: str = "") -> bytes:
    """``svg`` as a PDF page; the document information holds its title and caption."""
    cairosvg, cairo = require_renderer()
    title, description = _texts(svg)
    base: Any = cairosvg.surface.PDFSurface

    class TitledSurface(base):  # type: ignore[misc]
        def _create_surface(self, width: float, height: float) -> Any:
            surface, *size = super()._create_surface(width, height)
            surface.set_metadata(cairo.PDF_METADATA_TITLE, title)
            surface.set_metadata(cairo.PDF_METADATA_SUBJECT, caption or description)
            return surface, *size

    rendered: bytes = TitledSurface.convert(inline_styles(svg).encode())
    return rendered


def png_bytes(svg: str, caption: str = "") -> bytes:
    """``svg`` as a PNG on white with two dots per pixel; it contains the title and caption."""
    cairosvg, _ = require_renderer()
    png: bytes = cairosvg.svg2png(
        inline_styles(svg).encode(), scale=DOTS_PER_PIXEL, background_color="white"
    )
    title, description = _texts(svg)
    dots_per_metre = round(96 * DOTS_PER_PIXEL / 0.0254)
    # Cairo writes no metadata into a PNG: pHYs has the resolution, iTXt a text in UTF-8.
    chunks = (
        _chunk(b"pHYs", struct.pack(">IIB", dots_per_metre, dots_per_metre, 1)),
        _chunk(b"iTXt", b"Title" + bytes(5) + title.encode()),
        _chunk(b"iTXt", b"Description" + bytes(5) + (caption or description).encode()),
    )
    return png[:_HEADER_BYTES] + b"".join(chunks) + png[_HEADER_BYTES:]


def inline_styles(svg: str) -> str:
    """``svg`` with the light style sheet computed into ``style`` attributes.

    CairoSVG has no CSS custom properties (``var(--c1)``), and our colours are such properties.
    """
    import cssselect2

    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    root = ElementTree.fromstring(svg)
    matcher = cssselect2.Matcher()
    for selector, declarations in _rules():
        matcher.add_selector(selector, declarations)
    variables: dict[Any, dict[str, str]] = {}
    for element in cssselect2.ElementWrapper.from_xml_root(root).iter_subtree():
        own: dict[str, str] = {}
        for *_specificity, declarations in matcher.match(element):
            own |= declarations
        variables[element] = dict(variables.get(element.parent, {}))
        variables[element] |= {name: own[name] for name in own if name.startswith("--")}
        style = {name: value for name, value in own.items() if not name.startswith("--")}
        if style:
            text = "; ".join(f"{name}: {value}" for name, value in style.items())
            element.etree_element.set("style", _resolve(text, variables[element]))
    return ElementTree.tostring(root, encoding="unicode")


def _rules() -> Iterator[tuple[Any, dict[str, str]]]:
    import cssselect2
    import tinycss2

    sheet = package_text("figure.css")
    for rule in tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True):
        # At-rules are left out: the only one has the colours of a dark screen.
        if rule.type != "qualified-rule":
            continue
        parsed = tinycss2.parse_declaration_list(rule.content, True, True)
        declarations = {one.name: tinycss2.serialize(one.value).strip() for one in parsed}
        if "font-family" in declarations:
            # Cairo takes the first family only, and "system-ui" is not a font of fontconfig.
            declarations["font-family"] = "sans-serif"
        for selector in cssselect2.compile_selector_list(rule.prelude):
            yield selector, declarations


def _resolve(text: str, variables: dict[str, str]) -> str:
    while found := _VARIABLE.search(text):
        text = text.replace(found[0], variables.get(found[1], "#000000"))
    return text


def _texts(svg: str) -> tuple[str, str]:
    root = ElementTree.fromstring(svg)
    return root.findtext("{*}title", ""), root.findtext("{*}desc", "")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def require_renderer() -> tuple[Any, Any]:
    """CairoSVG and cairocffi, or an error that names the extra."""
    try:
        import cairocffi
        import cairosvg
    except ImportError:
        raise MissingExtraError(
            "PDF and PNG files need the package CairoSVG",
            "pip install 'paceline[figures]', or write .svg",
        ) from None
    except OSError as error:
        # cairocffi loads the system's library when it is imported.
        raise MissingExtraError(
            f"PDF and PNG files need the library Cairo: {error}".partition("\n")[0],
            "install libcairo2 (Debian) or cairo (Fedora, Homebrew), or write .svg",
        ) from None
    return cairosvg, cairocffi
