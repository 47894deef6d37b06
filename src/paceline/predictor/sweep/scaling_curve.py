"""Data-parallel scaling curves: `predict` for many numbers of nodes at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict_job, prepare
from paceline.predictor.sweep.data_parallel import DataParallelSweep
from paceline.predictor.sweep.sweep_axes import Points
from paceline.predictor.uncertainty.applied_corrections import slowest_among
from paceline.predictor.uncertainty.correction_model import COLD
from paceline.predictor.uncertainty.covariates import Program
from paceline.predictor.uncertainty.intervals import ThroughputInterval, scaling_variance
from paceline.predictor.uncertainty.quantities import COMPUTING
from paceline.predictor.uncertainty.step_corrections import StepCorrections
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class CurvePoint:
    """The step on ``nodes`` nodes, with the interval as factors on throughput."""

    nodes: int
    step_seconds: float
    interval: ThroughputInterval


def scaling_curve(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    nodes: Sequence[int],
    program: Program | None = None,
) -> list[CurvePoint]:
    """Predictions for several numbers of ``nodes`` (2 or more), vectorised.

    ``workload`` is that of one device; ``plan`` gives synchronisation and framework. Raises
    `InputError` for plans that sweeps do not support (recomputation, shard groups, several
    micro-batches, messages that depend on times): use `predict` for each point.
    """
    several = cluster.with_nodes(2)
    job = prepare(workload, several, replace(plan, dp=several.devices), program=program)
    sweep = DataParallelSweep(workload, several, plan)
    counts = np.array(nodes, dtype=float)
    columns = {name: np.full(counts.size, value) for name, value in sweep.base.items()}
    points = Points(**columns | {"nodes": counts})

    @lru_cache(maxsize=8)
    def seconds_of(corrections: StepCorrections) -> Array:
        return sweep.at(points, corrections)

    def slowest_of(corrections: StepCorrections) -> Array:
        return slowest_among(sweep.job, corrections, counts * several.devices_per_node)

    if job.fitted is None:
        intervals = [predict_job(job).interval] * len(nodes)
    else:
        scaling = scaling_variance(job.fitted, job.corrections, seconds_of, slowest_of)
        variances = np.broadcast_to(job.fitted.variance(COMPUTING.name) + scaling, len(nodes))
        rule = job.fitted.rule(COLD)
        intervals = [ThroughputInterval.ruled(rule, float(own)) for own in variances]
    steps = map(float, seconds_of(job.corrections))
    return [CurvePoint(*point) for point in zip(nodes, steps, intervals, strict=True)]
