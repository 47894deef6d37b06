"""A candidate of the board: its prediction, throughput by nodes and the equivalent command.

All numbers come from the predictor of `paceline predict`.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any, cast

from paceline.analysis.configurations import LaunchGroup
from paceline.errors import InputError
from paceline.explore.published import published_points
from paceline.explore.state import ExplorerState, form_knobs
from paceline.explore.uploads import Upload
from paceline.hardware import Cluster
from paceline.predictor.api import noted, prepared_job
from paceline.predictor.memory.fit_probability import fits_probability
from paceline.predictor.predict import predict_job
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_text import headline, utilisation_text
from paceline.predictor.sweep.scaling_curve import scaling_curve
from paceline.predictor.training_run import DAY
from paceline.spec.defaults import CompleteJob, complete_job
from paceline.spec.job_options import JobOptions, MeasuredOptions
from paceline.spec.jobs import check_job
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_plan import plan_of, plan_options, program_of
from paceline.spec.resolve_workload import workload_of
from paceline.spec.training_options import asks_for_training, training_of
from paceline.units import format_bytes
from paceline.workload.graph import Graph

MOST_COUNTS = 50
MOST_SCHEDULED = 8
"""Limit of node counts for plans whose steps are scheduled individually."""
MOST_MEASURED = 5
"""Limit of measured lines in the chart."""


@dataclass(frozen=True)
class AskedJob:
    """A state with its files resolved.

    ``target`` is the whole cluster or its name, ``cluster`` the part that the job uses.
    """

    state: ExplorerState
    model: str | Graph | None
    target: str | Cluster
    evidence: Mapping[str, Any]
    cluster: Cluster

    def keywords(self) -> JobOptions:
        """Keywords of `paceline.predict` that state this job."""
        return self.state.keywords(nodes=self.state.nodes, **self.evidence)

    @cached_property
    def complete(self) -> CompleteJob:
        """The job with the defaults that `paceline.predict` selects; a search for large models."""
        return complete_job(self.model, self.cluster, check_job(self.keywords()))

    @cached_property
    def options(self) -> dict[str, Any]:
        """Keywords of `paceline.predict`, defaults included, without the number of nodes."""
        chosen = dict(self.complete.options)
        return {name: value for name, value in chosen.items() if name != "nodes"}

    @property
    def network(self) -> str | Graph:
        """The model; layer times alone are none."""
        if self.model is None:
            raise InputError("layer times alone cannot be searched", "select a network")
        return self.model

    @property
    def batch(self) -> int:
        """Samples per replica and step."""
        return self.predicted(self.state.nodes).workload.batch

    @property
    def replica(self) -> int:
        """Devices per replica."""
        return prod(self.options.get(name, 1) for name in ("tp", "pp", "cp"))

    def predicted(self, nodes: int) -> Prediction:
        """The prediction of `paceline.predict` for ``nodes``, with a note on selected defaults."""
        options = cast(JobOptions, {**self.options, "nodes": nodes})
        inputs = prepared_job(self.complete.model, self.target, None, options, None)
        return noted(predict_job(inputs), self.complete.note)


@dataclass(frozen=True)
class BoardColumn:
    """A candidate's prediction, its throughput by nodes and measurements of similar jobs."""

    job: AskedJob
    prediction: Prediction
    rows: Sequence[Mapping[str, float]]
    lines: Sequence[Mapping[str, Any]]

    def document(self) -> dict[str, Any]:
        """The JSON of one column of the board."""
        p, per_node = self.prediction, self.job.cluster.devices_per_node
        return {
            "title": f"{p.workload.graph.name} on {p.cluster.name}, {p.cluster.nodes}x{per_node}",
            "job": headline(p),
            "fits": p.fits,
            "likely": fits_probability(p),
            "unit": "tokens/s" if p.workload.sequence is not None else "samples/s",
            "per_sample": p.workload.sequence or 1,
            "throughput": [p.samples_per_second, *p.samples_per_second_interval],
            "step": {
                "seconds": [p.step_seconds, *p.step_interval_seconds],
                "parts": step_parts(p),
            },
            "utilisation": utilisation_text(p),
            "memory": {
                "parts": {name: float(size) for name, size in p.memory.parts().items()},
                "total_bytes": float(p.memory.total_bytes),
                "device_bytes": p.device_memory_bytes,
                "needed": format_bytes(float(p.memory.total_bytes)),
                "available": None
                if p.device_memory_bytes is None
                else format_bytes(p.device_memory_bytes),
            },
            "training": self._training(),
            "plan": f"{p.plan.label}, {p.framework}",
            "chosen": _placeholders(p),
            "notes": list(p.notes),
            "command": shlex.join(self.job.state.command(per_node)),
            "rows": self.rows,
            "lines": self.lines,
        }

    def _training(self) -> dict[str, Any] | None:
        """Days and cost of the whole training run, if its length is given."""
        given = self.job.state.training
        if not asks_for_training(given):
            return None
        run = training_of(self.prediction, given)
        return {
            "days": asdict(run.seconds.times(1 / DAY)),
            "cost": None if run.price is None else asdict(run.price),
        }


