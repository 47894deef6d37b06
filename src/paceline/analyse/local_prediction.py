"""Predicts a job of this machine at other process or node counts, from its own calibration.

What was measured stays measured: layers, sharing and all-reduce come from launches and the probe;
only their combination (overlap, waiting for the slowest) and networks elsewhere are modelled.
"""

import math
from dataclasses import dataclass, replace

from paceline.analyse.calibration import Calibration
from paceline.analyse.statistics import Estimate
from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.profile import MachineProfile
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.collectives import Group, MeasuredCurve, collective_cost
from paceline.predictor.data_parallel import CollectiveSeconds, LayerTime, data_parallel_step
from paceline.predictor.jitter import expected_maximum_lognormal
from paceline.step import Step, breakdown

INTERVAL_CONFIDENCE = 0.90
NORMAL_QUANTILE = 1.645


@dataclass(frozen=True)
class LocalPrediction:
    """One prediction: seconds per step with a 90 % interval, and what it is made of.

    The step is ``alone_seconds`` (one process, what perfect scaling would give) plus
    ``sharing_seconds`` (ranks on one machine slow each other down) plus ``waiting_seconds`` (the
    slowest of N) plus ``exposed_seconds`` of communication that nothing hides.
    """

    label: str
    workers: int
    samples_per_step: int
    step: Step
    alone_seconds: float
    sharing_seconds: float
    waiting_seconds: float
    exposed_seconds: float
    relative_error: float

    @property
    def step_seconds(self) -> float:
        """Seconds per step."""
        return (
            self.alone_seconds + self.sharing_seconds + self.waiting_seconds + self.exposed_seconds
        )

    @property
    def throughput(self) -> float:
        """Samples per second of all workers."""
        return self.samples_per_step / self.step_seconds

    @property
    def throughput_interval(self) -> tuple[float, float]:
        """90 % interval of the throughput, samples per second."""
        half = NORMAL_QUANTILE * self.relative_error
        return self.throughput * math.exp(-half), self.throughput * math.exp(half)

    @property
    def perfect_throughput(self) -> float:
        """Samples per second if every worker ran as fast as one alone."""
        return self.samples_per_step / self.alone_seconds

    @property
    def efficiency(self) -> float:
        """Throughput over that of perfect scaling."""
        return self.throughput / self.perfect_throughput


def predict_processes(
    calibration: Calibration,
    profile: MachineProfile,
    processes: int,
    synchronisation: Synchronisation | None = None,
) -> LocalPrediction:
    """``processes`` on this machine, from launches that were never synchronised."""
    if processes not in calibration.colocated or processes not in profile.all_reduce:
        raise InputError(
            f"{processes} processes were neither probed nor run side by side here",
            f"'paceline probe --ranks {processes}' and 'paceline measure -j 1x{processes} "
            "--unsynchronised' do that",
        )
    beside = calibration.colocated[processes]
    slowdown = beside.step.mean / calibration.step.mean
    curve = MeasuredCurve.through(
        [(point.size_bytes, point.seconds) for point in profile.all_reduce[processes]]
    )
    step = _step(calibration, slowdown, synchronisation, lambda size: float(curve.seconds(size)))
    return LocalPrediction(
        label=f"{processes} processes",
        workers=processes,
        samples_per_step=calibration.batch_per_rank * processes,
        step=step,
        alone_seconds=calibration.step.mean,
        sharing_seconds=beside.step.mean - calibration.step.mean,
        waiting_seconds=beside.slowest.mean - beside.step.mean,
        exposed_seconds=breakdown(step).exposed_communication_seconds,
        relative_error=_relative_error(beside.step, number("spread.model_error.here")),
    )


def predict_nodes(
    calibration: Calibration,
    link: Link,
    nodes: int,
    synchronisation: Synchronisation | None = None,
) -> LocalPrediction:
    """``nodes`` machines like this one, one process each, joined by ``link``, gloo over it."""
    here = Device("this machine", "", "cpu", {})
    cluster = Cluster("nodes like this one", here, 1, nodes, inter=link)
    cost = collective_cost("all_reduce", Group(nodes, 1), cluster, "gloo")
    step = _step(calibration, 1.0, synchronisation, lambda size: float(cost.seconds(size)))
    alone = calibration.step.mean
    slowest = float(expected_maximum_lognormal(alone, calibration.step_variation, nodes))
    return LocalPrediction(
        label=f"{nodes} nodes, {link.name}",
        workers=nodes,
        samples_per_step=calibration.batch_per_rank * nodes,
        step=step,
        alone_seconds=alone,
        sharing_seconds=0.0,
        waiting_seconds=slowest - alone,
        exposed_seconds=breakdown(step).exposed_communication_seconds,
        relative_error=_relative_error(calibration.step, number("spread.model_error.elsewhere")),
    )


def best_bucket(
    calibration: Calibration, profile: MachineProfile, processes: int, now: LocalPrediction
) -> tuple[float, float]:
    """The bucket size (bytes) that shortens the step most, and the seconds it would gain."""
    candidates = [2.0**power for power in range(16, 25)]
    tried = {
        size: predict_processes(
            calibration, profile, processes, Synchronisation().with_bucket(size)
        ).step_seconds
        for size in candidates
    }
    best = min(tried, key=lambda size: (tried[size], -size))
    return best, now.step_seconds - tried[best]


def _step(
    calibration: Calibration,
    slowdown: float,
    synchronisation: Synchronisation | None,
    all_reduce: CollectiveSeconds,
) -> Step:
    layers = [_slowed(layer, slowdown) for layer in calibration.layers]
    return data_parallel_step(
        layers,
        synchronisation or Synchronisation(),
        all_reduce,
        input_seconds=calibration.input_seconds,
        update_seconds=calibration.update_seconds * slowdown,
    )


def _slowed(layer: LayerTime, slowdown: float) -> LayerTime:
    return replace(
        layer,
        forward_seconds=layer.forward_seconds * slowdown,
        backward_seconds=layer.backward_seconds * slowdown,
    )


def _relative_error(step: Estimate, model_error: float) -> float:
    """Launch-to-launch variation (as far as it is known) and the model's own, together."""
    variation = number("spread.launches.smallest_variation")
    if step.launches > 1:
        variation = max(variation, step.standard_deviation / step.mean)
    return math.hypot(variation * math.sqrt(1 + 1 / step.launches), model_error)
