"""Fit of a machine's launches for predictions, its accuracy, and the next runs.

Three quantities are fitted: the step as a function of the batch, the all-reduce in training
against that of the probe, and the variation of launches and steps. The fit is validated on
synchronised launches of several processes, which it does not use.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analysis.configurations import LaunchGroup, grouped, job_key, ran_natively
from paceline.analysis.launch_statistics import step_seconds
from paceline.calibration.measured_job import MeasuredJob, measured_job
from paceline.calibration.prediction_error import compare_processes
from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware.machine_profile import MachineProfile, TrainingColocation, TrainingFit
from paceline.hardware.this_machine import machine_cluster
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.intervals import NORMAL_QUANTILE, combination_error
from paceline.stats.estimate import variation
from paceline.step import Phase
from paceline.store import Launch, Status

_BATCHES_OF_A_CURVE = 3
_FURTHER_LAUNCHES = 4


@dataclass(frozen=True)
class ComputeCurve:
    """Seconds of a one-process step: ``fixed_seconds`` + ``seconds_per_sample`` x batch.

    ``worst_residual`` is the largest relative residual of a measured batch; it is 0 by
    construction with two batches, and informative from three.
    """

    fixed_seconds: float
    seconds_per_sample: float
    batches: Mapping[int, float]
    worst_residual: float

    def seconds(self, batch: float) -> float:
        return self.fixed_seconds + self.seconds_per_sample * batch


@dataclass(frozen=True)
class InSituAllReduce:
    """All-reduce in training: median of its time over that of the probe's curve."""

    ranks: int
    messages: int
    ratio_to_probe: float


@dataclass(frozen=True)
class Check:
    """Seconds per step of synchronised ``processes``: predicted without them, and measured."""

    processes: int
    predicted_seconds: float
    measured_seconds: float
    launches: int

    @property
    def error(self) -> float:
        return self.predicted_seconds / self.measured_seconds - 1.0


@dataclass(frozen=True)
class NextRun:
    """A command that improves the fit; ``half_width`` is that of predictions after it.

    None if nothing can be predicted without it.
    """

    command: str
    why: str
    half_width: float | None


@dataclass(frozen=True)
class MachineFit:
    """The fit of one job's launches: a model in one framework, precision and number of threads.

    ``batch`` is the one with most launches. ``step_variation`` and ``launch_variation`` are
    coefficients of variation within and between launches. ``half_width`` is that of the 90 %
    interval of predictions here, relative; None while nothing can be predicted. ``next_runs``
    are those without which nothing can be, then those that narrow most. ``training`` is what
    the machine's profile keeps of all this.
    """

    model: str
    framework: str
    batch: int
    launches: int
    compute: ComputeCurve | None
    in_situ: tuple[InSituAllReduce, ...]
    step_variation: float
    launch_variation: float
    checks: tuple[Check, ...]
    half_width: float | None
    next_runs: tuple[NextRun, ...]
    training: TrainingFit


def fit_machine(
    launches: Sequence[Launch], profile: MachineProfile | None, model: str | None = None
) -> MachineFit:
    """Fit the launches of one model; by default the one with the most finished launches."""
    finished = [
        launch
        for launch in launches
        if launch.status is Status.FINISHED
        and launch.provenance == "measured"
        and ran_natively(launch)
    ]
    chosen = model or _commonest_model(finished)
    own = _of_commonest_job([launch for launch in finished if launch.model == chosen])
    plain = [
        group
        for group in grouped(own)
        if group.first.instrument == "none" and group.first.world_size == 1
    ]
    if not plain:
        raise InputError(
            f"no finished plain launch of '{chosen}' on one process",
            f"'paceline measure --model {chosen} -j 1x1 --launches 3' collects some",
        )
    main = max(plain, key=lambda group: len(group.launches))
    batch = main.first.batch_per_rank
    within = statistics.fmean(variation(step_seconds(one)) for g in plain for one in g.launches)
    several = [group.step for group in plain if len(group.launches) > 1]
    least = number("spread.launches.smallest_variation")
    differing = [step.standard_deviation / step.mean for step in several]
    between = max(least, statistics.fmean(differing) if differing else 0.0)
    calibration = _measured(own, batch)
    in_situ = _in_situ(own, profile)
    half_width = _half_width(between, len(main.launches)) if calibration is not None else None
    return MachineFit(
        model=chosen,
        framework=main.first.framework,
        batch=batch,
        launches=len(own),
        compute=_compute_curve(plain),
        in_situ=in_situ,
        step_variation=within,
        launch_variation=between,
        checks=_checks(calibration, profile),
        half_width=half_width,
        next_runs=tuple(_next_runs(calibration, profile, plain, main, between)),
        training=TrainingFit(
            job=job_key(main.first).description,
            launches=len(own),
            compute_factor=_compute_factor(calibration, profile),
            step_variation=within,
            launch_variation=between,
            all_reduce_ratio={one.ranks: one.ratio_to_probe for one in in_situ},
            colocation={
                ranks: TrainingColocation(own.slowdown, own.slowest)
                for ranks, own in (calibration.evidence.colocation if calibration else {}).items()
            },
        ),
    )