def job_of(state: ExplorerState, uploads: Mapping[str, Upload]) -> AskedJob:
    """The job of a state."""

    def file(name: str) -> Any:
        return uploads[name].value if name in uploads else name or None

    evidence = {name: file(key) for name, key in state.evidence.items() if name != "log"}
    options = state.keywords(nodes=state.nodes, **evidence)
    target = file(state.cluster)
    cluster = cluster_of(target, check_job(options))
    return AskedJob(state, file(state.model), target, evidence, cluster)


def answer(job: AskedJob, measured: Sequence[LaunchGroup] = ()) -> BoardColumn:
    """The prediction of a job; ``measured`` configurations are lines of its chart."""
    chosen = job.predicted(job.state.nodes)
    lines = _published_lines(chosen) + _measured_lines(measured)
    return BoardColumn(job, chosen, curve_rows(job, chosen), lines)


def _placeholders(prediction: Prediction) -> dict[str, str]:
    """The values that empty fields of the form stand for."""
    workload, plan = prediction.workload, prediction.plan
    return {
        **chosen_values(prediction),
        "dp": str(plan.dp),
        "seq": "" if workload.sequence is None else str(workload.sequence),
        "precision": workload.precision,
        "optimizer": workload.optimizer,
        "framework": prediction.framework,
    }


def chosen_values(prediction: Prediction) -> dict[str, str]:
    """The plan and batch as values of the form; an empty value is the default."""
    stated = {**plan_options(prediction.plan), "batch": prediction.workload.batch}
    return {
        name: "" if stated[name] is None else _form_text(stated[name])
        for name in form_knobs()
        if name in stated
    }


def _form_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def step_parts(prediction: Prediction) -> dict[str, float]:
    """Seconds of a step by cause; they sum to the step.

    Computing is the remainder, so the sum is exact where a cause was clamped at zero.
    """
    losses = {name: seconds for name, seconds in prediction.losses.items() if seconds > 0}
    return {"computing": prediction.step_seconds - sum(losses.values()), **losses}


def curve_rows(job: AskedJob, chosen: Prediction) -> list[dict[str, float]]:
    """Throughput and its interval on 1 to twice the selected number of nodes."""
    if "dp" in job.state.options:  # a fixed number of replicas fits one number of nodes only
        return [_row_of(chosen)]
    counts = _counts(job)
    try:
        several = [count for count in counts if count > 1]
        rows = [_row_of(job.predicted(1))] if counts[0] == 1 else []
        rows += _curve(job, several) if several else []
        return [_row_of(chosen) if row["nodes"] == job.state.nodes else row for row in rows]
    except InputError:
        some = _thinned(counts, MOST_SCHEDULED, job.state.nodes)
        found = [chosen if n == job.state.nodes else _possible(job, n) for n in some]
        return [_row_of(each) for each in found if each is not None]


