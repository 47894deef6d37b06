"""Advice as tables and JSON."""

from typing import Any

from paceline.predictor.emit.emit_tables import flags_json
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction_json import prediction_json
from paceline.predictor.prediction_tables import notes_of, with_interval_note
from paceline.predictor.search import Advice, PlanSearch
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.units import format_bytes, seconds_unit


def describe_search(search: PlanSearch, advice: Advice, seconds: float) -> str:
    """Number of plans tried, search time, and number of plans that fit."""
    memory = format_bytes(search.cluster.device.known_memory_bytes)
    return (
        f"{search.cluster.devices} devices, {advice.tried:,} plans tried in {seconds:.1f} s, "
        f"{advice.fitting:,} fit in {memory}"
    )


def advice_parts(search: PlanSearch, advice: Advice) -> list[str | Table]:
    """The best plans with their losses, and faster plans that do not fit."""
    too_large: list[str | Table] = ["", infeasible_table(advice)] if advice.infeasible else []
    return [
        advice_table(search, advice),
        "Losses of plan 1; additional losses of the others:",
        *(f"  {number}  {own.why}" for number, own in enumerate(advice.best, 1)),
        *too_large,
        *advice.remedies,
        closing_line(advice),
        *notes_of([advice.best[0].prediction]),
    ]


def advice_table(search: PlanSearch, advice: Advice) -> Table:
    """The best plans, one row per layout of degrees."""
    priced = search.cluster.price_per_device_hour is not None
    slowest = max(own.prediction.step_seconds for own in advice.best)
    scale, unit = seconds_unit(slowest)
    plans = [own.prediction.plan for own in advice.best]
    degrees = ["tp", "pp", "dp"]
    degrees += [name for name in ("cp", "ep") if any(getattr(p, name) > 1 for p in plans)]
    grouped = any(plan.shard_copies > 1 for plan in plans)
    some = any(plan.recompute_every > 1 for plan in plans)
    rows = []
    for number, own in enumerate(advice.best, 1):
        p, plan = own.prediction, own.prediction.plan
        cost = [p.price_per_million_samples] if priced else []
        rows.append(
            (
                float(number),
                *(float(getattr(plan, name)) for name in degrees),
                float(plan.interleave),
                float(plan.micro_batch or 1),
                _describe_recompute(plan),
                float(plan.zero),
                *([float(plan.shard_degree)] if grouped else []),
                Ranged(p.step_seconds, *p.step_interval_seconds),
                float(p.memory.total_bytes),
                *cost,
            )
        )
    table = Table(
        columns=(
            Column("#", decimals=0),
            *(Column(name, decimals=0) for name in (*degrees, "chunks", "micro")),
            Column("recompute"),
            Column("zero", decimals=0),
            *([Column("shards", decimals=0)] if grouped else []),
            Column("step", unit, scale=scale),
            Column("memory", "GB", scale=1e-9, decimals=1),
            *([Column("cost / 1M samples", decimals=2)] if priced else []),
        ),
        rows=tuple(rows),
        title=f"{search.workload.graph.name}, global batch {search.global_batch}, "
        f"{search.workload.precision} on {search.cluster.name}, "
        f"{advice.best[0].prediction.framework}",
    )
    return with_interval_note(
        table,
        "One row per layout of degrees. chunks: pipeline chunks per stage; +sp: sequence parallel"
        + ("; every:2: every second block is recomputed" if some else "")
        + ("; shards: size of a shard group." if grouped else "."),
    )


def infeasible_table(advice: Advice) -> Table:
    """Faster plans that do not fit."""
    scale, unit = seconds_unit(max(own.step_seconds for own in advice.infeasible))
    return Table.of(
        advice.infeasible,
        (Column("tp", decimals=0), lambda own: own.plan.tp),
        (Column("pp", decimals=0), lambda own: own.plan.pp),
        (Column("dp", decimals=0), lambda own: own.plan.dp),
        (Column("micro", decimals=0), lambda own: own.plan.micro_batch or 1),
        (Column("recompute"), lambda own: _describe_recompute(own.plan)),
        (Column("zero", decimals=0), lambda own: own.plan.zero),
        (Column("step", unit, scale=scale), lambda own: own.step_seconds),
        (Column("memory", "GB", scale=1e-9, decimals=1), lambda own: own.memory_bytes),
        (Column("remedy"), lambda own: own.remedy),
        title="Faster plans that do not fit",
    )


def closing_line(advice: Advice) -> str:
    """Whether the best plan is certain, or needs a benchmark."""
    if advice.close == 1:
        return "No other plan is equally fast within the uncertainty."
    line = f"{advice.close} plans are equally fast within the uncertainty, the simplest first"
    if advice.fastest == 0:
        return f"{line}: benchmark them."
    first, fastest = (advice.best[i].prediction.step_seconds for i in (0, advice.fastest))
    gain = 1 - fastest / first
    return f"{line}; plan {advice.fastest + 1} may be {gain:.1%} faster: benchmark them."


def advice_json(
    search: PlanSearch, advice: Advice, seconds: float, program: str | None = None
) -> dict[str, Any]:
    """The same as JSON, with the flags of ``program`` if given."""
    return {
        "model": search.workload.graph.name,
        "cluster": search.cluster.name,
        "global_batch": search.global_batch,
        "precision": search.workload.precision,
        "plans_tried": advice.tried,
        "plans_fitting": advice.fitting,
        "search_seconds": seconds,
        "within_interval_of_best": advice.close,
        "fastest": advice.fastest,
        "remedies": list(advice.remedies),
        "best": [
            {
                **prediction_json(own.prediction),
                "why_not_better": own.why,
                **flags_json(own.prediction, program),
            }
            for own in advice.best
        ],
        "faster_but_too_large": [
            {
                "tp": own.plan.tp,
                "pp": own.plan.pp,
                "dp": own.plan.dp,
                "micro_batch": own.plan.micro_batch,
                "interleave": own.plan.interleave,
                "recompute": str(own.plan.recompute),
                "recompute_every": own.plan.recompute_every,
                "zero": own.plan.zero,
                "shard_group": own.plan.shard_group,
                "sequence_parallel": own.plan.sequence_parallel,
                "step_seconds": own.step_seconds,
                "memory_bytes": own.memory_bytes,
                "remedy": own.remedy,
            }
            for own in advice.infeasible
        ],
    }


def _describe_recompute(plan: Plan) -> str:
    return plan.format_recompute + (" +sp" if plan.sequence_parallel else "")
