"""A drawing as PNG, by Pillow: for slides, chats and web pages that take no vectors."""

import io
import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paceline.errors import MissingExtraError
from paceline.report.paper.shapes import Disc, Outline, Point, Shape, Shapes, Words

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

DOTS_PER_PIXEL = 2
_FINER = 2
"""How much finer than the picture it is drawn, so that edges are smooth."""
_FACES = {False: ("DejaVuSans.ttf", "Arial.ttf"), True: ("DejaVuSans-Bold.ttf", "Arial Bold.ttf")}


def png_bytes(drawing: Shapes, caption: str = "") -> bytes:
    """The drawing as a PNG file on white, two dots a pixel; title and caption are kept in it."""
    try:
        from PIL import Image, ImageDraw
        from PIL.PngImagePlugin import PngInfo
    except ImportError:
        raise MissingExtraError(
            "PNG files need the package Pillow", "pip install 'paceline[images]', or use .pdf"
        ) from None
    scale = DOTS_PER_PIXEL * _FINER
    size = (math.ceil(drawing.width * scale), math.ceil(drawing.height * scale))
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image, "RGBA")
    for shape in drawing.shapes:
        _paint(pen, shape, scale)
    image = image.reduce(_FINER)
    told = PngInfo()
    told.add_itxt("Title", drawing.title)
    told.add_itxt("Description", caption or drawing.description)
    written = io.BytesIO()
    image.save(written, "PNG", pnginfo=told, dpi=(96 * DOTS_PER_PIXEL,) * 2, optimize=True)
    return written.getvalue()


def _paint(pen: Any, shape: Shape, scale: float) -> None:
    if isinstance(shape, Words):
        font = _font(round(shape.size * scale), shape.bold)
        anchor = {"middle": "ms", "end": "rs"}.get(shape.anchor, "ls")
        pen.text((shape.x * scale, shape.y * scale), shape.text, shape.colour, font, anchor)
        return
    fill = None if shape.fill is None else (*shape.fill, round(255 * shape.fill_opacity))
    width = max(1, round(shape.stroke_width * scale))
    if isinstance(shape, Disc):
        _disc(pen, shape, scale, fill, width)
        return
    for points, closed in shape.lines:
        placed = [(x * scale, y * scale) for x, y in points]
        if fill is not None and len(placed) > 2:
            pen.polygon(placed, fill=fill)
        if shape.stroke is not None:
            _stroke(pen, [*placed, placed[0]] if closed else placed, shape, scale, width)


def _disc(pen: Any, disc: Disc, scale: float, fill: Any, width: int) -> None:
    radius = (disc.radius + disc.stroke_width / 2 if disc.stroke else disc.radius) * scale
    x, y = disc.x * scale, disc.y * scale
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill, disc.stroke, width)


def _stroke(pen: Any, points: Sequence[Point], outline: Outline, scale: float, width: int) -> None:
    dashes = [length * scale for length in outline.dashes]
    pieces = list(_dashed(points, dashes)) if dashes else [list(points)]
    for piece in pieces:
        pen.line(piece, outline.stroke, width, joint="curve")
        if outline.round_ends:
            for x, y in (piece[0], piece[-1]):
                half = width / 2
                pen.ellipse((x - half, y - half, x + half, y + half), outline.stroke)


def _dashed(points: Sequence[Point], dashes: Sequence[float]) -> Iterator[list[Point]]:
    """The parts of a line that are drawn, where lengths drawn and left out take turns."""
    turn, left = 0, dashes[0]
    piece: list[Point] = [points[0]]
    for (ax, ay), (bx, by) in pairwise(points):
        length, done = math.hypot(bx - ax, by - ay), 0.0
        while length - done > left:
            done += left
            share = done / length
            place = (ax + share * (bx - ax), ay + share * (by - ay))
            if turn % 2 == 0:
                yield [*piece, place]
            turn, piece = turn + 1, [place]
            left = max(dashes[turn % len(dashes)], 1e-3)
        left -= length - done
        piece = [*piece, (bx, by)] if turn % 2 == 0 else [(bx, by)]
    if turn % 2 == 0 and len(piece) > 1:
        yield piece


@cache
def _font(size: int, bold: bool) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    for face in _FACES[bold]:
        try:
            return ImageFont.truetype(face, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
