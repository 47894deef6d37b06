"""The waterfall from an ideal step to a real one, by cause."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError


class ItemKind(StrEnum):
    """Kind of an item: the ideal step, a known cause, or the remainder."""

    IDEAL = "ideal"
    CAUSE = "cause"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class WaterfallItem:
    """One bar of a waterfall.

    ``seconds`` is the length of the ideal step or the time that the cause adds; a cause that
    shortens the step is negative. ``note`` is a short reason. ``half_width`` is half the
    95 % interval over launches (seconds), NaN with too few launches.
    """

    label: str
    seconds: float
    kind: ItemKind = ItemKind.CAUSE
    note: str = ""
    half_width: float = math.nan


@dataclass(frozen=True)
class Waterfall:
    """Items whose seconds sum to the measured or predicted step."""

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

        The remainder is the last item, ``rest_label``: it is never distributed over the causes.
        """
        known = [ideal.seconds, *(cause.seconds for cause in causes)]
        _require_finite([real_seconds, *known])
        rest = real_seconds - math.fsum(known)
        return cls((ideal, *causes, WaterfallItem(rest_label, rest, ItemKind.UNEXPLAINED)))

    @property
    def total_seconds(self) -> float:
        return math.fsum(item.seconds for item in self.items)

    @property
    def ideal_seconds(self) -> float:
        """Length of the ideal step."""
        return math.fsum(item.seconds for item in self.items if item.kind is ItemKind.IDEAL)

    @property
    def unexplained_seconds(self) -> float:
        """The remainder; negative if the causes add up to more than the step."""
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
