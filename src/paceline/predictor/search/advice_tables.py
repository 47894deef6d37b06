"""Advice as tables and JSON."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from paceline.predictor.emit.emit_tables import flags_json
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_json import prediction_json
from paceline.predictor.prediction_tables import notes_of, with_interval_note
from paceline.predictor.prediction_text import plan_text
from paceline.predictor.search import Advice, PlanSearch
from paceline.predictor.training_run import DAY, HOUR
from paceline.predictor.training_run_tables import LONG, ranged, training_json, training_table
from paceline.predictor.uncertainty.ratios import Ratio, throughput_ratio
from paceline.render.number_format import Ranged, rounded
from paceline.render.table import Column, Table
from paceline.units import plural, seconds_unit

if TYPE_CHECKING:
    from paceline.predictor.search.api import Advised, Searched
    from paceline.predictor.training_run import TrainingRun

_LISTED = (
    *("tp", "pp", "dp", "micro_batch", "interleave", "recompute", "recompute_every", "zero"),
    *("shard_group", "sequence_parallel"),
)
"""Fields of plans that do not fit in JSON."""
_EQUAL_COST = 0.005
"""Relative difference of costs that is not shown."""


def describe_search(found: "Advised", seconds: float) -> str:
    """Number of plans tried, search time, and number of plans that fit."""
    searches = found.searches
    tried = sum(one.advice.tried for one in searches)
    fitting = sum(one.advice.fitting for one in searches)
    return f"{plural(tried, 'plan')} tried in {seconds:.1f} s; fitting into memory: {fitting:,}"


def advice_parts(found: "Advised") -> list[str | Table]:
    """One search: its best plans and faster ones that do not fit. Several: the best of each."""
    notes = notes_of([one.prediction for one in found.searches])
    notes = [f"note: {found.note}", *notes] if found.note else notes
    notes += _run_notes(found)
    if len(found.searches) + len(found.not_possible) > 1:
        failed = [f"{one.job}: {one.reason}" for one in found.not_possible]
        return [comparison_table(found), *_conclusions(found), *failed, *notes]
    search = found.searches[0]
    advice = search.advice
    too_large: list[str | Table] = ["", infeasible_table(advice)] if advice.infeasible else []
    training: list[str | Table] = [] if search.run is None else ["", training_table([search.run])]
    return [
        advice_table(found.searches),
        "Losses of plan 1; additional losses of the others:",
        *(f"  {number}  {own.why}" for number, own in enumerate(advice.best, 1)),
        *training,
        *too_large,
        *advice.remedies,
        closing_line(advice),
        *notes,
    ]


def _run_notes(found: "Advised") -> list[str]:
    run = found.searches[0].run
    return [] if run is None else [f"note: {note}" for note in run.notes]


def comparison_table(found: "Advised") -> Table:
    """The best plan of each search, one row each, with the options that differ."""
    searches = found.searches
    factors = [(name, of) for name, of in _FACTORS if len({of(one) for one in searches}) > 1]
    predictions = [one.prediction for one in searches]
    first = {one.search.workload.graph.name: one.prediction for one in reversed(searches)}
    tokens = all(own.tokens_per_second is not None for own in predictions)
    runs = [one.run for one in searches]
    table = Table.of(
        searches,
        *((Column(name, decimals=0), of) for name, of in factors),
        (Column("plan"), lambda one: plan_text(one.prediction)),
        (
            Column("tokens/s" if tokens else "samples/s"),
            lambda one: (
                rounded(_rate(one.prediction, tokens).value)
                if one.run
                else _rate(one.prediction, tokens)
            ),
        ),
        (Column("MFU", "%", scale=100.0, decimals=0), lambda one: one.prediction.utilisation),
        (
            Column("memory", "GB", scale=1e-9, decimals=0),
            lambda one: float(one.prediction.memory.total_bytes),
        ),
        *_run_columns([run for run in runs if run is not None]),
        (Column("vs best"), lambda one: _versus(one, first)),
        title=_title(searches[0], {name for name, _ in factors}, ""),
        keys=len(factors) or 1,
    )
    return with_interval_note(
        table,
        "vs best: ratio of throughputs; errors that both share cancel, so it is more certain.",
    )


def _rate(prediction: Prediction, tokens: bool) -> Ranged:
    factor = (prediction.workload.sequence or 1) if tokens else 1
    low, high = prediction.samples_per_second_interval
    return Ranged(factor * prediction.samples_per_second, factor * low, factor * high)


def _run_columns(
    runs: "Sequence[TrainingRun]",
) -> "list[tuple[Column, Callable[[Searched], Any]]]":
    """Time, cost and cost per token of the training runs."""
    if not runs:
        return []
    long = max(run.seconds.value for run in runs) > LONG
    time = Column("days", scale=1 / DAY) if long else Column("hours", scale=1 / HOUR)
    columns: list[tuple[Column, Callable[[Searched], Any]]] = [
        (time, lambda one: one.run and ranged(one.run.seconds)),
    ]
    if any(run.price is not None for run in runs):
        columns.append((Column("cost", decimals=0), lambda one: _cost(one.run)))
    if any(run.price_per_million_tokens is not None for run in runs):
        columns.append(
            (
                Column("cost / 1M tokens"),
                lambda one: (
                    one.run
                    and one.run.price_per_million_tokens
                    and one.run.price_per_million_tokens.value
                ),
            )
        )
    return columns


def _versus(one: "Searched", first: dict[str, Prediction]) -> str:
    """``0.90 [0.80, 1.01] =``: the ratio, its interval, and a mark of a tie."""
    best = first[one.search.workload.graph.name]
    if one.prediction is best:
        return "1.00"
    ratio = _ratio(one.prediction, best)
    mark = "" if ratio.distinguishable else " ="
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]{mark}"


def _ratio(own: Prediction, best: Prediction) -> Ratio:
    """The ratio of throughputs in tokens where lengths differ, else in samples."""
    ratio = throughput_ratio(own, best)
    longer = (own.workload.sequence or 1) / (best.workload.sequence or 1)
    return Ratio(ratio.value * longer, ratio.low * longer, ratio.high * longer)


def _conclusions(found: "Advised") -> list[str]:
    """Ties, and the cheapest row."""
    first = {one.search.workload.graph.name: one.prediction for one in reversed(found.searches)}
    tied = sum(_versus(one, first).endswith("=") for one in found.searches)
    lines = []
    if tied:
        rows = plural(tied, "row")
        lines.append(f"=: {rows} not distinguishable from the best one; benchmark to decide.")
    priced = [one for one in found.searches if one.run is not None and one.run.price is not None]
    if len(priced) > 1:
        cheapest = min(priced, key=lambda one: _cost(one.run))
        best = priced[0]
        more = _cost(best.run) / _cost(cheapest.run) - 1.0
        if cheapest is best or more < _EQUAL_COST:
            lines.append("The fastest row costs least.")
        else:
            where = _where(cheapest)
            lines.append(f"{where} costs least; the fastest row costs {more:.0%} more.")
    return lines


def _cost(run: "TrainingRun | None") -> float:
    return math.inf if run is None or run.price is None else run.price.value


def _where(one: "Searched") -> str:
    cluster = one.search.cluster
    link = f" with {cluster.inter.name}" if cluster.inter is not None else ""
    return f"{plural(cluster.nodes, 'node')} of {cluster.name}{link}"


_FACTORS: "tuple[tuple[str, Callable[[Searched], Any]], ...]" = (
    ("model", lambda one: one.search.workload.graph.name),
    ("global batch", lambda one: one.search.global_batch),
    ("seq", lambda one: one.search.workload.sequence),
    ("precision", lambda one: one.search.workload.precision),
    ("cluster", lambda one: one.search.cluster.name),
    ("link", lambda one: _link(one.search)),
    ("nodes", lambda one: one.search.cluster.nodes),
    ("GPUs per node", lambda one: one.search.cluster.devices_per_node),
    ("framework", lambda one: one.prediction.framework),
)
"""Options that searches may vary."""


def _link(search: PlanSearch) -> str:
    """The network between nodes; "–" if there is none or only one node."""
    cluster = search.cluster
    return "–" if cluster.inter is None or cluster.nodes == 1 else cluster.inter.name


def advice_table(searches: "Sequence[Searched]") -> Table:
    """The best plans of one search, one row per layout of degrees."""
    search, advice = searches[0].search, searches[0].advice
    best = [own.prediction for own in advice.best]
    plans = [own.plan for own in best]
    scale, unit = seconds_unit(max(own.step_seconds for own in best))
    degrees = ["tp", "pp", "dp"]
    degrees += [name for name in ("cp", "ep") if any(getattr(p, name) > 1 for p in plans)]
    grouped = any(plan.shard_copies > 1 for plan in plans)
    some = any(plan.recompute_every > 1 for plan in plans)
    tokens = search.workload.sequence is not None
    priced = search.cluster.price_per_device_hour is not None
    chunked = any(plan.interleave > 1 for plan in plans)
    table = Table.of(
        list(enumerate(best, 1)),
        (Column("#", decimals=0), lambda row: row[0]),
        *((Column(name, decimals=0), _plan_field(name)) for name in degrees),
        *(((Column("chunks", decimals=0), _plan_field("interleave")),) if chunked else ()),
        (Column("micro", decimals=0), lambda row: row[1].plan.micro_batch or 1),
        (Column("recompute"), lambda row: _describe_recompute(row[1].plan)),
        (Column("zero", decimals=0), _plan_field("zero")),
        *(((Column("shards", decimals=0), _plan_field("shard_degree")),) if grouped else ()),
        (
            Column("step", unit, scale=scale),
            lambda row: Ranged(row[1].step_seconds, *row[1].step_interval_seconds),
        ),
        (
            Column("tokens/s" if tokens else "samples/s"),
            lambda row: rounded(_rate(row[1], tokens).value),
        ),
        (Column("MFU", "%", scale=100.0, decimals=0), lambda row: row[1].utilisation),
        (
            Column("memory", "GB", scale=1e-9, decimals=1),
            lambda row: float(row[1].memory.total_bytes),
        ),
        *(
            ((Column("cost / 1M samples"), lambda row: row[1].price_per_million_samples),)
            if priced
            else ()
        ),
        (Column("vs best", decimals=2), lambda row: _versus_first(row[1], best[0])),
        title=_title(searches[0], (), best[0].framework),
    )
    notes = ["One row per layout of degrees."]
    notes += ["chunks: pipeline chunks per stage."] if chunked else []
    notes += ["+sp: sequence parallel."] if any(p.sequence_parallel for p in plans) else []
    notes += ["every:2: every second block is recomputed."] if some else []
    notes += ["shards: size of a shard group."] if grouped else []
    return with_interval_note(table, " ".join(notes))


def _plan_field(name: str) -> Callable[[tuple[int, Prediction]], int]:
    return lambda row: int(getattr(row[1].plan, name))


def _versus_first(own: Prediction, best: Prediction) -> Ranged:
    ratio = throughput_ratio(own, best)
    return Ranged(1.0) if own is best else Ranged(ratio.value, ratio.low, ratio.high)


def _title(first: "Searched", varied: Collection[str], framework: str) -> str:
    """The options that all searches share."""
    search = first.search
    sequence = search.workload.sequence
    parts = {
        "model": search.workload.graph.name,
        "global batch": f"global batch {search.global_batch:,}"
        + (f" x {sequence:,} tokens" if sequence and "seq" not in varied else ""),
        "precision": search.workload.precision,
    }
    text = ", ".join(part for name, part in parts.items() if name not in varied)
    if "cluster" not in varied:
        text += f" on {search.cluster.name}"
        text += "" if "nodes" in varied else f" {_topology(search)}"
    return text.strip() + (f", {framework}" if framework else "")


def _topology(search: PlanSearch) -> str:
    return f"{search.cluster.nodes}x{search.cluster.devices_per_node}"


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
    """The number of plans that may be the fastest, and the simplest of them."""
    if advice.close == 1:
        return "No other plan is equally fast within the uncertainty of the ratio."
    line = f"{advice.close} plans are not distinguishable from the fastest"
    if advice.simplest == 0:
        return f"{line}; plan 1 is also the simplest of them."
    return f"{line}; plan {advice.simplest + 1} is the simplest of them."


def advice_json(
    searches: "Sequence[Searched]", seconds: float, program: str | None = None
) -> dict[str, Any]:
    """One search as JSON, or a list of several, with the flags of ``program`` if given."""
    found = [
        {
            **_search_json(one.search, one.advice, seconds, program),
            **_vs_best_json(one, searches[0]),
            **({} if one.run is None else {"training": training_json(one.run)}),
        }
        for one in searches
    ]
    return found[0] if len(found) == 1 else {"searches": found}


def _vs_best_json(one: "Searched", best: "Searched") -> dict[str, Any]:
    ratio = _ratio(one.prediction, best.prediction)
    return {"versus_best": {"value": ratio.value, "low_90": ratio.low, "high_90": ratio.high}}


def _search_json(
    search: PlanSearch, advice: Advice, seconds: float, program: str | None
) -> dict[str, Any]:
    return {
        "model": search.workload.graph.name,
        "cluster": search.cluster.name,
        "nodes": search.cluster.nodes,
        "link": None if search.cluster.inter is None else search.cluster.inter.name,
        "global_batch": search.global_batch,
        "precision": search.workload.precision,
        "plans_tried": advice.tried,
        "plans_fitting": advice.fitting,
        "search_seconds": seconds,
        "within_interval_of_best": advice.close,
        "fastest": 0,
        "simplest": advice.simplest,
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
                **{name: getattr(own.plan, name) for name in _LISTED},
                "step_seconds": own.step_seconds,
                "memory_bytes": own.memory_bytes,
                "remedy": own.remedy,
            }
            for own in advice.infeasible
        ],
    }


def _describe_recompute(plan: Plan) -> str:
    return plan.format_recompute + (" +sp" if plan.sequence_parallel else "")
