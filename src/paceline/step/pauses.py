"""Pauses of training: a checkpoint, an evaluation, the start of an epoch."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.step.breakdown import Breakdown
from paceline.step.task import Phase

LONG = 0.5
"""A step pauses if its host time exceeds the median by more than this fraction of a step."""
RARE = 0.25
"""Largest fraction of steps that may pause: if more do, the time is part of normal steps."""
FEWEST = 2
"""Fewest paused steps: one long step may be chance."""


@dataclass(frozen=True)
class Pauses:
    """Pauses of ``count`` of ``steps`` steps for work of the host, longest on ``rank``.

    ``each_seconds`` is the extra time of a paused step, ``seconds`` its mean over all steps.
    ``every`` is the median number of steps between two pauses.
    """

    rank: int
    count: int
    steps: int
    every: float
    each_seconds: float

    @property
    def seconds(self) -> float:
        """Mean over all steps of the extra time."""
        return self.each_seconds * self.count / self.steps


def paused_steps(steps: Sequence[Mapping[int, Breakdown]]) -> list[int]:
    """Indices of the paused steps; empty if they are too few or too many to be pauses."""
    median = statistics.median(_seconds(step) for step in steps)
    excess = [max(own.values()) for own in _excess(steps)]
    found = [index for index, seconds in enumerate(excess) if seconds > LONG * median]
    return found if FEWEST <= len(found) <= RARE * len(steps) else []


def summarise_pauses(
    steps: Sequence[Mapping[int, Breakdown]], paused: Sequence[int]
) -> Pauses | None:
    """Extra time of the steps with indices ``paused`` over the others; None without any."""
    if not paused:
        return None
    marked = set(paused)
    others = [_seconds(step) for index, step in enumerate(steps) if index not in marked]
    excess = _excess(steps)
    by_rank = {rank: sum(excess[index][rank] for index in paused) for rank in steps[0]}
    between = [after - before for before, after in itertools.pairwise(paused)]
    return Pauses(
        max(by_rank, key=lambda rank: by_rank[rank]),
        len(paused),
        len(steps),
        float(statistics.median(between)),
        statistics.fmean(_seconds(steps[index]) for index in paused) - statistics.fmean(others),
    )


def _seconds(step: Mapping[int, Breakdown]) -> float:
    return max(parts.step_seconds for parts in step.values())


def _excess(steps: Sequence[Mapping[int, Breakdown]]) -> list[dict[int, float]]:
    """Host time between phases in excess of its median, by step and rank."""
    host = [{r: parts.exposed.get(Phase.OTHER, 0.0) for r, parts in s.items()} for s in steps]
    median = {rank: statistics.median(own[rank] for own in host) for rank in host[0]}
    return [{rank: seconds - median[rank] for rank, seconds in own.items()} for own in host]
