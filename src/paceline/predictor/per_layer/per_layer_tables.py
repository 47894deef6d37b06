"""Data or model parallelism per layer as table, lines and JSON."""

from typing import Any

from paceline.predictor.per_layer import PerLayerPlan, Way
from paceline.render.table import Column, Table
from paceline.topology import format_topology
from paceline.units import format_seconds, seconds_unit


def per_layer_parts(plan: PerLayerPlan) -> list[str | Table]:
    """The choice per segment, and the step compared with one choice for all layers."""
    cluster = plan.costs.cluster
    topology = format_topology(cluster.nodes, cluster.devices_per_node)
    name = plan.costs.workload.graph.name
    title = f"{name}, global batch {plan.samples} on {cluster.name} {topology}"
    return [per_layer_table(plan, title), *per_layer_lines(plan)]


def per_layer_table(plan: PerLayerPlan, title: str) -> Table:
    """One row per segment, with the time of each choice."""
    rows = _rows(plan)
    slowest = max(max(row["data_seconds"], row["model_seconds"]) for row in rows)
    scale, unit = seconds_unit(slowest)
    return Table.of(
        rows,
        (Column("from layer"), lambda row: row["first_layer"]),
        (Column("layers", decimals=0), lambda row: row["layers"]),
        (Column("weights", "MB", scale=1e-6, decimals=1), lambda row: row["gradient_bytes"]),
        (Column("gathered", "MB", scale=1e-6, decimals=1), lambda row: row["gathered_bytes"]),
        (Column("data", unit, scale=scale), lambda row: row["data_seconds"]),
        (Column("model", unit, scale=scale), lambda row: row["model_seconds"]),
        (Column("chosen"), lambda row: row["way"]),
        title=title,
        note="data, model: computing plus communication without overlap and update. "
        "gathered: activations that model parallelism exchanges in forward and backward.",
    )


def per_layer_lines(plan: PerLayerPlan) -> list[str]:
    """The chosen step, and the step with one choice for all layers."""
    entries = [("chosen per layer", plan)] + [
        (f"all {way} parallel", plan.all_in(way)) for way in Way
    ]
    return [
        f"{name:20} {format_seconds(own.step.seconds):>10} per step, "
        f"{own.samples / own.step.seconds:,.0f} samples/s"
        for name, own in entries
    ]


def per_layer_json(plan: PerLayerPlan) -> dict[str, Any]:
    """Everything in SI units."""
    costs = plan.costs
    return {
        "model": costs.workload.graph.name,
        "cluster": costs.cluster.name,
        "devices": costs.cluster.devices,
        "global_batch": plan.samples,
        "framework": costs.data.step.job.framework.name,
        "step_seconds": plan.step.seconds,
        "all_data_step_seconds": plan.all_in(Way.DATA).step.seconds,
        "all_model_step_seconds": plan.all_in(Way.MODEL).step.seconds,
        "parts": _rows(plan),
    }


def _rows(plan: PerLayerPlan) -> list[dict[str, Any]]:
    costs = plan.costs
    sharding, layers = costs.model.step.parts.sharding, costs.case_layers(Way.DATA)
    return [
        {
            "first_layer": own.name,
            "layers": len(own.positions),
            "way": str(way),
            "gradient_bytes": sum(layers[i].gradient_bytes for i in own.positions),
            "gathered_bytes": float(sharding.output_bytes(own.source).at(plan.samples)),
            "data_seconds": costs.segment_seconds(number, Way.DATA),
            "model_seconds": costs.segment_seconds(number, Way.MODEL),
        }
        for number, (own, way) in enumerate(zip(plan.segments, plan.ways, strict=True))
    ]
