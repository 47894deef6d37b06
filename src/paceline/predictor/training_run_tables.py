"""Training runs as tables and JSON."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paceline.predictor.prediction_tables import (
    differing_columns,
    link_of,
    topology_text,
    with_interval_note,
)
from paceline.predictor.training_run import DAY, HOUR, RangedValue, TrainingRun
from paceline.render.number_format import Ranged
from paceline.render.safe_text import NO_ROOM
from paceline.render.table import Cell, Column, Table
from paceline.units import format_bandwidth, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.search.budget import Limits
    from paceline.predictor.target_efficiency import BandwidthNeeded

_MWH = 3.6e9
"""Joules."""
LONG = 3 * DAY
"""Duration in seconds above which times are shown in days."""


def training_parts(runs: Sequence[TrainingRun]) -> list[str | Table]:
    """One row per topology, and the assumptions."""
    notes = dict.fromkeys(
        f"note: {note}{f' ({_job_text(run.prediction)})' if len(runs) > 1 else ''}"
        for run in runs
        for note in run.notes
    )
    return ["", training_table(runs), *notes]


def training_table(runs: Sequence[TrainingRun]) -> Table:
    """Time, device-hours, price and energy with intervals; empty for plans that do not fit."""
    first, predictions = runs[0], [run.prediction for run in runs]
    one_model = len({own.workload.graph.name for own in predictions}) == 1
    one_length = len({run.steps for run in runs}) == 1
    sizes = dict.fromkeys(format_bytes(run.checkpoint_bytes) for run in runs)
    differing = differing_columns(predictions)
    long = max(run.seconds.value for run in runs) > LONG
    time = Column("time", "days", scale=1 / DAY) if long else Column("time", "h", scale=1 / HOUR)
    amount = f"{format_count(first.samples)} samples"
    if first.tokens is not None:
        amount = f"{format_count(first.tokens)} tokens"
    table = Table.of(
        runs,
        *((column, lambda run, of=of: of(run.prediction)) for column, of in differing),
        (Column("nodes x GPUs"), lambda run: topology_text(run.prediction)),
        *(() if one_length else ((Column("steps", decimals=0), lambda run: run.steps),)),
        (time, lambda run: ranged(run.seconds) if _runs(run) else NO_ROOM),
        (Column("device-hours"), _if_it_runs(lambda run: ranged(run.device_hours))),
        (Column("price"), _if_it_runs(lambda run: ranged(run.price))),
        (
            Column("energy", "MWh", scale=1 / _MWH),
            _if_it_runs(lambda run: ranged(run.energy_joules)),
        ),
        (
            Column("goodput", "%", scale=100.0, decimals=1),
            _if_it_runs(lambda run: run.goodput.value),
        ),
        (Column("failures", decimals=1), _if_it_runs(lambda run: run.failures)),
        (Column("checkpoint every"), _if_it_runs(lambda run: _every(run))),
        title=(f"{predictions[0].workload.graph.name}: " if one_model else "")
        + amount
        + (f", {first.steps:,} steps" if one_length else ""),
        keys=len(differing) + 1,
    )
    return with_interval_note(
        table,
        f"Goodput is the share of productive time with failures, restarts and checkpoints of "
        f"{' or '.join(sizes)} at the optimal interval (Daly 2006) unless given.",
    )


def training_json(run: TrainingRun) -> dict[str, Any]:
    """The same as JSON in SI units; times and prices of a plan that does not fit are null."""
    possible = _runs(run)
    return {
        "model": run.prediction.workload.graph.name,
        "link": link_of(run.prediction),
        "place": topology_text(run.prediction),
        "fits": run.prediction.fits,
        "samples": run.samples,
        "tokens": run.tokens,
        "steps": run.steps,
        "seconds": _json(run.seconds if possible else None),
        "device_hours": _json(run.device_hours if possible else None),
        "price": _json(run.price if possible else None),
        "energy_joules": _json(run.energy_joules if possible else None),
        "goodput": _json(run.goodput),
        "failures": run.failures if possible else None,
        "checkpoint_bytes": run.checkpoint_bytes,
        "checkpoint_every_seconds": run.checkpoint_every_seconds,
        "notes": list(run.notes),
    }


def describe_limits(first: TrainingRun, limits: "Limits") -> str:
    """The recommended topology, and whether the whole interval meets the limits."""
    plan = first.prediction.plan
    how = (
        "with its whole 90 % interval"
        if limits.are_met(first, surely=True)
        else "by its estimate, but not by the upper end of its 90 % interval"
    )
    topology = topology_text(first.prediction)
    return (
        f"{topology} ({plan.label}, zero {plan.zero}, recompute {plan.recompute}) meets the limits "
        f"{how}."
    )


def bandwidth_parts(
    target: float, needed: "Sequence[tuple[Prediction, Sequence[BandwidthNeeded]]]"
) -> list[str | Table]:
    """The bandwidth that each link needs for an efficiency: lines of one job, else a table."""
    scaling = any(own.from_one_node for _, links in needed for own in links)
    against = "a scaling efficiency" if scaling else "an efficiency"
    title = f"For {against} of {target:.0%}{' against one node' if scaling else ''}:"
    if len(needed) == 1:
        lines = [f"  {_bandwidth_text(own)}" for own in needed[0][1]]
        return [title, *(lines or ["  a single device uses no link"])]
    rows = [(prediction, own) for prediction, links in needed for own in links]
    differing = differing_columns([prediction for prediction, _ in needed])
    table = Table.of(
        rows,
        *((column, _of_prediction(of)) for column, of in differing),
        (Column("nodes x GPUs"), lambda row: topology_text(row[0])),
        (Column("changed link"), lambda row: f"{row[1].link} {row[1].scope}"),
        (Column("bandwidth"), lambda row: format_bandwidth(row[1].now)),
        (Column("efficiency", "%", scale=100.0, decimals=1), lambda row: row[1].now_efficiency),
        (Column("needed"), lambda row: _needed_text(row[1])),
        (Column("reached", "%", scale=100.0, decimals=1), lambda row: row[1].reached),
        title=title,
    )
    return [table]


def _needed_text(own: "BandwidthNeeded") -> str:
    return "none is sufficient" if own.needed is None else format_bandwidth(own.needed)


def _of_prediction(of: Callable[["Prediction"], Any]) -> Callable[[Any], Any]:
    return lambda row: of(row[0])


def _bandwidth_text(own: "BandwidthNeeded") -> str:
    now = f"{own.link} {own.scope} ({format_bandwidth(own.now)}, {own.now_efficiency:.0%} now)"
    if own.needed is None:
        return f"{now}: no bandwidth is sufficient; an infinite one gives {own.reached:.1%}"
    if own.needed <= own.now:
        return f"{now}: {format_bandwidth(own.needed)} is sufficient"
    times = own.needed / own.now
    return f"{now}: {format_bandwidth(own.needed)}, {times:.3g} times as much"


def bandwidth_json(
    target: float, needed: "Sequence[tuple[Prediction, Sequence[BandwidthNeeded]]]"
) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "target_efficiency": target,
        "links": [
            {
                "model": prediction.workload.graph.name,
                "cluster": prediction.cluster.name,
                "nodes": prediction.cluster.nodes,
                "devices_per_node": prediction.cluster.devices_per_node,
                "link": own.link,
                "scope": own.scope,
                "bytes_per_second": own.now,
                "efficiency": own.now_efficiency,
                "needed_bytes_per_second": own.needed,
                "efficiency_reached": own.reached,
            }
            for prediction, links in needed
            for own in links
        ],
    }


def _runs(run: TrainingRun) -> bool:
    """Whether the plan fits, so that the run is possible."""
    return run.prediction.fits is not False


def _if_it_runs(shown: Callable[[TrainingRun], Cell]) -> Callable[[TrainingRun], Cell]:
    return lambda run: shown(run) if _runs(run) else None


def _job_text(prediction: "Prediction") -> str:
    job = f"{prediction.workload.graph.name} on {prediction.cluster.name}"
    return f"{job} {topology_text(prediction)}"


def _every(run: TrainingRun) -> str:
    every = run.checkpoint_every_seconds
    if every is None:
        return "never"
    return format_seconds(every) if every < HOUR else f"{every / HOUR:.1f} h"


def ranged(found: RangedValue | None) -> Ranged | None:
    return None if found is None else Ranged(found.value, found.low, found.high)


def _json(found: RangedValue | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"value": found.value, "low_90": found.low, "high_90": found.high}
