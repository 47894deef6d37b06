"""Pauses of training: a checkpoint, an evaluation, the start of an epoch."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.step.breakdown import Breakdown
from paceline.step.task import Phase

LONG = 0.5
"""Part of a usual step that the host must be at work longer than usual: so a pause is defined."""
RARE = 0.25
"""Part of the steps that may pause."""
FEWEST = 2
"""Steps that must pause."""


@dataclass(frozen=True)
class Pauses:
    """``count`` of ``steps`` steps stopped for work of the host, longest on ``rank``.

    ``each_seconds`` is what such a step takes longer, ``seconds`` the same shared out over all
    steps. ``every`` is how many steps lie between two of them in the median.
    """

    rank: int
    count: int
    steps: int
    every: float
    each_seconds: float

    @property
    def seconds(self) -> float:
        """What pauses add to the mean step."""
        return self.each_seconds * self.count / self.steps


def paused_steps(steps: Sequence[Mapping[int, Breakdown]]) -> list[int]:
    """Places of the steps that paused; empty where they are too few or too many to be pauses.

    A pause is long compared with a usual step; one may be chance, and most steps do not pause.
    """
    usual = statistics.median(_seconds(step) for step in steps)
    longer = [max(one.values()) for one in _longer(steps)]
    found = [place for place, seconds in enumerate(longer) if seconds > LONG * usual]
    return found if FEWEST <= len(found) <= RARE * len(steps) else []


def pauses_of(steps: Sequence[Mapping[int, Breakdown]], paused: Sequence[int]) -> Pauses | None:
    """What the steps at the places ``paused`` take longer than the others; None without any."""
    if not paused:
        return None
    marked = set(paused)
    others = [_seconds(step) for place, step in enumerate(steps) if place not in marked]
    longer = _longer(steps)
    by_rank = {rank: sum(longer[place][rank] for place in paused) for rank in steps[0]}
    between = [after - before for before, after in itertools.pairwise(paused)]
    return Pauses(
        max(by_rank, key=lambda rank: by_rank[rank]),
        len(paused),
        len(steps),
        float(statistics.median(between)),
        statistics.fmean(_seconds(steps[place]) for place in paused) - statistics.fmean(others),
    )


def _seconds(step: Mapping[int, Breakdown]) -> float:
    return max(parts.step_seconds for parts in step.values())


def _longer(steps: Sequence[Mapping[int, Breakdown]]) -> list[dict[int, float]]:
    """How much longer than usual the host works between phases, by step and rank."""
    host = [{r: parts.exposed.get(Phase.OTHER, 0.0) for r, parts in s.items()} for s in steps]
    usual = {rank: statistics.median(one[rank] for one in host) for rank in host[0]}
    return [{rank: seconds - usual[rank] for rank, seconds in one.items()} for one in host]
