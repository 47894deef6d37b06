"""Curves over one axis as characters, for the terminal."""

import math
from collections.abc import Sequence

from paceline.render.figures.line_chart import LinesInfo
from paceline.render.number_format import short_number
from paceline.render.safe_text import pad, printable, shorten

_MARKS = "●○▲△■□"
_CROSSING = "┊"
_LABEL_WIDTH = 10


def lines_text(info: LinesInfo, width: int = 78, height: int = 14) -> list[str]:
    """The figure as lines of at most ``width`` columns; crossovers are dotted verticals."""
    points = [(x, y.value) for series in info.series for x, y in series.points]
    if not points:
        return []
    columns = width - _LABEL_WIDTH - 2
    to_column = _Scale([x for x, _ in points], columns, info.log_x)
    to_row = _Scale([y for _, y in points], height, info.log_y)
    cells = [[" "] * columns for _ in range(height)]
    for crossing in info.crossovers:
        column = to_column(crossing.x)
        for row in cells:
            row[column] = _CROSSING
    for number, series in enumerate(info.series):
        for x, y in series.points:
            cells[height - 1 - to_row(y.value)][to_column(x)] = _MARKS[number % len(_MARKS)]
    labels = {0: short_number(to_row.high), height - 1: short_number(to_row.low)}
    lines = [printable(info.y_title)]
    for number, row in enumerate(cells):
        label = pad(labels.get(number, ""), _LABEL_WIDTH, right=True)
        lines.append(f"{label} │{''.join(row)}".rstrip())
    lines.append(" " * _LABEL_WIDTH + " └" + "─" * columns)
    lines.append(_axis_line(info.x_title, to_column, columns))
    keys = [f"{_MARKS[n % len(_MARKS)]} {s.label}" for n, s in enumerate(info.series)]
    lines.append(" " * (_LABEL_WIDTH + 2) + "   ".join(keys))
    return lines


class _Scale:
    """Scale from numbers to rows or columns."""

    def __init__(self, values: Sequence[float], cells: int, logarithmic: bool) -> None:
        self.low, self.high = min(values), max(values)
        self.cells = cells
        self.logarithmic = logarithmic and self.low > 0

    def __call__(self, value: float) -> int:
        low, high, own = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, own = math.log(low), math.log(high), math.log(own)
        if high <= low:
            return 0
        return round((own - low) / (high - low) * (self.cells - 1))


def _axis_line(title: str, scale: _Scale, columns: int) -> str:
    low, high = short_number(scale.low), short_number(scale.high)
    room = max(0, columns - len(low) - len(high) - 2)
    middle = shorten(printable(title), room)
    gap = room - len(middle)
    left = gap // 2
    return f"{' ' * (_LABEL_WIDTH + 2)}{low} {' ' * left}{middle}{' ' * (gap - left)} {high}"
