"""Levels of a step: means of launches from one process alone to ranks that communicate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.launch_statistics import mean_rank_step_seconds
from paceline.explanation.estimated_step import half_width
from paceline.stats.estimate import Estimate, estimate


@dataclass(frozen=True)
class Level:
    """Mean step of some launches, and what it adds to the level before; seconds.

    ``half_width`` is half the 95 % interval of ``added_seconds`` over launches, NaN if unknown.
    """

    label: str
    seconds: float
    added_seconds: float = 0.0
    half_width: float = math.nan

    @property
    def distinguishable(self) -> bool:
        """Whether the interval of the added time excludes zero."""
        return abs(self.added_seconds) > self.half_width


def levels_of(
    alone: LaunchGroup | None, no_sync: LaunchGroup | None, own: LaunchGroup
) -> tuple[Level, ...]:
    """Levels whose launches exist; empty without launches of one process.

    Each level adds its difference from the one before, so they sum to the step of ``own``.
    """
    if alone is None or alone is own:
        return ()
    return tuple(_added(_estimates(alone, no_sync, own)))


def _estimates(
    alone: LaunchGroup, no_sync: LaunchGroup | None, own: LaunchGroup
) -> Iterator[tuple[str, Estimate]]:
    yield "one process alone", alone.step
    count = own.first.world_size
    if no_sync is not None:
        means = estimate([mean_rank_step_seconds(one) for one in no_sync.launches])
        yield f"{count} processes without communication", means
        yield "slowest rank", no_sync.step
    yield f"{count} processes with communication", own.step


def _added(levels: Iterator[tuple[str, Estimate]]) -> Iterator[Level]:
    before: Estimate | None = None
    for label, own in levels:
        if before is None:
            yield Level(label, own.mean)
        else:
            yield Level(label, own.mean, own.mean - before.mean, half_width([own, before]))
        before = own
