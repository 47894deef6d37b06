"""Predictions and what-ifs as tables and as JSON."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paceline.predictor.prediction import Prediction
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table

if TYPE_CHECKING:
    from paceline.predictor.whatif import WhatIf


def prediction_parts(predictions: Sequence[Prediction]) -> list[str | Table]:
    """One prediction in words; several as a table, with what is to be noted of them."""
    if len(predictions) == 1:
        return [str(predictions[0])]
    return [prediction_table(predictions), *notes_of(predictions)]


def notes_of(predictions: Sequence[Prediction]) -> list[str]:
    """What is to be noted of any of them, each once."""
    notes = dict.fromkeys(note for p in predictions for note in p.notes)
    return [f"note: {note}" for note in notes]


def prediction_table(predictions: Sequence[Prediction]) -> Table:
    """One row per place; models, clusters and links have a column where they differ."""
    tokens = any(p.tokens_per_second is not None for p in predictions)
    optional: list[tuple[Column, Callable[[Prediction], Any]]] = [
        (Column(title), shown)
        for title, shown in (
            ("model", lambda p: p.workload.graph.name),
            ("cluster", lambda p: p.cluster.name),
            ("link", _link),
        )
        if len({shown(p) for p in predictions}) > 1
    ]
    return Table.of(
        predictions,
        *optional,
        (Column("place"), lambda p: f"{p.cluster.nodes}x{p.cluster.devices_per_node}"),
        (Column("plan"), lambda p: p.plan.label),
        (
            Column("throughput", "samples/s"),
            lambda p: Ranged(p.samples_per_second, *p.samples_per_second_interval),
        ),
        *(((Column("tokens/s"), lambda p: p.tokens_per_second),) if tokens else ()),
        (Column("MFU", "%", scale=100.0, decimals=1), lambda p: p.utilisation),
        (Column("efficiency", "%", scale=100.0, decimals=0), lambda p: p.efficiency),
        (Column("step", "ms", scale=1e3), lambda p: p.step_seconds),
        (Column("compute", "ms", scale=1e3), lambda p: p.compute_seconds),
        (Column("exposed comm.", "ms", scale=1e3), lambda p: p.exposed_communication_seconds),
        (Column("memory", "GB", scale=1e-9, decimals=1), lambda p: float(p.memory.total_bytes)),
        (Column("bound by"), lambda p: p.bound_by if p.fits is not False else "does NOT fit"),
        title=_title(predictions),
        note="± is a 90 % interval. Efficiency is against every device spending all its time on "
        "its share of the arithmetic.",
    )


def _title(predictions: Sequence[Prediction]) -> str:
    """What all of them have in common."""
    first = predictions[0]
    words = []
    if len({p.workload.graph.name for p in predictions}) == 1:
        words.append(first.workload.graph.name)
    words.append(f"batch {first.workload.batch} per replica")
    words.append(first.workload.precision)
    if len({p.cluster.name for p in predictions}) == 1:
        words[-1] += f" on {first.cluster.name}"
    return ", ".join([*words, first.framework])


def _link(prediction: Prediction) -> str:
    link = prediction.cluster.inter
    return "" if link is None else link.name


def whatif_table(found: "Sequence[WhatIf]", kind: str) -> Table:
    """What one kind of change would give, the largest gain first."""
    title = {
        "resource": "If a resource were faster (free: the most any improvement of it can give)",
        "optimisation": "If the plan were another one",
    }[kind]
    fits = {True: "yes", False: "NO", None: "unknown"}
    return Table.of(
        (item for item in found if item.kind == kind),
        (Column("change"), lambda item: item.change),
        (Column("step", "ms", scale=1e3), lambda item: item.step_seconds),
        (Column("saved", "ms", scale=1e3, signed=True), lambda item: item.saved_seconds),
        (Column("speed-up", decimals=2), lambda item: item.speed_up),
        (Column("fits"), lambda item: fits[item.fits]),
        title=title,
    )


def whatif_json(base: Prediction, changes: "Sequence[WhatIf]") -> dict[str, Any]:
    """A prediction and what changes to it would give, for programs."""
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
