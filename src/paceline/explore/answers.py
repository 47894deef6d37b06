"""Contents of the page for a state: facts, SVG figures and the equivalent command.

All numbers come from the predictor of `paceline predict`.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any, cast

from paceline.analysis.configurations import LaunchGroup
from paceline.errors import InputError
from paceline.explore.published import published_points
from paceline.explore.state import ExplorerState
from paceline.hardware import Cluster
from paceline.predictor.api import predict
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_text import (
    device_rate_text,
    no_room_lines,
    rate_text,
    utilisation_text,
)
from paceline.predictor.sweep.scaling_curve import scaling_curve
from paceline.render.figures import (
    PhasesInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    draw,
    phase_bar,
)
from paceline.render.number_format import Ranged
from paceline.spec.defaults import complete_job
from paceline.spec.job_options import JobOptions, MeasuredOptions
from paceline.spec.jobs import check_job
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_plan import plan_of, program_of
from paceline.spec.resolve_workload import workload_of
from paceline.units import format_bytes, format_seconds
from paceline.workload.graph import Graph

MOST_COUNTS = 50
MOST_SCHEDULED = 8
"""Limit of node counts for plans whose steps are scheduled individually."""
MOST_MEASURED = 5
"""Limit of lines of measured launches in the figure."""
WIDE, NARROW = 720.0, 360.0


@dataclass(frozen=True)
class AskedJob:
    """A state with its model and cluster resolved."""

    state: ExplorerState
    model: str | Graph
    cluster: Cluster

    @cached_property
    def options(self) -> dict[str, Any]:
        """Keywords of `paceline.predict`, with the defaults that it selects for the state."""
        asked = check_job(self.state.keywords(nodes=self.state.nodes))
        chosen = dict(complete_job(self.model, self.cluster, asked).options)
        return {name: value for name, value in chosen.items() if name != "nodes"}

    @property
    def batch(self) -> int:
        """Samples per replica and step."""
        return workload_of(self.model, 1, check_job(self.options)).batch

    @property
    def replica(self) -> int:
        """Devices per replica."""
        return prod(self.options.get(name, 1) for name in ("tp", "pp", "cp"))

    def predicted(self, nodes: int) -> Prediction:
        """The prediction for ``nodes``."""
        if nodes == self.state.nodes:  # with a note about the selected defaults
            return predict(self.model, self.state.cluster, **self.state.keywords(nodes=nodes))
        options = cast(JobOptions, {**self.options, "nodes": nodes})
        return predict(self.model, self.state.cluster, **options)


def job_of(state: ExplorerState, uploads: Mapping[str, Graph]) -> AskedJob:
    """The job of a state."""
    model = uploads.get(state.model, state.model)
    cluster = cluster_of(state.cluster, check_job(state.keywords(nodes=state.nodes)))
    return AskedJob(state, model, cluster)


def answer(job: AskedJob, measured: Sequence[LaunchGroup] = ()) -> dict[str, Any]:
    """The main view: facts, scaling, phases and memory.

    ``measured`` configurations are drawn over the prediction.
    """
    chosen = job.predicted(job.state.nodes)
    rows = curve_rows(job, chosen)
    published = published_points(chosen, waits=False)
    return {
        "facts": _facts(chosen),
        "figures": {
            "scaling": _scaling(chosen, rows, published, measured),
            "phases": _drawn(
                PhasesInfo((phase_bar(_describe_cluster(chosen.cluster), chosen.breakdown),)),
                (WIDE, NARROW),
            ),
        },
        "memory": {
            "parts": {name: float(size) for name, size in chosen.memory.parts().items()},
            "total_bytes": float(chosen.memory.total_bytes),
            "device_bytes": chosen.device_memory_bytes,
            "words": format_bytes(float(chosen.memory.total_bytes)),
            "fits": chosen.fits,
        },
        "bound_by": chosen.bound_by,
        "notes": list(chosen.notes),
        "command": shlex.join(job.state.command(job.cluster.devices_per_node)),
        "rows": rows,
        "published": published,
    }


def curve_rows(job: AskedJob, chosen: Prediction) -> list[dict[str, float]]:
    """Throughput and its interval on 1 to twice the selected number of nodes."""
    counts = _counts(job)
    try:
        several = [count for count in counts if count > 1]
        rows = [_row_of(job.predicted(1))] if counts[0] == 1 else []
        return rows + _curve(job, several) if several else rows
    except InputError:
        some = _thinned(counts, MOST_SCHEDULED, job.state.nodes)
        known = {job.state.nodes: chosen}
        return [_row_of(known.get(n) or job.predicted(n)) for n in some]


def _curve(job: AskedJob, counts: Sequence[int]) -> list[dict[str, float]]:
    options = check_job(job.options)
    plan = plan_of(None, job.cluster.with_nodes(2).devices, options)
    measured = options.keys() & (MeasuredOptions.__annotations__.keys() - {"tuning"})
    if measured or max(plan.tp, plan.pp, plan.cp, plan.ep) > 1:
        raise InputError("scaling curves support data parallelism only", "predict each topology")
    workload = workload_of(job.model, 1, options)
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


def _facts(p: Prediction) -> list[dict[str, str]]:
    """The key figures of the job, or only that it does not fit."""
    if no_room := no_room_lines(p):
        verdict, _, why = no_room[0].partition(": ")
        return [{"label": "Memory", "value": verdict, "note": why, "kind": "alarm"}]
    slow, fast = map(rate_text, p.samples_per_second_interval)
    low, high = map(format_seconds, p.step_interval_seconds)
    facts = [
        ("Throughput", f"{rate_text(p.samples_per_second)} samples/s", f"{slow} to {fast}, 90 %"),
        ("Step", format_seconds(p.step_seconds), f"{low} to {high}"),
        ("Efficiency", f"{p.efficiency:.0%}", f"bound by {p.bound_by}"),
        ("Per device", device_rate_text(p), utilisation_text(p)),
    ]
    if p.tokens_per_second is not None:
        facts.insert(1, ("Tokens", f"{rate_text(p.tokens_per_second)} tokens/s", ""))
    price = p.price_per_million_samples
    if price is not None:
        facts.append(("Price", rate_text(price), "per million samples"))
    return [{"label": label, "value": value, "note": note} for label, value, note in facts]


def _scaling(
    chosen: Prediction,
    rows: Sequence[Mapping[str, float]],
    published: Sequence[Mapping[str, Any]],
    measured: Sequence[LaunchGroup],
) -> dict[str, str]:
    series = [
        ScalingSeries(
            "predicted",
            tuple(
                ScalingPoint(
                    int(row["devices"]), Ranged(row["samples_per_second"], row["low"], row["high"])
                )
                for row in rows
            ),
            is_predicted=True,
        )
    ]
    for group in dict.fromkeys(row["group"] for row in published):
        own = [row for row in published if row["group"] == group][:MOST_COUNTS]
        points = (ScalingPoint(r["devices"], Ranged(r["samples_per_second"])) for r in own)
        series.append(ScalingSeries(f"{own[0]['framework']} ({own[0]['family']})", tuple(points)))
    series += _measured_series(measured)
    info = ScalingInfo("throughput (samples/s)", tuple(series), "samples/s", ideal=True)
    return _drawn(info, (WIDE, NARROW))


def _measured_series(measured: Sequence[LaunchGroup]) -> list[ScalingSeries]:
    """One line per measured framework, model and batch."""
    points: dict[str, list[ScalingPoint]] = {}
    for group in measured:
        first = group.first
        label = f"measured: {first.model} b={first.batch_per_rank}, {first.framework}"
        point = ScalingPoint(first.world_size, Ranged.of(group.throughput))
        points.setdefault(label, []).append(point)
    shown = list(points.items())[:MOST_MEASURED]
    return [ScalingSeries(label, tuple(own)) for label, own in shown]


def _drawn(info: object, widths: tuple[float, float]) -> dict[str, str]:
    wide, narrow = (draw(info, width) for width in widths)
    return {"wide": wide, "narrow": narrow}


def _describe_cluster(cluster: Cluster) -> str:
    return f"{cluster.nodes}x{cluster.devices_per_node} {cluster.device.name}"
