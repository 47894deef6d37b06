"""A drawing of ours as plain shapes with their colours, for writers of other formats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from paceline.report.paper.stylesheet import Style, StyledNode, style_of, value_of

Colour = tuple[int, int, int]
Point = tuple[float, float]

_STEP = re.compile(r"([MLHVZ])([^MLHVZ]*)")


@dataclass(frozen=True)
class Outline:
    """Lines through points, each open or closed, filled or drawn or both."""

    lines: tuple[tuple[tuple[Point, ...], bool], ...]
    fill: Colour | None
    fill_opacity: float
    stroke: Colour | None
    stroke_width: float
    dashes: tuple[float, ...]
    round_ends: bool


@dataclass(frozen=True)
class Disc:
    """A circle, filled or drawn or both."""

    x: float
    y: float
    radius: float
    fill: Colour | None
    fill_opacity: float
    stroke: Colour | None
    stroke_width: float


@dataclass(frozen=True)
class Words:
    """A line of text; ``anchor`` is start, middle or end."""

    text: str
    x: float
    y: float
    anchor: str
    size: float
    bold: bool
    colour: Colour


Shape = Outline | Disc | Words


@dataclass(frozen=True)
class Shapes:
    """A drawing of so many pixels, what it is, and its shapes from the back to the front."""

    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...]


def shapes_of(svg: str) -> Shapes:
    """The shapes of a drawing that `paceline.report.figures` made."""
    root = ElementTree.fromstring(svg)
    return Shapes(
        float(root.get("width", "0")),
        float(root.get("height", "0")),
        _child_text(root, "title"),
        _child_text(root, "desc"),
        tuple(_walk(root, (), {})),
    )


def _child_text(root: ElementTree.Element, name: str) -> str:
    found = root.find(f"{{*}}{name}")
    return "" if found is None else found.text or ""


def _walk(
    element: ElementTree.Element, path: tuple[StyledNode, ...], inherited: Style
) -> Iterator[Shape]:
    tag = element.tag.rpartition("}")[2]
    if tag in ("title", "desc", "style"):
        return
    own = (*path, StyledNode(tag, frozenset(element.get("class", "").split())))
    style = style_of(own, inherited)
    shape = _shape(tag, element, style)
    if shape is not None:
        yield shape
    for child in element:
        yield from _walk(child, own, style)


def _shape(tag: str, element: ElementTree.Element, style: Style) -> Shape | None:
    def at(name: str) -> float:
        return float(element.get(name, "0"))

    if tag == "text":
        weight = value_of(style, "font-weight", "400")
        size = float(value_of(style, "font-size", "12px").removesuffix("px"))
        colour = _colour(value_of(style, "fill", "#000000")) or (0, 0, 0)
        anchor = element.get("text-anchor", "start")
        text = "".join(element.itertext())
        return Words(text, at("x"), at("y"), anchor, size, int(weight) >= 600, colour)
    if tag == "circle":
        outline = _outline((), style)
        return Disc(
            at("cx"),
            at("cy"),
            at("r"),
            outline.fill,
            outline.fill_opacity,
            outline.stroke,
            outline.stroke_width,
        )
    if tag == "rect":
        left, top = at("x"), at("y")
        right, bottom = left + at("width"), top + at("height")
        return _outline(
            ((((left, top), (right, top), (right, bottom), (left, bottom)), True),), style
        )
    if tag == "line":
        return _outline(((((at("x1"), at("y1")), (at("x2"), at("y2"))), False),), style)
    if tag == "path":
        return _outline(tuple(path_lines(element.get("d", ""))), style)
    return None


def _outline(lines: tuple[tuple[tuple[Point, ...], bool], ...], style: Style) -> Outline:
    dashes = value_of(style, "stroke-dasharray", "none")
    return Outline(
        lines,
        _colour(value_of(style, "fill", "#000000")),
        float(value_of(style, "fill-opacity", "1")),
        _colour(value_of(style, "stroke", "none")),
        float(value_of(style, "stroke-width", "1")),
        () if dashes == "none" else tuple(map(float, dashes.split())),
        value_of(style, "stroke-linecap", "butt") == "round",
    )


def path_lines(data: str) -> Iterator[tuple[tuple[Point, ...], bool]]:
    """The lines of a path of absolute moves and straight lines, and whether each is closed."""
    points: list[Point] = []
    for command, words in _STEP.findall(data):
        numbers = [float(word) for word in words.replace(",", " ").split()]
        if command == "M":
            if points:
                yield tuple(points), False
            points = [(numbers[0], numbers[1])]
        elif command == "L":
            points.append((numbers[0], numbers[1]))
        elif command == "H":
            points.append((numbers[0], points[-1][1]))
        elif command == "V":
            points.append((points[-1][0], numbers[0]))
        else:
            yield tuple(points), True
            points = []
    if points:
        yield tuple(points), False


def _colour(text: str) -> Colour | None:
    if not text.startswith("#"):
        return None
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:4])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