def _measured(launches: Sequence[Launch], batch: int) -> MeasuredJob | None:
    try:
        return measured_job(launches, batch=batch)
    except InputError:
        return None


def _compute_factor(job: MeasuredJob | None, profile: MachineProfile | None) -> float | None:
    """The measured step of one process over the one that the probe's rates predict."""
    if job is None or profile is None or job.workload.cost.training_flops == 0:
        return None
    alone = predict(job.workload, machine_cluster(profile), Plan())
    return job.step.mean / alone.step_seconds


def _checks(job: MeasuredJob | None, profile: MachineProfile | None) -> tuple[Check, ...]:
    """Predicted and measured steps of several processes."""
    if job is None or profile is None:
        return ()
    known = sorted(job.evidence.colocation.keys() & profile.all_reduce.keys())
    predictions = [job.on_processes(processes, profile) for processes in known]
    return tuple(
        Check(
            one.prediction.devices,
            one.prediction.step_seconds,
            one.measured.step.mean,
            len(one.measured.launches),
        )
        for one in compare_processes(predictions, job.launches, job.key)
        if one.measured is not None
    )


def _of_commonest_job(launches: Sequence[Launch]) -> list[Launch]:
    """Launches that can be fitted together: those of one job, whatever its batch."""
    if not launches:
        return []
    jobs = [job_key(launch)._replace(batch=0) for launch in launches]
    commonest = statistics.mode(jobs)
    return [launch for launch, job in zip(launches, jobs, strict=True) if job == commonest]


def _commonest_model(finished: Sequence[Launch]) -> str:
    if not finished:
        raise InputError("no finished launch", "run 'paceline measure' first")
    return statistics.mode(launch.model for launch in finished)


def _half_width(between: float, launches: int) -> float:
    known = between * math.sqrt(1.0 + 1.0 / launches)
    return NORMAL_QUANTILE * math.hypot(known, combination_error(here=True))


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
        # Ranks that arrive early wait inside the collective; the last one shows the transfer.
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
    calibration: MeasuredJob | None,
    profile: MachineProfile | None,
    plain: Sequence[LaunchGroup],
    main: LaunchGroup,
    between: float,
) -> list[NextRun]:
    """Runs that add missing evidence first, then those that narrow the interval most."""
    base = _measure(main, main.first.batch_per_rank)
    count = len(main.launches)
    runs = []
    if calibration is None:
        runs.append(
            NextRun(
                f"{base} -j 1x1 --instrument layers --launches 1",
                "layer times, which every prediction needs",
                None,
            )
        )
    if calibration is None or not calibration.evidence.colocation:
        why = "contention on this machine, which predictions of several processes per node need"
        runs.append(NextRun(f"{base} -j 1x2 --no-sync --launches 3", why, None))
    if profile is None:
        why = "all-reduce without training, which predictions of synchronised processes need"
        runs.append(NextRun("paceline calibrate", why, None))
    now = _half_width(between, count)
    more = NextRun(
        f"{base} -j 1x1 --launches {count + _FURTHER_LAUNCHES}",
        f"launches vary by {between:.1%} ({count} so far)",
        _half_width(between, 2 * count + _FURTHER_LAUNCHES),
    )
    if len(plain) < _BATCHES_OF_A_CURVE:
        other = 2 * max(group.first.batch_per_rank for group in plain)
        why = f"step time by batch: three batches validate the line, {len(plain)} cannot"
        runs.append(NextRun(f"{_measure(main, other)} -j 1x1 --launches 3", why, now))
    return sorted([*runs, more], key=lambda run: run.half_width or 0.0)


def _measure(group: LaunchGroup, batch: int) -> str:
    """The command that measures the same job with ``batch`` samples."""
    first = group.first
    return f"paceline measure --model {first.model} --batch {batch} --framework {first.framework}"
