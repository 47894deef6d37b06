"""Advice as tables and JSON."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from paceline.predictor.emit.emit_tables import flags_json
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction_json import prediction_json
from paceline.predictor.prediction_tables import notes_of, with_interval_note
from paceline.predictor.search import Advice, PlanSearch
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.units import format_bytes, seconds_unit

if TYPE_CHECKING:
    from paceline.predictor.search.api import Searched


def describe_search(searches: "Sequence[Searched]", seconds: float) -> str:
    """Number of plans tried, search time, and number of plans that fit."""
    first = searches[0].search
    tried = sum(one.advice.tried for one in searches)
    fitting = sum(one.advice.fitting for one in searches)
    devices = {one.search.cluster.devices for one in searches}
    memories = {one.search.cluster.device.known_memory_bytes for one in searches}
    where = f" in {format_bytes(first.cluster.device.known_memory_bytes)}"
    return (
        f"{', '.join(map(str, sorted(devices)))} devices, {tried:,} plans tried in "
        f"{seconds:.1f} s, {fitting:,} fit{where if len(memories) == 1 else ''}"
    )


def advice_parts(searches: "Sequence[Searched]") -> list[str | Table]:
    """The best plans with their losses, and faster plans that do not fit."""
    table = advice_table(searches)
    if len(searches) > 1:
        return [table, *notes_of([one.advice.best[0].prediction for one in searches])]
    advice = searches[0].advice
    too_large: list[str | Table] = ["", infeasible_table(advice)] if advice.infeasible else []
    return [
        table,
        "Losses of plan 1; additional losses of the others:",
        *(f"  {number}  {own.why}" for number, own in enumerate(advice.best, 1)),
        *too_large,
        *advice.remedies,
        closing_line(advice),
        *notes_of([advice.best[0].prediction]),
    ]


_FACTORS: tuple[tuple[str, Callable[[PlanSearch], Any]], ...] = (
    ("model", lambda search: search.workload.graph.name),
    ("global batch", lambda search: float(search.global_batch)),
    ("seq", lambda search: float(search.workload.sequence or 0)),
    ("precision", lambda search: search.workload.precision),
    ("cluster", lambda search: search.cluster.name),
    ("link", lambda search: "" if search.cluster.inter is None else search.cluster.inter.name),
    ("nodes x GPUs", lambda search: f"{search.cluster.nodes}x{search.cluster.devices_per_node}"),
    ("framework", lambda search: search.like.framework or ""),
)
"""Options that searches may vary."""


def advice_table(searches: "Sequence[Searched]") -> Table:
    """The best plans, one row per search and layout of degrees."""
    ranked = [(one.search, own) for one in searches for own in one.advice.best]
    factors = [(name, of) for name, of in _FACTORS if len({of(one.search) for one in searches}) > 1]
    priced = any(one.search.cluster.price_per_device_hour is not None for one in searches)
    scale, unit = seconds_unit(max(own.prediction.step_seconds for _, own in ranked))
    plans = [own.prediction.plan for _, own in ranked]
    degrees = ["tp", "pp", "dp"]
    degrees += [name for name in ("cp", "ep") if any(getattr(p, name) > 1 for p in plans)]
    grouped = any(plan.shard_copies > 1 for plan in plans)
    some = any(plan.recompute_every > 1 for plan in plans)
    numbers = [number for one in searches for number, _ in enumerate(one.advice.best, 1)]
    rows = []
    for number, (search, own) in zip(numbers, ranked, strict=True):
        p, plan = own.prediction, own.prediction.plan
        rows.append(
            (
                *(of(search) for _, of in factors),
                float(number),
                *(float(getattr(plan, name)) for name in degrees),
                float(plan.interleave),
                float(plan.micro_batch or 1),
                _describe_recompute(plan),
                float(plan.zero),
                *([float(plan.shard_degree)] if grouped else []),
                Ranged(p.step_seconds, *p.step_interval_seconds),
                *([p.samples_per_second] if factors else []),
                float(p.memory.total_bytes),
                *([p.price_per_million_samples] if priced else []),
            )
        )
    table = Table(
        columns=(
            *(Column(name, decimals=0) for name, _ in factors),
            Column("#", decimals=0),
            *(Column(name, decimals=0) for name in (*degrees, "chunks", "micro")),
            Column("recompute"),
            Column("zero", decimals=0),
            *([Column("shards", decimals=0)] if grouped else []),
            Column("step", unit, scale=scale),
            *([Column("throughput", "samples/s")] if factors else []),
            Column("memory", "GB", scale=1e-9, decimals=1),
            *([Column("cost / 1M samples", decimals=2)] if priced else []),
        ),
        rows=tuple(rows),
        title=_title(searches[0], {name for name, _ in factors}),
    )
    return with_interval_note(
        table,
        "One row per layout of degrees. chunks: pipeline chunks per stage; +sp: sequence parallel"
        + ("; every:2: every second block is recomputed" if some else "")
        + ("; shards: size of a shard group." if grouped else "."),
    )


def _title(first: "Searched", varied: Collection[str]) -> str:
    """The options that all searches share."""
    search, framework = first.search, first.advice.best[0].prediction.framework
    parts = {
        "model": search.workload.graph.name,
        "global batch": f"global batch {search.global_batch}",
        "precision": search.workload.precision,
    }
    text = ", ".join(part for name, part in parts.items() if name not in varied)
    text += "" if "cluster" in varied else f" on {search.cluster.name}"
    return text.strip() + ("" if "framework" in varied else f", {framework}")


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
    searches: "Sequence[Searched]", seconds: float, program: str | None = None
) -> dict[str, Any]:
    """One search as JSON, or a list of several, with the flags of ``program`` if given."""
    found = [_search_json(one.search, one.advice, seconds, program) for one in searches]
    return found[0] if len(found) == 1 else {"searches": found}


def _search_json(
    search: PlanSearch, advice: Advice, seconds: float, program: str | None
) -> dict[str, Any]:
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
