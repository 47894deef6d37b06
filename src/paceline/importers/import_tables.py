"""Text and JSON output of ``paceline import``."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from paceline.importers.imported_files import Imported
from paceline.importers.logs import ParsedLog, Rate, RateScope, RateUnit
from paceline.importers.traces import ParsedTrace
from paceline.render.step_tables import step_table
from paceline.render.table import Column, Table
from paceline.step import breakdown
from paceline.units import format_bytes, format_seconds

SHOWN_ROWS = 12


def imported_parts(imported: Imported) -> list[str | Table]:
    """Summary of an imported file: lines of text and tables."""
    content = imported.content
    if isinstance(content, ParsedTrace):
        return _trace_parts(imported.source, content)
    return _log_parts(imported.source, content)


def imported_json(imported: Imported) -> dict[str, Any]:
    content = imported.content
    if isinstance(content, ParsedTrace):
        return {
            "source": str(imported.source),
            "kind": "trace",
            "program": content.program,
            "ranks": content.ranks,
            "unread": content.unread,
            "warnings": list(content.warnings),
            "steps": [
                {
                    "label": step.label,
                    "step_seconds": step.seconds,
                    "ranks": step.ranks,
                    "exposed_seconds": {str(k): v for k, v in breakdown(step).exposed.items()},
                }
                for step in content.steps
            ],
        }
    document = asdict(content)
    document["layers"] = [
        {**layer, "communication_seconds": dict(layer["communication_seconds"])}
        for layer in document["layers"]
    ]
    return {
        "source": str(imported.source),
        "kind": "log",
        **document,
        "batch_per_rank": content.batch_per_rank,
        "step_seconds": content.step_seconds,
    }


def _log_parts(source: Path, log: ParsedLog) -> list[str | Table]:
    job = [_counted(log.ranks, "process", "processes"), _counted(log.nodes, "node", "nodes")]
    batch = f"{log.global_batch:g} samples per step" if log.global_batch else "batch not stated"
    summary = [f"{log.program} {log.version}".strip(), log.model, *job, batch]
    parts: list[str | Table] = [f"{source.name}: {', '.join(filter(None, summary))}"]
    rate, step = log.throughput, log.step_seconds
    if rate is not None:
        parts.append(f"  throughput  {_describe_rate(rate)}  ({rate.source})")
    if step is not None:
        counted = sum(record.count for record in log.timed_steps)
        parts.append(
            f"  step        {format_seconds(step)}  (mean of {_counted(counted, 'step', 'steps')})"
        )
    if "inferred_from" in log.facts:
        agreeing = log.facts.get("confirmed_by")
        also = f", confirmed by {agreeing}" if agreeing else "; nothing else in the log confirms it"
        parts.append(f"  inferred    step time from '{log.facts['inferred_from']}'{also}")
    for phase, seconds in log.phases.items():
        parts.append(f"  {phase:<11} {format_seconds(seconds)}")
    if log.layers:
        parts.append(_layers_table(log))
    if log.collectives:
        parts.append(_collectives_table(log))
    end = "" if log.finished else "; truncated (no closing line)"
    return [*parts, f"  {log.lines} lines, {log.unread_lines} not understood{end}"]


def _counted(number: int | None, one: str, many: str) -> str:
    return "" if not number else f"{number} {one if number == 1 else many}"


def _describe_rate(rate: Rate) -> str:
    spread = f" ± {rate.spread_per_second:g}" if rate.spread_per_second else ""
    unit = {RateUnit.SAMPLES: "samples/s", RateUnit.TOKENS: "tokens/s", RateUnit.STEPS: "steps/s"}
    scope = " per device" if rate.scope is RateScope.PER_DEVICE else ""
    value = rate.per_second
    if rate.unit is RateUnit.STEPS and value < 1:  # 707 s per step are no readable rate
        return f"{1 / value:.3g} s per step"
    number = f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
    return f"{number}{spread} {unit[rate.unit]}{scope}"


def _layers_table(log: ParsedLog) -> Table:
    longest = sorted(
        log.layers, key=lambda layer: -(layer.forward_seconds + layer.backward_seconds)
    )
    shown = longest[:SHOWN_ROWS]
    return Table.of(
        shown,
        (Column("layer"), lambda layer: layer.name),
        (Column("forward", "ms", scale=1e3), lambda layer: layer.forward_seconds),
        (Column("backward", "ms", scale=1e3), lambda layer: layer.backward_seconds),
        (Column("gradient", "kB", scale=1e-3), lambda layer: layer.gradient_bytes),
        note=f"Slowest {len(shown)} of {len(log.layers)} layers.",
    )


def _collectives_table(log: ParsedLog) -> Table:
    points = [point for point in log.collectives if not point.in_place]
    return Table.of(
        points[-SHOWN_ROWS:],
        (Column("operation"), lambda point: point.operation),
        (Column("size"), lambda point: format_bytes(point.size_bytes)),
        (Column("time", "us", scale=1e6), lambda point: point.seconds),
        (Column("bus bandwidth", "GB/s", scale=1e-9), lambda point: point.bus_bandwidth),
        note=f"Out-of-place results, {len(points)} message sizes. 1 GB/s is 10^9 bytes/s.",
    )


def _trace_parts(source: Path, trace: ParsedTrace) -> list[str | Table]:
    job = [
        _counted(trace.ranks, "process", "processes"),
        _counted(len(trace.steps), "step", "steps"),
    ]
    parts: list[str | Table] = [
        f"{source.name}: {trace.program} trace, {', '.join(filter(None, job)) or 'no step'}"
    ]
    step = trace.typical_step
    if step is not None:
        parts.append(f"  typical step ({step.label}): {format_seconds(step.seconds)}")
        parts.append(step_table(step))
    return [*parts, f"  {trace.unread} events or lines not understood"]