def _possible(job: AskedJob, nodes: int) -> Prediction | None:
    """The prediction, or None where a global batch does not divide among the replicas."""
    try:
        return job.predicted(nodes)
    except InputError:
        return None


def _curve(job: AskedJob, counts: Sequence[int]) -> list[dict[str, float]]:
    options = check_job(job.options)
    plan = plan_of(None, job.cluster.with_nodes(2).devices, options)
    measured = options.keys() & (MeasuredOptions.__annotations__.keys() - {"tuning"})
    split = max(plan.tp, plan.pp, plan.cp, plan.ep) > 1
    if measured or split or "global_batch" in options:
        raise InputError("scaling curves support data parallelism only", "predict each topology")
    workload = workload_of(job.complete.model, 1, options)
    per_node = job.cluster.devices_per_node
    points = scaling_curve(workload, job.cluster, plan, counts, program_of(options))
    rows = []
    for point in points:
        rate = workload.batch * point.nodes * per_node / point.step_seconds
        low, high = rate * point.interval.low, rate * point.interval.high
        rows.append(_row(point.nodes, per_node, point.step_seconds, rate, low, high))
    return rows


def _row_of(prediction: Prediction) -> dict[str, float]:
    cluster, rate = prediction.cluster, prediction.samples_per_second
    interval = prediction.samples_per_second_interval
    return _row(cluster.nodes, cluster.devices_per_node, prediction.step_seconds, rate, *interval)


def _row(
    nodes: int, per_node: int, step: float, rate: float, low: float, high: float
) -> dict[str, float]:
    return {
        "nodes": nodes,
        "devices": nodes * per_node,
        "step_seconds": step,
        "samples_per_second": rate,
        "low": low,
        "high": high,
    }


def _counts(job: AskedJob) -> list[int]:
    """Up to 50 node counts around the selected one, denser at small counts.

    Each is a multiple of the nodes of a replica.
    """
    state, cluster, replica = job.state, job.cluster, job.replica
    least = replica // gcd(replica, cluster.devices_per_node)
    most = 1 if cluster.inter is None else max(8, 2 * state.nodes) // least
    found = set(range(1, most + 1))
    if most > MOST_COUNTS:
        ratio = most ** (1.0 / (MOST_COUNTS - 2))
        found = {round(ratio**power) for power in range(MOST_COUNTS - 1)}
    return sorted({state.nodes, *(least * count for count in found if count <= most)})


def _thinned(counts: Sequence[int], most: int, always: int) -> list[int]:
    wanted = {counts[0] << power for power in range(17)} | {always}
    kept = [count for count in counts if count in wanted]
    return sorted({*kept[-most:], always})


def _published_lines(chosen: Prediction) -> list[dict[str, Any]]:
    """Published throughputs of similar jobs, one line per group of rows."""
    lines: dict[str, dict[str, Any]] = {}
    for row in published_points(chosen, waits=False):
        label = f"published: {row['framework']} ({row['family']})"
        line = lines.setdefault(row["group"], {"label": label, "points": []})
        line["points"].append([row["devices"], row["samples_per_second"]])
    return list(lines.values())[:MOST_COUNTS]


def _measured_lines(measured: Sequence[LaunchGroup]) -> list[dict[str, Any]]:
    """One line per measured framework, model and batch."""
    lines: dict[str, list[list[float]]] = {}
    for group in measured:
        first = group.first
        label = f"measured: {first.model} b={first.batch_per_rank}, {first.framework}"
        lines.setdefault(label, []).append([first.world_size, group.throughput.mean])
    shown = list(lines.items())[:MOST_MEASURED]
    return [{"label": label, "points": points} for label, points in shown]
