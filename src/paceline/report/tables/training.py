"""Whole trainings as tables and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paceline.predictor.training_run import DAY, HOUR, RangedValue, TrainingRun
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table
from paceline.units import format_bandwidth, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from paceline.predictor.search.limits import Limits
    from paceline.predictor.target_efficiency import BandwidthNeeded

_MWH = 3.6e9
"""Joules."""
_LONG = 3 * DAY
"""Seconds beyond which times are shown in days."""


def training_parts(runs: Sequence[TrainingRun]) -> list[str | Table]:
    """One row per place, and what was assumed."""
    where = f" on {_place(runs[0])}" if len(runs) > 1 else ""
    return ["", training_table(runs), *(f"note: {note}{where}" for note in runs[0].notes)]


def training_table(runs: Sequence[TrainingRun]) -> Table:
    """Days, device-hours, price and energy with 90 % intervals."""
    first = runs[0]
    long = max(run.seconds.value for run in runs) > _LONG
    time = Column("time", "days", scale=1 / DAY) if long else Column("time", "h", scale=1 / HOUR)
    amount = f"{format_count(first.samples)} samples"
    if first.tokens is not None:
        amount = f"{format_count(first.tokens)} tokens"
    return Table.of(
        runs,
        (Column("place"), lambda run: _place(run)),
        (time, lambda run: _ranged(run.seconds)),
        (Column("device-hours"), lambda run: _ranged(run.device_hours)),
        (Column("price"), lambda run: _ranged(run.price)),
        (Column("energy", "MWh", scale=1 / _MWH), lambda run: _ranged(run.energy_joules)),
        (Column("goodput", "%", scale=100.0, decimals=1), lambda run: run.goodput.value),
        (Column("failures", decimals=1), lambda run: run.failures),
        (Column("checkpoint every"), lambda run: _every(run)),
        title=f"{first.prediction.workload.graph.name}: {amount}, {first.steps:,} steps",
        note="90 % intervals. Goodput is the share of the time that trains, with failures, "
        f"restarts and checkpoints of {format_bytes(first.checkpoint_bytes)} at the interval that "
        "loses least (Daly), unless given.",
    )


def training_json(run: TrainingRun) -> dict[str, Any]:
    """The same for programs; SI units."""
    return {
        "place": _place(run),
        "samples": run.samples,
        "tokens": run.tokens,
        "steps": run.steps,
        "seconds": _json(run.seconds),
        "device_hours": _json(run.device_hours),
        "price": _json(run.price),
        "energy_joules": _json(run.energy_joules),
        "goodput": _json(run.goodput),
        "failures": run.failures,
        "checkpoint_bytes": run.checkpoint_bytes,
        "checkpoint_every_seconds": run.checkpoint_every_seconds,
        "notes": list(run.notes),
    }


def limits_words(first: TrainingRun, limits: "Limits") -> str:
    """Which number of nodes to take, and how sure it is."""
    plan = first.prediction.plan
    how = (
        "by the upper end of the interval too"
        if limits.are_met(first, surely=True)
        else ("by the estimate, not by the upper end of its interval")
    )
    return (
        f"{_place(first)} ({plan.label}, zero {plan.zero}, recompute {plan.recompute}) meets the "
        f"limits {how}."
    )


def bandwidth_words(target: float, needed: "Sequence[BandwidthNeeded]") -> list[str]:
    """What each link would have to carry for an efficiency, in a line each."""
    lines = [f"For an efficiency of {target:.0%}:"]
    for own in needed:
        now = f"{own.link} {own.scope} ({format_bandwidth(own.now)}, {own.now_efficiency:.0%} now)"
        if own.needed is None:
            lines.append(
                f"  {now}: no bandwidth of it is enough; free it would give {own.reached:.0%}"
            )
        elif own.needed <= own.now:
            lines.append(f"  {now}: {format_bandwidth(own.needed)} would do")
        else:
            times = own.needed / own.now
            lines.append(f"  {now}: {format_bandwidth(own.needed)}, {times:.3g} times as much")
    if not needed:
        lines.append("  one device uses no link")
    return lines


def bandwidth_json(target: float, needed: "Sequence[BandwidthNeeded]") -> dict[str, Any]:
    """The same for programs."""
    return {
        "target_efficiency": target,
        "links": [
            {
                "link": own.link,
                "scope": own.scope,
                "bytes_per_second": own.now,
                "efficiency": own.now_efficiency,
                "needed_bytes_per_second": own.needed,
                "efficiency_reached": own.reached,
            }
            for own in needed
        ],
    }


def _place(run: TrainingRun) -> str:
    cluster = run.prediction.cluster
    return f"{cluster.nodes}x{cluster.devices_per_node}"


def _every(run: TrainingRun) -> str:
    every = run.checkpoint_every_seconds
    if every is None:
        return "never"
    return format_seconds(every) if every < HOUR else f"{every / HOUR:.1f} h"


def _ranged(found: RangedValue | None) -> Ranged | None:
    return None if found is None else Ranged(found.value, found.low, found.high)


def _json(found: RangedValue | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"value": found.value, "low_90": found.low, "high_90": found.high}
