"""Marks of values: points, lines, bars and intervals. Positions are pixels."""

from collections.abc import Sequence
from itertools import pairwise

from paceline.render.svg.element import element, number

Point = tuple[float, float]

_SHAPES: tuple[tuple[Point, ...], ...] = (
    (),
    ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
    ((0.0, -5.0), (4.6, 3.4), (-4.6, 3.4)),
    ((0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)),
    ((0.0, 5.0), (4.6, -3.4), (-4.6, -3.4)),
)


def marker(x: float, y: float, shape: int = 0, tip: str = "") -> str:
    """A point; colour and shape carry the same information."""
    corners = _SHAPES[shape % len(_SHAPES)]
    if not corners:
        return element("circle", cx=x, cy=y, r=4, class_="marker", tip=tip)
    path = "M" + "L".join(f"{number(x + dx)} {number(y + dy)}" for dx, dy in corners) + "Z"
    return element("path", d=path, class_="marker", tip=tip)


def polyline(points: Sequence[Point], pattern: str = "") -> str:
    """A line through ``points``, of class ``pattern`` (dashes, dots); none for fewer than two."""
    if len(points) < 2:
        return ""
    return element("path", d=_path(points), class_=f"stroke {pattern}".rstrip())


def steps(points: Sequence[Point], base: float) -> str:
    """An area under a curve that stays level from each point to the next."""
    if len(points) < 2:
        return ""
    level: list[Point] = [(points[0][0], base), points[0]]
    for (_, before), (x, y) in pairwise(points):
        level += [(x, before), (x, y)]
    return element("path", d=_path([*level, (points[-1][0], base)]) + "Z", class_="fill")


def band(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """The area between two lines, as around an estimate."""
    if len(upper) < 2 or len(lower) < 2:
        return ""
    return element("path", d=_path([*upper, *reversed(lower)]) + "Z", class_="band")


def error_bar(x: float, low: float, high: float, cap: float = 4.0) -> str:
    a, b, left, right = number(low), number(high), number(x - cap), number(x + cap)
    path = f"M{left} {a}H{right}M{left} {b}H{right}M{number(x)} {a}V{b}"
    return element("path", d=path, class_="error")


def error_bar_across(y: float, low: float, high: float, cap: float = 4.0) -> str:
    a, b, top, bottom = number(low), number(high), number(y - cap), number(y + cap)
    path = f"M{a} {top}V{bottom}M{b} {top}V{bottom}M{a} {number(y)}H{b}"
    return element("path", d=path, class_="error")


def bar(x: float, y: float, width: float, height: float, *, tip: str = "") -> str:
    """A rectangle in the colour of its group; a negative size grows it the other way."""
    left, top = min(x, x + width), min(y, y + height)
    return element("rect", x=left, y=top, width=abs(width), height=abs(height), tip=tip)


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
