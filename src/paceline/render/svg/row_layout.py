"""Layout of charts with labelled rows: labels left of the bars or above them."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.render.safe_text import printable
from paceline.render.svg.axis import Axis
from paceline.render.svg.element import group, text
from paceline.render.svg.panel import vertical_grid
from paceline.render.svg.scale import Scale
from paceline.render.svg.text_metrics import fitted, text_width

_LABEL_LINE = 18.0
_BELOW = 42.0
_NARROW = 560.0


@dataclass(frozen=True)
class Rows:
    """``labels`` down the left, or above their bars in a narrow drawing.

    ``bar_height`` and ``gap`` are pixels; ``end_space`` is free space at the right for the
    numbers at the ends of bars.
    """

    labels: tuple[str, ...]
    width: float
    top: float
    bar_height: float
    gap: float
    end_space: float = 0.0

    @property
    def labels_above(self) -> bool:
        return self.width < _NARROW and any(self.labels)

    @property
    def left(self) -> float:
        """First pixel of the bars."""
        widest = max((text_width(printable(label)) for label in self.labels), default=0.0)
        return 8.0 if self.labels_above or not widest else min(widest, self.width * 0.32) + 12

    @property
    def right(self) -> float:
        """Last pixel of the bars."""
        return self.width - max(self.end_space, 14.0)

    @property
    def pitch(self) -> float:
        """Pixels from one row to the next."""
        return self.bar_height + self.gap + (_LABEL_LINE if self.labels_above else 0)

    @property
    def bottom(self) -> float:
        """Pixel below the last row."""
        return self.top + self.pitch * len(self.labels)

    @property
    def height(self) -> float:
        return self.bottom + _BELOW

    def bar_top(self, index: int) -> float:
        """First pixel of the bar of row ``index``."""
        above = _LABEL_LINE if self.labels_above else 0
        return self.top + self.pitch * index + self.gap / 2 + above

    def scale(self, axis: Axis) -> Scale:
        """``axis`` laid over the width of the bars."""
        return axis.scale(self.left, self.right)

    def backdrop(self, axis: Axis) -> str:
        """Grid, axis and row labels behind the bars."""
        title = text(axis.title, self.right, self.bottom + 36, class_="axis-title", anchor="end")
        grid = vertical_grid(axis, self.scale(axis), self.top, self.bottom)
        return grid + title + group(*map(self._label, range(len(self.labels))), class_="labels")

    def _label(self, index: int) -> str:
        label = printable(self.labels[index])
        if not label:
            return ""
        y = self.bar_top(index)
        if self.labels_above:
            shown = fitted(label, self.width - self.left)
            return text(shown, self.left, y - 5, class_="label")
        baseline = y + self.bar_height / 2 + 4
        shown = fitted(label, self.left - 12)
        return text(shown, self.left - 10, baseline, class_="label", anchor="end")


def rows(
    labels: Sequence[str],
    width: float,
    *,
    top: float,
    bar_height: float,
    gap: float,
    ends: Sequence[str] = (),
) -> Rows:
    """Rows that leave room for the texts ``ends`` behind the longest bar."""
    room = max((text_width(end) + 16 for end in ends if end), default=0.0)
    return Rows(tuple(labels), width, top, bar_height, gap, min(room, width * 0.35))
