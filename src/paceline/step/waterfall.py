"""The waterfall from an ideal step to a real one, by cause."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError


class ItemKind(StrEnum):
    """What an item stands for: where one starts, a cause that is understood, or the rest."""

    IDEAL = "ideal"
    CAUSE = "cause"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class WaterfallItem:
    """One bar of a waterfall.

    ``seconds`` is the length of the ideal step, or what the cause adds to it; a cause that
    makes the step shorter is negative. ``note`` is a short reason. ``half_width`` is half the
    95 % interval over launches (seconds), NaN with too few launches.
    """

    label: str
    seconds: float
    kind: ItemKind = ItemKind.CAUSE
    note: str = ""
    half_width: float = math.nan


@dataclass(frozen=True)
class Waterfall:
    """Items whose seconds sum to the step that was measured (or predicted)."""

    items: tuple[WaterfallItem, ...]

    def __post_init__(self) -> None:
        _require_finite([item.seconds for item in self.items])

    @classmethod
    def between(
        cls,
        ideal: WaterfallItem,
        real_seconds: float,
        causes: Sequence[WaterfallItem],
        *,
        rest_label: str = "unattributed",
    ) -> "Waterfall":
        """The waterfall from ``ideal`` to ``real_seconds``.

        What ``causes`` leave over becomes the last item, ``rest_label``: nothing is spread
        over the causes to make the sum fit.
        """
        known = [ideal.seconds, *(cause.seconds for cause in causes)]
        _require_finite([real_seconds, *known])
        rest = real_seconds - math.fsum(known)
        return cls((ideal, *causes, WaterfallItem(rest_label, rest, ItemKind.UNEXPLAINED)))

    @property
    def total_seconds(self) -> float:
        """Length of the step at the end of the waterfall."""
        return math.fsum(item.seconds for item in self.items)

    @property
    def ideal_seconds(self) -> float:
        """Length of the step at its start."""
        return math.fsum(item.seconds for item in self.items if item.kind is ItemKind.IDEAL)

    @property
    def unexplained_seconds(self) -> float:
        """What no cause accounts for; negative where the causes claim too much."""
        return math.fsum(item.seconds for item in self.items if item.kind is ItemKind.UNEXPLAINED)

    @property
    def spans(self) -> list[tuple[float, float]]:
        """Start and end of each item's bar, seconds; each starts where the one before ends."""
        spans: list[tuple[float, float]] = []
        reached = 0.0
        for item in self.items:
            spans.append((reached, reached + item.seconds))
            reached += item.seconds
        return spans


def _require_finite(times: Sequence[float]) -> None:
    if not all(map(math.isfinite, times)):
        raise InputError(
            "the times of a waterfall must be finite", "omit causes of unknown duration"
        )
