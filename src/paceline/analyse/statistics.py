"""Figures of launches and reasons to doubt them: the launch is the unit, not the step."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.statistics.normality import ENOUGH
from paceline.statistics.series import lag_one_autocorrelation
from paceline.store import Launch, Status

FEW_LAUNCHES = 3
CONTENDED_WALL_OVER_CPU = 1.1
AUTOCORRELATED = 0.5
LOOKED_INTO = 20
"""Launches of a group, the newest, whose single steps are looked at for warm-up."""


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


def every_step_seconds(launch: Launch) -> list[float]:
    """Seconds of each step on the slowest rank, warm-up included."""
    ranks = [rank.wall_seconds for rank in launch.outcome.ranks]
    return [max(step) for step in zip(*ranks, strict=False)]


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
    found += _doubtful_distribution(finished) + _doubtful_warm_up(finished)
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


def _doubtful_distribution(finished: Sequence[Launch]) -> list[Doubt]:
    """Where the bootstrap's interval contradicts Student's: which to take, and why."""
    if len(finished) < ENOUGH:
        return []
    from paceline.statistics.bootstrap import second_interval

    other = second_interval([mean_step_seconds(launch) for launch in finished])
    if other is None or not other.words:
        return []
    message = f"the bootstrap's interval is {other.low:.4g} to {other.high:.4g} s per step"
    return [Doubt("another interval", message, other.words)]


def _doubtful_warm_up(finished: Sequence[Launch]) -> list[Doubt]:
    """Launches that were not steady yet when counting began, or never were."""
    from paceline.statistics.warmup import Steadiness, steady_state

    looked_at = [launch for launch in finished if launch.outcome.ranks][-LOOKED_INTO:]
    states = [(one, steady_state(every_step_seconds(one))) for one in looked_at]
    unstable = [one for one, state in states if state.kind is Steadiness.UNSTABLE]
    if 2 * len(unstable) > len(looked_at):
        return [
            Doubt(
                "unstable",
                f"the time of a step changed late in {len(unstable)} of {len(looked_at)} launches",
                "lengthen --steps, and end other programs",
            )
        ]
    late = [
        state.warmup_steps
        for one, state in states
        if state.kind is Steadiness.WARM_UP and state.warmup_steps > one.warmup_steps
    ]
    if 2 * len(late) <= len(looked_at):
        return []
    return [
        Doubt(
            "warm-up",
            f"steps were slower up to step {max(late)}, and some of them are counted",
            f"give --warmup-steps {max(late)}",
        )
    ]
