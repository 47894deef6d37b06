"""Throughput of launches with honest intervals: the launch is the unit, not the step."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.student import upper_quantile
from paceline.errors import InputError
from paceline.store import Launch, Status

CONFIDENCE = 0.95
FEW_LAUNCHES = 3
CONTENDED_WALL_OVER_CPU = 1.1
AUTOCORRELATED = 0.5


@dataclass(frozen=True)
class Estimate:
    """A mean over launches with its interval; ``launches`` is how many it rests on.

    ``low`` and ``high`` bound the mean with 95 % confidence (Student's t over launches); with a
    single launch they are not known and are NaN.
    """

    mean: float
    low: float
    high: float
    launches: int
    standard_deviation: float

    @property
    def half_width(self) -> float:
        """Half the interval's width: the number behind ±."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Doubt:
    """What makes a result less trustworthy than it looks: the cause, and the remedy."""

    cause: str
    message: str
    remedy: str


def step_seconds(launch: Launch) -> list[float]:
    """Seconds of each counted step: that of the slowest rank, warm-up dropped."""
    skip = launch.warmup_steps
    ranks = [rank.wall_seconds[skip:] for rank in launch.outcome.ranks]
    if launch.status is not Status.FINISHED or not ranks or not all(ranks):
        raise InputError(
            f"launch {launch.id} has no counted steps ({launch.status})",
            "'paceline show' tells what happened to it",
        )
    return [max(step) for step in zip(*ranks, strict=True)]


def mean_step_seconds(launch: Launch) -> float:
    """Mean seconds of a counted step on the slowest rank."""
    steps = step_seconds(launch)
    return math.fsum(steps) / len(steps)


def mean_rank_step_seconds(launch: Launch) -> float:
    """Mean seconds of a counted step over all ranks, the slowest or not."""
    return statistics.fmean(
        seconds
        for rank in launch.outcome.ranks
        for seconds in rank.wall_seconds[launch.warmup_steps :]
    )


def throughput(launch: Launch) -> float:
    """Samples per second of all ranks: n / sum(t), t being that of the slowest rank per step."""
    return launch.samples_per_step / mean_step_seconds(launch)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of one value per launch, with Student's t interval over launches."""
    if not values:
        raise InputError("there is nothing to average", "no launch of this kind finished")
    count, mean = len(values), math.fsum(values) / len(values)
    if count == 1:
        return Estimate(mean, math.nan, math.nan, 1, math.nan)
    deviation = statistics.stdev(values)
    half = student_t(count - 1) * deviation / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count, deviation)


def student_t(degrees_of_freedom: int, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t distribution."""
    return upper_quantile((1.0 - confidence) / 2.0, degrees_of_freedom)


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation; 0 where there are too few values to tell."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def wall_over_cpu(launch: Launch) -> float:
    """Wall time over CPU time of the counted steps, the worst rank; NaN where unknown.

    For one busy thread this is 1 on a quiet machine; well above it, something else had the core.
    """
    ratios = []
    for rank in launch.outcome.ranks:
        cpu = math.fsum(rank.cpu_seconds[launch.warmup_steps :])
        if cpu > 0:
            ratios.append(math.fsum(rank.wall_seconds[launch.warmup_steps :]) / cpu)
    return max(ratios, default=math.nan)


def lag_one_autocorrelation(values: Sequence[float]) -> float:
    """Correlation of each value with the next; 0 where there are too few to tell."""
    count = len(values)
    if count < 4:
        return 0.0
    mean = math.fsum(values) / count
    spread = math.fsum((value - mean) ** 2 for value in values)
    if spread <= 0:
        return 0.0
    together = math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(values))
    return together / spread


def counted(number: int, singular: str, plural: str) -> str:
    """``1 launch``, ``3 launches``."""
    return f"{number} {singular if number == 1 else plural}"


def doubts(launches: Sequence[Launch]) -> list[Doubt]:
    """Reasons to doubt the figures of these finished launches of one job, each with its remedy."""
    finished = [launch for launch in launches if launch.status is Status.FINISHED]
    found: list[Doubt] = []
    if len(finished) < FEW_LAUNCHES:
        found.append(
            Doubt(
                "too few launches",
                f"{counted(len(finished), 'launch', 'launches')} cannot tell how far others lie",
                "run 3 or more: measure --launches 5, run --repeat 5",
            )
        )
    contended = [launch for launch in finished if wall_over_cpu(launch) > CONTENDED_WALL_OVER_CPU]
    if contended and not any(launch.synchronised and launch.world_size > 1 for launch in contended):
        worst = max(wall_over_cpu(launch) for launch in contended)
        found.append(
            Doubt(
                "contention",
                f"processes waited for a core, wall time was up to {worst:.2f} times CPU time",
                "end other programs, or use fewer processes or threads",
            )
        )
    correlations = [lag_one_autocorrelation(step_seconds(launch)) for launch in finished]
    if correlations and statistics.median(correlations) > AUTOCORRELATED:
        found.append(
            Doubt(
                "autocorrelation",
                "step times drift within a launch, so more steps add little",
                "add launches rather than steps, or lengthen --warmup-steps",
            )
        )
    return found
