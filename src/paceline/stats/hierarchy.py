"""Variance between launches, ranks and steps, and the repetition that it suggests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError

Launches = Sequence[Sequence[Sequence[float]]]
"""Seconds by launch, rank and step."""


@dataclass(frozen=True)
class VarianceComponents:
    """Variance of seconds between launches, between ranks of a launch, and between steps (s^2).

    Negative estimates are set to zero, as is usual for estimators of analysis of variance.
    """

    launch: float
    rank: float
    step: float
    mean: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """Fractions of the variance of a single step; zeros if nothing varies."""
        total = self.launch + self.rank + self.step
        if total <= 0.0:
            return 0.0, 0.0, 0.0
        return self.launch / total, self.rank / total, self.step / total


@dataclass(frozen=True)
class Repetition:
    """Steps per launch and number of launches that give the narrowest interval.

    ``relative_error`` is the standard error of the mean as a fraction of it.
    """

    steps: int
    launches: int
    relative_error: float


def variance_components(launches: Launches) -> VarianceComponents:
    """Components by nested analysis of variance; numbers of ranks and steps may differ.

    The component of ranks is zero if every launch has one rank.
    """
    if len(launches) < 2:
        raise InputError("one launch cannot show the variance between launches", "run 3 or more")
    cells = [[rank for rank in launch if rank] for launch in launches]
    sizes = [[len(rank) for rank in launch] for launch in cells]
    total = sum(map(sum, sizes))
    rank_count, launch_count = sum(map(len, sizes)), len(sizes)
    rank_means = [[math.fsum(rank) / len(rank) for rank in launch] for launch in cells]
    launch_means = [
        math.fsum(math.fsum(rank) for rank in launch) / sum(own)
        for launch, own in zip(cells, sizes, strict=True)
    ]
    mean = math.fsum(m * sum(own) for m, own in zip(launch_means, sizes, strict=True)) / total
    within = math.fsum(
        (value - m) ** 2
        for launch, means in zip(cells, rank_means, strict=True)
        for rank, m in zip(launch, means, strict=True)
        for value in rank
    )
    among_ranks = math.fsum(
        size * (m - whole) ** 2
        for own, means, whole in zip(sizes, rank_means, launch_means, strict=True)
        for size, m in zip(own, means, strict=True)
    )
    among_launches = math.fsum(
        sum(own) * (m - mean) ** 2 for own, m in zip(sizes, launch_means, strict=True)
    )
    # Method of moments for unequal numbers (Searle, Casella and McCulloch, Variance Components,
    # 1992): mean squares are set equal to their expectations, from steps up to launches.
    step = within / (total - rank_count) if total > rank_count else 0.0
    squares_by_launch = math.fsum(sum(n * n for n in own) / sum(own) for own in sizes)
    rank = 0.0
    if rank_count > launch_count:
        steps_of_rank = (total - squares_by_launch) / (rank_count - launch_count)
        rank = max(0.0, (among_ranks / (rank_count - launch_count) - step) / steps_of_rank)
    ranks_weight = squares_by_launch - math.fsum(n * n for own in sizes for n in own) / total
    launch_weight = total - math.fsum(sum(own) ** 2 for own in sizes) / total
    expected = step * (launch_count - 1) + ranks_weight * rank
    launch = max(0.0, (among_launches - expected) / launch_weight)
    return VarianceComponents(launch, rank, step, mean)


def best_repetition(
    components: VarianceComponents,
    start_seconds: float,
    step_seconds: float,
    available_seconds: float,
    effective_part: float = 1.0,
) -> Repetition:
    """Best use of ``available_seconds``: a launch costs its start and its steps.

    ``effective_part`` is the fraction of steps that count as independent. The minimum is three
    launches, since fewer have no useful interval.
    """
    step = components.step / max(effective_part, 1e-9)
    most = max(1.0, (available_seconds / 3.0 - start_seconds) / step_seconds)
    if components.launch <= 0.0:  # launches do not differ: one start is enough
        wanted = most
    else:  # minimises (launch + step / n) / launches at launches * (start + n * step time) = const
        wanted = math.sqrt(start_seconds / step_seconds * step / components.launch)
    steps = round(min(most, max(1.0, wanted)))
    launches = max(3, math.floor(available_seconds / (start_seconds + steps * step_seconds)))
    variance = (components.launch + components.rank + step / steps) / launches
    return Repetition(steps, launches, math.sqrt(variance) / components.mean)
