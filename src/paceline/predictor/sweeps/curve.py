"""Data-parallel predictions over many numbers of nodes at once: what `predict` says of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.predictor.corrections.covariates import Program
from paceline.predictor.corrections.model import COLD
from paceline.predictor.corrections.quantities import COMPUTING
from paceline.predictor.layer_arrays import Array
from paceline.predictor.predict import prepare
from paceline.predictor.step_corrections import StepCorrections
from paceline.predictor.sweeps.axes import Points
from paceline.predictor.sweeps.data_parallel import DataParallelSweep
from paceline.predictor.uncertainty import ThroughputInterval, interval, scaling_variance
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class CurvePoint:
    """The step on so many nodes: seconds, and the interval of throughput over the predicted one."""

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
    """Predictions for each of several ``nodes``, two or more, without scheduling any.

    ``workload`` is what one device trains; ``plan`` gives synchronisation and framework. Raises
    `InputError` for plans that sweeps do not have (sharding, uneven messages).
    """
    several = cluster.with_nodes(2)
    prepared = prepare(workload, several, replace(plan, dp=several.devices), program=program)
    curve = _Curve(DataParallelSweep(workload, several, plan), nodes)
    applied, taught = prepared.applied, prepared.taught
    if taught is None:
        intervals = [interval(prepared)] * len(nodes)
    else:
        scaling = scaling_variance(taught, applied, curve.seconds, curve.slowest)
        variances = np.broadcast_to(taught.variance(COMPUTING.name) + scaling, len(nodes))
        rule = taught.rule(COLD)
        intervals = [ThroughputInterval.ruled(rule, float(own)) for own in variances]
    steps = map(float, curve.seconds(applied))
    return [CurvePoint(*point) for point in zip(nodes, steps, intervals, strict=True)]


class _Curve:
    """Steps over numbers of nodes, under corrections that are still to be named."""

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
        """How much longer the slowest device computes than the mean one."""
        workers = self._nodes * self._sweep.cluster.devices_per_node
        return self._sweep.with_corrections(corrections).case.slowest_among(workers)
