"""What a machine's own launches tell for predicting it, how well, and what to run next.

Three things are fitted: the step as a function of the batch, the all-reduce as it ran inside
training against what the probe saw of it alone, and how much launches and steps vary.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyse.calibration import calibrate
from paceline.analyse.groups import LaunchGroup, grouped
from paceline.analyse.local_prediction import (
    MODEL_ERROR_HERE,
    NORMAL_QUANTILE,
    SMALLEST_LAUNCH_VARIATION,
)
from paceline.analyse.statistics import step_seconds
from paceline.errors import InputError
from paceline.hardware.profile import MachineProfile
from paceline.predict.collectives import MeasuredCurve
from paceline.step import Phase
from paceline.store import Launch, Status


@dataclass(frozen=True)
class ComputeCurve:
    """Seconds of a one-process step: ``fixed_seconds`` + ``seconds_per_sample`` x batch.

    ``worst_residual`` is the largest relative distance of a measured batch from the line; it is
    0 by construction with two batches, and tells something from three on.
    """

    fixed_seconds: float
    seconds_per_sample: float
    batches: Mapping[int, float]
    worst_residual: float

    def seconds(self, batch: float) -> float:
        """Seconds of a step with ``batch`` samples."""
        return self.fixed_seconds + self.seconds_per_sample * batch


@dataclass(frozen=True)
class InSituAllReduce:
    """All-reduce inside training: median of its time over what the probe's curve says."""

    ranks: int
    messages: int
    ratio_to_probe: float


@dataclass(frozen=True)
class NextRun:
    """A command that would narrow predictions, and the half-width one may then expect."""

    command: str
    why: str
    half_width: float


@dataclass(frozen=True)
class MachineFit:
    """The fit of one job's launches.

    ``step_variation`` and ``launch_variation`` are coefficients of variation within and between
    launches. ``half_width`` is that of the 90 % interval of predictions here, relative.
    """

    model: str
    launches: int
    compute: ComputeCurve | None
    in_situ: tuple[InSituAllReduce, ...]
    step_variation: float
    launch_variation: float
    half_width: float
    next_runs: tuple[NextRun, ...]


def fit_machine(
    launches: Sequence[Launch], profile: MachineProfile | None, model: str | None = None
) -> MachineFit:
    """Fit the launches of one model; by default that with the most finished launches."""
    finished = [
        launch
        for launch in launches
        if launch.status is Status.FINISHED and launch.provenance == "measured"
    ]
    chosen = model or _commonest(finished)
    own = [launch for launch in finished if launch.model == chosen]
    plain = [
        group
        for group in grouped(own)
        if group.first.instrument == "none" and group.first.world_size == 1
    ]
    if not plain:
        raise InputError(
            f"no finished plain launch of '{chosen}' on one process",
            f"'paceline measure --model {chosen} -j 1x1 --launches 3' makes some",
        )
    within = statistics.fmean(_variation(step_seconds(one)) for g in plain for one in g.launches)
    between = [_between(group) for group in plain if len(group.launches) > 1]
    variation = max(SMALLEST_LAUNCH_VARIATION, statistics.fmean(between) if between else 0.0)
    most = max(len(group.launches) for group in plain)
    half_width = _half_width(variation, most)
    return MachineFit(
        model=chosen,
        launches=len(own),
        compute=_compute_curve(plain),
        in_situ=_in_situ(own, profile),
        step_variation=within,
        launch_variation=variation,
        half_width=half_width,
        next_runs=tuple(_next_runs(own, plain, variation, most, half_width)),
    )


def _commonest(finished: Sequence[Launch]) -> str:
    if not finished:
        raise InputError("no launch has finished yet", "'paceline measure --help' shows how")
    return statistics.mode(launch.model for launch in finished)


def _variation(values: Sequence[float]) -> float:
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def _between(group: LaunchGroup) -> float:
    return group.step.standard_deviation / group.step.mean


def _half_width(variation: float, launches: int) -> float:
    return NORMAL_QUANTILE * math.hypot(variation * math.sqrt(1 + 1 / launches), MODEL_ERROR_HERE)


def _compute_curve(plain: Sequence[LaunchGroup]) -> ComputeCurve | None:
    """Least squares on relative residuals, so that small batches count as much as large ones."""
    points = {group.first.batch_per_rank: group.step.mean for group in plain}
    if len(points) < 2:
        return None
    seconds = np.array(list(points.values()))
    lines = np.stack([np.ones(len(points)), np.array(list(points), dtype=float)], axis=1)
    (fixed, slope), *_ = np.linalg.lstsq(lines / seconds[:, None], np.ones(len(points)), rcond=None)
    worst = float(np.max(np.abs(lines @ [fixed, slope] / seconds - 1)))
    return ComputeCurve(float(fixed), float(slope), points, worst)


def _in_situ(own: Sequence[Launch], profile: MachineProfile | None) -> tuple[InSituAllReduce, ...]:
    """Messages of timed launches: the rank that waited least shows the transfer itself."""
    if profile is None:
        return ()
    found: dict[int, list[float]] = {}
    for launch in own:
        timeline, ranks = launch.outcome.timeline, launch.world_size
        if timeline is None or ranks not in profile.all_reduce or launch.instrument != "phases":
            continue
        curve = MeasuredCurve.through(
            [(point.size_bytes, point.seconds) for point in profile.all_reduce[ranks]]
        )
        shortest: dict[str, tuple[float, float]] = {}
        for task in timeline.tasks:
            if task.phase is Phase.COMMUNICATE and task.size_bytes > 0:
                seconds, size = shortest.get(task.layer, (math.inf, task.size_bytes))
                shortest[task.layer] = (min(seconds, task.seconds), size)
        for seconds, size in shortest.values():
            found.setdefault(ranks, []).append(seconds / float(curve.seconds(size)))
    return tuple(
        InSituAllReduce(ranks, len(ratios), statistics.median(ratios))
        for ranks, ratios in sorted(found.items())
    )


def _next_runs(
    own: Sequence[Launch],
    plain: Sequence[LaunchGroup],
    variation: float,
    most: int,
    half_width: float,
) -> list[NextRun]:
    """Runs that would tell most, the most telling first."""
    first = plain[0].first
    base = f"paceline measure --model {first.model} --batch {first.batch_per_rank}"
    runs = []
    try:
        calibrated = calibrate(own).colocated
    except InputError:
        calibrated = {}
        runs.append(
            NextRun(
                f"{base} -j 1x1 --instrument layers --launches 1",
                "layer times: without them nothing can be predicted",
                half_width,
            )
        )
    if not calibrated:
        runs.append(
            NextRun(
                f"{base} -j 1x2 --unsynchronised --launches 3",
                "what sharing this machine costs",
                half_width,
            )
        )
    if len(plain) < 3:
        other = first.batch_per_rank * 2
        runs.append(
            NextRun(
                f"paceline measure --model {first.model} --batch {other} -j 1x1 --launches 3",
                "the step at another batch, for the batch curve",
                half_width,
            )
        )
    runs.append(
        NextRun(
            f"{base} -j 1x1 --launches {most + 4}",
            f"launches differ by {variation:.1%}",
            _half_width(variation, 2 * most + 4),
        )
    )
    return runs
