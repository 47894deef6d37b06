"""Data-parallel scaling curves: `predict` for many numbers of nodes at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import prepare
from paceline.predictor.sweep.data_parallel import DataParallelSweep
from paceline.predictor.sweep.sweep_axes import Points
from paceline.predictor.uncertainty.correction_model import COLD
from paceline.predictor.uncertainty.covariates import Program
from paceline.predictor.uncertainty.intervals import ThroughputInterval, interval, scaling_variance
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
    prepared = prepare(workload, several, replace(plan, dp=several.devices), program=program)
    curve = _Curve(DataParallelSweep(workload, several, plan), nodes)
    applied, fitted = prepared.applied, prepared.fitted
    if fitted is None:
        intervals = [interval(prepared)] * len(nodes)
    else:
        scaling = scaling_variance(fitted, applied, curve.seconds, curve.slowest)
        variances = np.broadcast_to(fitted.variance(COMPUTING.name) + scaling, len(nodes))
        rule = fitted.rule(COLD)
        intervals = [ThroughputInterval.ruled(rule, float(own)) for own in variances]
    steps = map(float, curve.seconds(applied))
    return [CurvePoint(*point) for point in zip(nodes, steps, intervals, strict=True)]


class _Curve:
    """Steps over numbers of nodes as a function of corrections."""

    def __init__(self, sweep: DataParallelSweep, nodes: Sequence[int]) -> None:
        self._sweep = sweep
        self._nodes = np.array(nodes, dtype=float)
        columns = {name: np.full(self._nodes.size, value) for name, value in sweep.base.items()}
        self._points = Points(**columns | {"nodes": self._nodes})
        self._known: dict[StepCorrections, Array] = {}

    def seconds(self, corrections: StepCorrections) -> Array:
        """Seconds of the step on each number of nodes."""
        if corrections not in self._known:
            self._known[corrections] = self._sweep.with_corrections(corrections).at(self._points)
        return self._known[corrections]

    def slowest(self, corrections: StepCorrections) -> Array:
        """Computing time of the slowest device over the mean."""
        workers = self._nodes * self._sweep.cluster.devices_per_node
        return self._sweep.with_corrections(corrections).case.slowest_among(workers)
