"""Launches of one job on one machine, as evidence for predictions of other topologies.

Layers, co-location and all-reduce come from launches and the probe; only their combination
(overlap, jitter) and other networks are modelled. Synchronised launches of several processes are
not used, because they are predicted.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.analysis.configurations import JobKey, job_key
from paceline.analysis.launch_statistics import (
    mean_rank_step_seconds,
    mean_step_seconds,
    step_seconds,
)
from paceline.calibration.machine_evidence import with_profile
from paceline.errors import InputError, PacelineError
from paceline.hardware.link import Link
from paceline.hardware.machine_profile import MachineProfile
from paceline.hardware.this_machine import machine_cluster
from paceline.predictor.evidence import Colocated, Evidence
from paceline.predictor.framework_profiles import framework
from paceline.predictor.kernels.layer_traces import traced_graph
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import MIB, Synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.prediction import Prediction
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.predictor.uncertainty.intervals import launch_error
from paceline.stats.estimate import Estimate, estimate, variation
from paceline.step import Phase, breakdown
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.store import Launch, Status
from paceline.units import plural
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload

_BUCKETS = tuple(size * MIB for size in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16))


@dataclass(frozen=True)
class MeasuredJob:
    """One job on one process of this machine, and the contention of co-located processes.

    ``step`` is the plain step of one process over launches, seconds. The layers of ``evidence``
    are scaled so that they, the input and the update sum to it: hooks cost time, so an
    instrumented launch gives the shares and the plain launches the total.
    """

    key: JobKey
    launches: tuple[Launch, ...]
    workload: Workload
    step: Estimate
    evidence: Evidence

    @property
    def layers(self) -> tuple[LayerTime, ...]:
        return self.evidence.layers

    def on_processes(
        self,
        processes: int,
        profile: MachineProfile | None,
        synchronisation: Synchronisation | None = None,
    ) -> Prediction:
        """``processes`` on this machine, from launches that were never synchronised."""
        evidence = with_profile(self.evidence, profile)
        known = evidence.colocation.keys() & evidence.all_reduce.keys()
        if processes > 1 and processes not in known:
            raise InputError(
                f"{processes} processes were neither probed nor run co-located on this machine",
                f"run 'paceline calibrate --ranks {processes}' and 'paceline measure "
                f"-j 1x{processes} --no-sync'",
            )
        plan = self._plan(processes, synchronisation)
        return predict(self.workload, machine_cluster(profile, processes), plan, evidence=evidence)

    def on_nodes(
        self,
        nodes: int,
        link: Link,
        profile: MachineProfile | None = None,
        synchronisation: Synchronisation | None = None,
    ) -> Prediction:
        """``nodes`` machines like this one, one process each, joined by ``link``."""
        cluster = machine_cluster(profile, 1, nodes, link)
        evidence = replace(self.evidence, colocation={})
        return predict(
            self.workload, cluster, self._plan(nodes, synchronisation), evidence=evidence
        )

    def best_bucket(
        self, profile: MachineProfile, processes: int, now: Prediction
    ) -> tuple[float, float]:
        """The bucket size (bytes) that shortens the step most, and the seconds it would gain."""
        tried = {
            size: self.on_processes(
                processes, profile, Synchronisation().with_bucket(size)
            ).step_seconds
            for size in _BUCKETS
        }
        best = min(tried, key=lambda size: (tried[size], -size))
        return best, now.step_seconds - tried[best]

    def _plan(self, workers: int, synchronisation: Synchronisation | None) -> Plan:
        return Plan(
            dp=workers,
            framework=known_framework(self.key.framework),
            synchronisation=synchronisation,
        )


def measured_job(
    launches: Sequence[Launch],
    *,
    batch: int | None = None,
    framework: str | None = None,
    precision: str | None = None,
    sequence: int | None = None,
) -> MeasuredJob:
    """The job with the most launches among those that match the options.

    Launches with another batch, framework, precision, sequence length, number of threads or
    machine are other jobs and are excluded.
    """
    wanted = {"batch": batch, "framework": framework, "precision": precision, "sequence": sequence}
    jobs: dict[JobKey, list[Launch]] = {}
    for launch in launches:
        key = job_key(launch)
        if launch.status is Status.FINISHED and all(
            value in (None, getattr(key, name)) for name, value in wanted.items()
        ):
            jobs.setdefault(key, []).append(launch)
    ready = [key for key, own in jobs.items() if not _missing(own)]
    if not ready:
        missing = min((_missing(own) for own in jobs.values()), key=len, default=["plain"])[0]
        raise InputError(
            f"calibration needs a finished {missing} launch on one process",
            "run 'paceline measure -j 1x1 --instrument none,layers', which collects both kinds",
        )
    chosen = max(ready, key=lambda key: len(jobs[key]))
    return _job(chosen, jobs[chosen])


def _alone(launches: Sequence[Launch], instrument: str) -> list[Launch]:
    return [one for one in launches if one.world_size == 1 and one.instrument == instrument]


def _missing(launches: Sequence[Launch]) -> list[str]:
    kinds = (("none", "plain"), ("layers", "layer-timed"))
    return [kind for instrument, kind in kinds if not _alone(launches, instrument)]


def _job(key: JobKey, launches: Sequence[Launch]) -> MeasuredJob:
    plain, layered = _alone(launches, "none"), _alone(launches, "layers")
    step = estimate([mean_step_seconds(launch) for launch in plain])
    feeding, updating = _input_and_update(layered)
    # Hooks slow layers down, so instrumented launches give shares and plain launches the total.
    layers = _scaled_layers(layered[0], step.mean - feeding - updating)
    evidence = Evidence(
        alone_seconds=step.mean,
        alone_error=_error(step),
        layers=layers,
        input_seconds=feeding,
        update_seconds=updating,
        spread=statistics.fmean(variation(step_seconds(launch)) for launch in plain),
        colocation=_colocated(launches, step),
        source=f"one process as in {plural(len(plain), 'launch')} of {key.description}",
        launches=len(plain),
    )
    return MeasuredJob(key, tuple(launches), _workload(key, plain[0], layers), step, evidence)


def _error(step: Estimate) -> float:
    deviation = step.standard_deviation / step.mean if step.launches > 1 else 0.0
    return launch_error(deviation, step.launches)


def _input_and_update(launches: Sequence[Launch]) -> tuple[float, float]:
    exposed = [
        breakdown(launch.outcome.timeline).exposed
        for launch in launches
        if launch.outcome.timeline is not None
    ]
    if not exposed:
        return 0.0, 0.0
    return (
        statistics.fmean(parts.get(Phase.INPUT, 0.0) for parts in exposed),
        statistics.fmean(parts.get(Phase.UPDATE, 0.0) for parts in exposed),
    )


def _scaled_layers(launch: Launch, compute_seconds: float) -> tuple[LayerTime, ...]:
    layers = launch.outcome.layers
    total = math.fsum(layer.forward_seconds + layer.backward_seconds for layer in layers)
    scale = compute_seconds / total
    return tuple(
        LayerTime(
            layer.name,
            layer.forward_seconds * scale,
            layer.backward_seconds * scale,
            layer.gradient_bytes,
        )
        for layer in layers
    )


def _colocated(launches: Sequence[Launch], alone: Estimate) -> dict[int, Colocated]:
    by_ranks: dict[int, list[Launch]] = {}
    for launch in launches:
        if launch.world_size > 1 and not launch.synchronised and launch.instrument == "none":
            by_ranks.setdefault(launch.world_size, []).append(launch)
    found = {}
    for ranks, group in by_ranks.items():
        mean = estimate([mean_rank_step_seconds(launch) for launch in group])
        slowest = estimate([mean_step_seconds(launch) for launch in group])
        found[ranks] = Colocated(
            mean.mean / alone.mean, slowest.mean / mean.mean, _error(mean), len(group)
        )
    return found


def _workload(key: JobKey, launch: Launch, layers: Sequence[LayerTime]) -> Workload:
    """The graph of the job, or layers with gradient sizes only."""
    document = launch.job.get("graph")
    graph = Graph.from_json(document) if document else None
    names = {node.name for node in graph.nodes} if graph is not None else set()
    if graph is None or not {layer.name for layer in layers} <= names:
        traced = tuple(TracedLayer(x.name, 0.0, 0.0, x.gradient_bytes) for x in layers)
        return Workload(traced_graph(LayerTrace(traced, key.model)), key.batch)
    optimiser = launch.job.get("optimiser") or {}
    name = str(optimiser.get("name", "sgd"))
    momentum = name == "sgd" and optimiser.get("momentum", 0.0) > 0
    name = "sgd_momentum" if momentum else name
    return Workload(graph, key.batch, key.sequence, key.precision, name)


def known_framework(name: str) -> str | None:
    """The framework whose profile predictions use; None, the usual one, if it has none."""
    try:
        return framework(name).name
    except PacelineError:
        return None
