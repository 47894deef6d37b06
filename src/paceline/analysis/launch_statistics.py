"""Results of launches and warnings about them; the launch is the unit, not the step."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.stats.modes import modes
from paceline.stats.normality import ENOUGH
from paceline.stats.step_statistics import autocorrelation
from paceline.stats.stopping import are_correlated
from paceline.store import Launch, Status
from paceline.units import plural

# Thresholds of warnings are judgements; none of them changes a result.
FEW_LAUNCHES = 3
CONTENDED_WALL_OVER_CPU = 1.1
AUTOCORRELATED = 0.5
CHECKED_LAUNCHES = 20
"""Number of launches of a group, the newest, that are checked for warm-up."""


@dataclass(frozen=True)
class ResultWarning:
    """A warning about a result: cause, message and remedy."""

    cause: str
    message: str
    remedy: str


def step_seconds(launch: Launch) -> list[float]:
    """Seconds of each counted step on its slowest rank."""
    skip = launch.warmup_steps
    ranks = [rank.wall_seconds[skip:] for rank in launch.outcome.ranks]
    if launch.status is not Status.FINISHED or not ranks or not all(ranks):
        raise InputError(
            f"launch {launch.id} has no counted steps ({launch.status})",
            f"see its details with 'paceline study show {launch.id}'",
        )
    return [max(step) for step in zip(*ranks, strict=True)]


def every_step_seconds(launch: Launch) -> list[float]:
    """Seconds of each step on its slowest rank, including warm-up."""
    ranks = [rank.wall_seconds for rank in launch.outcome.ranks]
    return [max(step) for step in zip(*ranks, strict=False)]


def mean_step_seconds(launch: Launch) -> float:
    """Mean wall seconds of a counted step (see `Launch.counted_seconds`)."""
    return launch.counted_seconds / len(step_seconds(launch))


def mean_rank_step_seconds(launch: Launch) -> float:
    """Mean seconds of a counted step over all ranks."""
    return statistics.fmean(
        seconds
        for rank in launch.outcome.ranks
        for seconds in rank.wall_seconds[launch.warmup_steps :]
    )


def throughput(launch: Launch) -> float:
    """Samples per second of all ranks over the counted steps."""
    return launch.samples_per_step / mean_step_seconds(launch)


def wall_over_cpu(launch: Launch) -> float:
    """Wall time over CPU time of the counted steps on the worst rank; NaN if unknown.

    For one busy thread this is 1 on an idle machine; a larger value shows CPU contention.
    """
    ratios = []
    for rank in launch.outcome.ranks:
        cpu = math.fsum(rank.cpu_seconds[launch.warmup_steps :])
        if cpu > 0:
            ratios.append(math.fsum(rank.wall_seconds[launch.warmup_steps :]) / cpu)
    return max(ratios, default=math.nan)


def launch_warnings(launches: Sequence[Launch]) -> list[ResultWarning]:
    """Warnings about finished launches of one job."""
    finished = [launch for launch in launches if launch.status is Status.FINISHED]
    found: list[ResultWarning] = []
    if len(finished) < FEW_LAUNCHES:
        found.append(
            ResultWarning(
                "too few launches",
                f"{plural(len(finished), 'launch')} cannot show the variance",
                "run 3 or more: measure --launches 5, run --repeat 5",
            )
        )
    contended = [launch for launch in finished if wall_over_cpu(launch) > CONTENDED_WALL_OVER_CPU]
    # Synchronised ranks also wait for each other, so wall over CPU time shows no contention there.
    if contended and not any(launch.synchronised and launch.world_size > 1 for launch in contended):
        worst = max(wall_over_cpu(launch) for launch in contended)
        found.append(
            ResultWarning(
                "CPU contention",
                f"wall time was up to {worst:.2f} times CPU time",
                "stop other programs, or use fewer processes or threads",
            )
        )
    found += _distribution_warnings(finished) + _warm_up_warnings(finished)
    correlations = [autocorrelation(step_seconds(launch), 1) for launch in finished]
    if correlations and statistics.median(correlations) > AUTOCORRELATED:
        found.append(
            ResultWarning(
                "autocorrelation",
                "step times within a launch are correlated, so more steps add little information",
                "add launches rather than steps, or increase --warmup-steps",
            )
        )
    return found


def _distribution_warnings(finished: Sequence[Launch]) -> list[ResultWarning]:
    seconds = [mean_step_seconds(launch) for launch in finished]
    if found := modes(seconds):
        levels = " and ".join(
            f"{plural(one.launches, 'launch')} near {1e3 * one.mean:.3g} ms" for one in found
        )
        return [
            ResultWarning(
                "two modes",
                f"{levels}: the mean describes neither, and the interval spans both",
                "compare their environment, placement and load with 'paceline study show'",
            )
        ]
    if len(finished) < ENOUGH:
        return []
    if are_correlated(seconds):
        return [
            ResultWarning(
                "drift",
                "consecutive launches are correlated: the interval covers the mean of this study, "
                "not that of another one",
                "rank configurations of one study only, in random order, or add studies",
            )
        ]
    from paceline.stats.bootstrap import bootstrap_interval

    other = bootstrap_interval(seconds)
    if other is None or not other.recommendation:
        return []
    message = f"the bootstrap interval is [{other.low:.4g}, {other.high:.4g}] s per step"
    return [ResultWarning("intervals disagree", message, other.recommendation)]


def _warm_up_warnings(finished: Sequence[Launch]) -> list[ResultWarning]:
    """Warning about launches that were not steady when counting began, or never were."""
    from paceline.stats.warmup import Steadiness, steady_state

    checked = [launch for launch in finished if launch.outcome.ranks][-CHECKED_LAUNCHES:]
    states = [(one, steady_state(every_step_seconds(one))) for one in checked]
    unstable = [one for one, state in states if state.kind is Steadiness.UNSTABLE]
    if 2 * len(unstable) > len(checked):
        return [
            ResultWarning(
                "unstable",
                f"step time changed late in {len(unstable)} of {len(checked)} launches",
                "increase --steps, and stop other programs",
            )
        ]
    late = [
        state.warmup_steps
        for one, state in states
        if state.kind is Steadiness.WARM_UP and state.warmup_steps > one.warmup_steps
    ]
    if 2 * len(late) <= len(checked):
        return []
    return [
        ResultWarning(
            "warm-up",
            f"steps up to step {max(late)} were slower, and some of them are counted",
            f"set --warmup-steps {max(late)}",
        )
    ]
