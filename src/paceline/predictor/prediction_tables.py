"""Predictions and what-ifs as tables and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paceline.predictor.prediction import Prediction
from paceline.predictor.uncertainty.ratios import throughput_ratio
from paceline.render.number_format import Ranged, rounded
from paceline.render.safe_text import NO_ROOM
from paceline.render.table import Column, Table
from paceline.render.terminal import prose

if TYPE_CHECKING:
    from paceline.predictor.whatif import WhatIf


def prediction_parts(predictions: Sequence[Prediction]) -> list[str | Table]:
    """One prediction as text; several as a table with their notes."""
    if len(predictions) == 1:
        return [str(predictions[0])]
    return [prediction_table(predictions), *notes_of(predictions)]


def notes_of(predictions: Sequence[Prediction]) -> list[str]:
    """The distinct notes of all predictions."""
    notes = dict.fromkeys(note for p in predictions for note in p.notes)
    return [line for note in notes for line in prose(f"note: {note}", " " * 6)]


def prediction_table(predictions: Sequence[Prediction]) -> Table:
    """One row per topology; models, clusters and links have a column if they differ.

    If a plan does not fit, a column after the topology shows it.
    """
    tokens = any(p.tokens_per_second is not None for p in predictions)
    priced = any(p.price_per_million_samples is not None for p in predictions)
    differing = differing_columns(predictions)
    models = {p.workload.graph.name for p in predictions}
    table = Table.of(
        predictions,
        *differing,
        (Column("nodes x GPUs"), topology_text),
        *(((Column("fits"), _fits),) if any(p.fits is False for p in predictions) else ()),
        (Column("plan"), _plan_text(predictions)),
        (
            Column("throughput", "samples/s"),
            lambda p: Ranged(p.samples_per_second, *p.samples_per_second_interval),
        ),
        *(((Column("tokens/s"), lambda p: rounded(p.tokens_per_second)),) if tokens else ()),
        (Column("MFU", "%", scale=100.0, decimals=1), lambda p: p.utilisation),
        (Column("efficiency", "%", scale=100.0, decimals=0), lambda p: p.efficiency),
        (Column("step", "ms", scale=1e3), lambda p: p.step_seconds),
        (Column("compute", "ms", scale=1e3), lambda p: p.compute_seconds),
        (Column("exposed comm.", "ms", scale=1e3), lambda p: p.exposed_communication_seconds),
        (Column("memory", "GB", scale=1e-9, decimals=1), lambda p: float(p.memory.total_bytes)),
        *(((Column("vs first"), _versus(predictions[0])),) if len(models) == 1 else ()),
        *(
            ((Column("price / 1M samples", decimals=2), lambda p: p.price_per_million_samples),)
            if priced
            else ()
        ),
        (Column("bound by"), lambda p: NO_ROOM if p.fits is False else p.bound_by),
        title=_title(predictions),
        keys=len(differing) + 1,
    )
    return with_interval_note(
        table,
        "Efficiency is relative to devices that only compute their share of the arithmetic.",
        *(
            ["vs first: ratio of throughputs, = if not distinguishable."]
            if len(models) == 1
            else []
        ),
    )


def _versus(first: Prediction) -> Callable[[Prediction], str]:
    """``1.92 [1.71, 2.16]``: the ratio of throughputs to the first row, with "=" for a tie."""

    def text(own: Prediction) -> str:
        if own is first:
            return "1.00"
        ratio = throughput_ratio(own, first)
        mark = "" if ratio.distinguishable else " ="
        return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]{mark}"

    return text


def with_interval_note(table: Table, *further: str) -> Table:
    """The table with a note that explains the printed intervals, then ``further`` sentences.

    A column prints ± if all its intervals are symmetric and brackets otherwise, so the note
    follows from the printed text.
    """
    texts = "".join(text for index in range(len(table.columns)) for text in table.texts_of(index))
    signs = [sign for sign, mark in (("±", "±"), ("[ ]", "[")) if mark in texts]
    notes = [f"{signs[0]} is the 90 % interval."] if len(signs) == 1 else []
    notes = ["± and [ ] are 90 % intervals."] if len(signs) == 2 else notes
    return replace(table, note=" ".join([*notes, *further]))


def _plan_text(predictions: Sequence[Prediction]) -> Callable[[Prediction], str]:
    """Degrees of a plan, plus framework, sharding and recomputation if they differ."""
    further: tuple[Callable[[Prediction], str], ...] = (
        lambda p: p.framework,
        lambda p: f"zero {p.plan.zero}",
        lambda p: f"recompute {p.plan.format_recompute}",
    )
    shown = [of for of in further if len({of(p) for p in predictions}) > 1]
    return lambda p: ", ".join([p.plan.label, *(of(p) for of in shown)])


def differing_columns(
    predictions: Sequence[Prediction],
) -> list[tuple[Column, Callable[[Prediction], Any]]]:
    """Columns of the options of workload and cluster that differ between predictions."""
    shown: tuple[tuple[str, Callable[[Prediction], Any]], ...] = (
        ("model", lambda p: p.workload.graph.name),
        ("batch", lambda p: p.workload.batch),
        ("seq", lambda p: p.workload.sequence),
        ("precision", lambda p: p.workload.precision),
        ("cluster", lambda p: p.cluster.name),
        ("link", link_of),
    )
    differing = {name for name, of in shown if len({of(p) for p in predictions}) > 1}
    models = {p.workload.graph.name for p in predictions}
    if len({(p.workload.graph.name, p.workload.sequence) for p in predictions}) == len(models):
        differing -= {"seq"}  # follows from the model
    return [(Column(name), of) for name, of in shown if name in differing]


def _title(predictions: Sequence[Prediction]) -> str:
    """The properties that all predictions share."""
    first = predictions[0]
    parts = []
    if len({p.workload.graph.name for p in predictions}) == 1:
        parts.append(first.workload.graph.name)
    if len({p.workload.batch for p in predictions}) == 1:
        parts.append(f"batch {first.workload.batch} per replica")
    if len({p.workload.precision for p in predictions}) == 1:
        parts.append(first.workload.precision)
    if len({p.cluster.name for p in predictions}) == 1:
        parts = [*parts[:-1], f"{parts[-1] if parts else ''} on {first.cluster.name}".strip()]
    if len({p.framework for p in predictions}) == 1:
        parts.append(first.framework)
    return ", ".join(parts)


def _fits(prediction: Prediction) -> str:
    return {True: "yes", False: NO_ROOM, None: "unknown"}[prediction.fits]


def link_of(prediction: Prediction) -> str:
    """Name of the network between nodes; empty if there is none."""
    link = prediction.cluster.inter
    return "" if link is None else link.name


_WHATIF_TITLES = {
    "resource": "Faster resources (free: upper bound of any improvement)",
    "optimisation": "Other plans",
}


def whatif_table(found: "Sequence[WhatIf]", kind: str) -> Table:
    """Changes of one kind, the largest gain first."""
    fits = {True: "yes", False: NO_ROOM, None: "unknown"}
    return Table.of(
        (item for item in found if item.kind == kind),
        (Column("change"), lambda item: item.change),
        (Column("fits"), lambda item: fits[item.fits]),
        (Column("step", "ms", scale=1e3), lambda item: item.step_seconds),
        (Column("saved", "ms", scale=1e3, signed=True), lambda item: item.saved_seconds),
        (Column("speed-up", decimals=2), lambda item: item.speed_up),
        title=_WHATIF_TITLES[kind],
    )


def whatif_lists_table(found: "Sequence[tuple[Prediction, Sequence[WhatIf]]]", kind: str) -> Table:
    """Changes of one kind for several jobs, with columns for the options that differ."""
    bases = [base for base, _ in found]
    rows = [(base, item) for base, changes in found for item in changes if item.kind == kind]
    fits = {True: "yes", False: NO_ROOM, None: "unknown"}
    keys: list[tuple[Column, Callable[[Any], Any]]] = [
        (column, _of_base(of)) for column, of in differing_columns(bases)
    ]
    if len({(base.cluster.nodes, base.cluster.devices_per_node) for base in bases}) > 1:
        keys.append((Column("nodes x GPUs"), lambda row: topology_text(row[0])))
    return Table.of(
        rows,
        *keys,
        (Column("change"), lambda row: row[1].change),
        (Column("fits"), lambda row: fits[row[1].fits]),
        (Column("step", "ms", scale=1e3), lambda row: row[1].step_seconds),
        (Column("saved", "ms", scale=1e3, signed=True), lambda row: row[1].saved_seconds),
        (Column("speed-up", decimals=2), lambda row: row[1].speed_up),
        title=_WHATIF_TITLES[kind],
    )


def _of_base(of: Callable[[Prediction], Any]) -> Callable[[Any], Any]:
    return lambda row: of(row[0])


def topology_text(prediction: Prediction) -> str:
    """Nodes x devices per node."""
    return f"{prediction.cluster.nodes}x{prediction.cluster.devices_per_node}"


def whatif_json(base: Prediction, changes: "Sequence[WhatIf]") -> dict[str, Any]:
    """A prediction and its what-if changes as JSON."""
    from paceline.predictor.prediction_json import prediction_json

    return {
        "base": prediction_json(base),
        "changes": [
            {
                "kind": item.kind,
                "change": item.change,
                "step_seconds": item.step_seconds,
                "saved_seconds": item.saved_seconds,
                "speed_up": item.speed_up,
                "fits": item.fits,
            }
            for item in changes
        ],
    }
