"""A drawing as one page of PDF: vectors and text, in the fonts that every reader has."""

import re
from itertools import pairwise

from paceline.report.paper.shapes import Colour, Disc, Outline, Shape, Shapes, Words

POINTS_PER_PIXEL = 0.75
_ROUND = 0.5523
"""How far a curve's handles reach, of the radius, to draw a quarter of a circle."""
_ASCII_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
_WIDTHS = {chr(32 + index): int(width) for index, width in enumerate(_ASCII_WIDTHS.split())}
_BOLD = 1.06
_SPELT = {"∞": "inf", "≤": "<=", "≥": ">=", "→": "->", "−": "-", "≈": "~", "µ": "\xb5"}


def pdf_bytes(drawing: Shapes, caption: str = "") -> bytes:
    """The drawing as a PDF file; its title and caption are in the document's information."""
    width, height = (POINTS_PER_PIXEL * side for side in (drawing.width, drawing.height))
    opacities = sorted({_opacity(shape) for shape in drawing.shapes} | {1.0})
    states = {value: f"/G{index}" for index, value in enumerate(opacities)}
    scale = _n(POINTS_PER_PIXEL)
    content = [f"{scale} 0 0 -{scale} 0 {_n(height)} cm", "1 j"]
    content += [_painted(shape, states) for shape in drawing.shapes]
    stream = "\n".join(content).encode("latin-1")
    graphics = " ".join(
        f"{name} << /ca {_n(value)} /CA 1 >>" for value, name in sorted(states.items())
    )
    fonts = " ".join(
        f"/{name} << /Type /Font /Subtype /Type1 /BaseFont /{face} /Encoding /WinAnsiEncoding >>"
        for name, face in (("F1", "Helvetica"), ("F2", "Helvetica-Bold"))
    )
    return _file(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_n(width)} {_n(height)}] /Contents 4 0 R "
        f"/Resources << /Font << {fonts} >> /ExtGState << {graphics} >> >> >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Title %s /Subject %s /Producer (Paceline) >>"
        % (_information(drawing.title), _information(caption or drawing.description)),
    )


def _file(*objects: bytes) -> bytes:
    """Objects with the table of where each begins; the last is the document's information."""
    parts = [b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"]
    for number, content in enumerate(objects, start=1):
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    places, place = [], 0
    for part in parts:
        places.append(place)
        place += len(part)
    count = len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % start for start in places[1:])
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (count, len(objects))
    return b"".join((*parts, head, trailer, b"startxref\n%d\n%%%%EOF\n" % place))


def _information(text: str) -> bytes:
    return b"<" + ("\ufeff" + text).encode("utf-16-be").hex().encode() + b">"


def _painted(shape: Shape, states: dict[float, str]) -> str:
    if isinstance(shape, Words):
        return _text(shape)
    path = _circle(shape) if isinstance(shape, Disc) else _path(shape)
    paint = {(True, True): "B", (True, False): "f", (False, True): "S"}.get(
        (shape.fill is not None, shape.stroke is not None)
    )
    if not path or paint is None:
        return ""
    words = ["q", f"{states[shape.fill_opacity]} gs"]
    if shape.fill is not None:
        words.append(f"{_rgb(shape.fill)} rg")
    if shape.stroke is not None:
        words.append(f"{_rgb(shape.stroke)} RG {_n(shape.stroke_width)} w")
    if isinstance(shape, Outline):
        words.append(f"{1 if shape.round_ends else 0} J")
        if shape.dashes:
            words.append(f"[{' '.join(map(_n, shape.dashes))}] 0 d")
    return "\n".join((*words, path, f"{paint} Q"))


def _opacity(shape: Shape) -> float:
    return 1.0 if isinstance(shape, Words) else shape.fill_opacity


def _path(outline: Outline) -> str:
    words = []
    for points, closed in outline.lines:
        steps = zip(points, "m" + "l" * (len(points) - 1), strict=True)
        words += [f"{_n(x)} {_n(y)} {step}" for (x, y), step in steps]
        words += ["h"] if closed else []
    return " ".join(words)


def _circle(disc: Disc) -> str:
    x, y, r = disc.x, disc.y, disc.radius
    turns = ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 0))
    words = [f"{_n(x + r)} {_n(y)} m"]
    for (ax, ay), (bx, by) in pairwise(turns):
        handles = (ax + _ROUND * bx, ay + _ROUND * by, bx + _ROUND * ax, by + _ROUND * ay, bx, by)
        places = (_n((y if odd % 2 else x) + r * turn) for odd, turn in enumerate(handles))
        words.append(f"{' '.join(places)} c")
    return " ".join((*words, "h"))


def _text(words: Words) -> str:
    text = encodable(words.text)
    shift = {"middle": 0.5, "end": 1.0}.get(words.anchor, 0.0)
    left = words.x - shift * helvetica_width(text, words.size, bold=words.bold)
    escaped = re.sub(r"([\\()])", r"\\\1", text.encode("cp1252").decode("latin-1"))
    font = "F2" if words.bold else "F1"
    return (
        f"BT {_rgb(words.colour)} rg /{font} {_n(words.size)} Tf "
        f"1 0 0 -1 {_n(left)} {_n(words.y)} Tm ({escaped}) Tj ET"
    )


def encodable(text: str) -> str:
    """``text`` in the characters that the fonts have; others are spelt out or shown as ?."""
    spelt = "".join(_SPELT.get(one, " " if one.isspace() else one) for one in text)
    return spelt.encode("cp1252", errors="replace").decode("cp1252")


def helvetica_width(text: str, size: float, *, bold: bool) -> float:
    """How wide a line of text is, in the units of ``size``."""
    ems = sum(_WIDTHS.get(one, 556) for one in text) / 1000
    return ems * size * (_BOLD if bold else 1.0)


def _rgb(colour: Colour) -> str:
    return " ".join(_n(part / 255) for part in colour)


def _n(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"
