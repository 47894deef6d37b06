"""Files of other programs on their way in: what they tell, as text, as JSON and as launches."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from paceline.cli.step_tables import print_phases
from paceline.errors import InputError
from paceline.measurement.imports import Told, launch_of_log, launch_of_trace
from paceline.measurement.readers import ParsedLog, Rate, RateScope, RateUnit, read_log, readers
from paceline.measurement.traces import ParsedTrace, is_layer_trace, read_trace, trace_format
from paceline.report.table import Column, Table
from paceline.report.terminal import print_table
from paceline.step import breakdown
from paceline.store import Launch
from paceline.units import format_bytes, format_seconds

SHOWN_ROWS = 12
LONG_FILE_BYTES = 20_000_000
BYTES_PER_SECOND = 10_000_000.0
"""How fast files are read, about, for the estimate of a long one."""


@dataclass(frozen=True)
class Imported:
    """One log, or one trace of one or several files."""

    source: Path
    content: ParsedLog | ParsedTrace

    def launch(self, study: str, told: Told) -> Launch | None:
        """The launch it is about; None for a file that is about none (collectives, start-up)."""
        if isinstance(self.content, ParsedTrace):
            if self.content.steps and not self.content.training_steps:
                return None
            return launch_of_trace(self.content, self.source, study, told)
        if self.content.collectives and not self.content.steps:
            return None
        return launch_of_log(self.content, self.source, study, told)


def read_files(paths: Sequence[Path], program: str | None) -> list[Imported]:
    """Read every file; traces together, logs one by one."""
    traces = [path for path in paths if _is_trace(path, program)]
    found = []
    for path in paths:
        if path not in traces:
            _say_if_long(path)
            found.append(Imported(path, _read_log(path, program)))
    if traces:
        for path in traces:
            _say_if_long(path)
        found.append(Imported(traces[0], read_trace(traces, program)))
    return found


def _say_if_long(path: Path) -> None:
    """Files that take more than a few seconds are announced."""
    size = path.stat().st_size if path.is_file() else 0
    if size > LONG_FILE_BYTES:
        seconds = size / BYTES_PER_SECOND
        about = f"about {format_seconds(seconds)}"
        click.echo(f"  reading {path.name}, {format_bytes(size)}, {about}", err=True)


def _is_trace(path: Path, program: str | None) -> bool:
    """Whether a file is a trace; several programs write both logs and traces."""
    if path.is_dir():
        return True
    if program is not None and program not in readers():
        return trace_format(path, program) is not None
    return trace_format(path) is not None


def _read_log(path: Path, program: str | None) -> ParsedLog:
    if program is None and is_layer_trace(path):
        raise InputError(
            f"{path} is a layer-wise trace, which is no launch",
            f"replay it: paceline predict --trace {path} --nodes 8 --link eth_10g",
        )
    return read_log(path, program)


def print_imported(one: Imported) -> None:
    """What a file tells, in a few lines and a table."""
    if isinstance(one.content, ParsedTrace):
        _print_trace(one.source, one.content)
        warnings = one.content.warnings
    else:
        _print_log(one.source, one.content)
        warnings = one.content.warnings
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def imported_json(one: Imported) -> dict[str, Any]:
    """The same facts for programs."""
    content = one.content
    if isinstance(content, ParsedTrace):
        return {
            "source": str(one.source),
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
        "source": str(one.source),
        "kind": "log",
        **document,
        "batch_per_rank": content.batch_per_rank,
        "step_seconds": content.step_seconds,
    }


def _print_log(source: Path, log: ParsedLog) -> None:
    job = [_counted(log.ranks, "process", "processes"), _counted(log.nodes, "node", "nodes")]
    batch = f"{log.global_batch:g} samples per step" if log.global_batch else "batch not told"
    words = [f"{log.program} {log.version}".strip(), log.model, *job, batch]
    click.echo(f"{source.name}: {', '.join(word for word in words if word)}")
    rate, step = log.throughput, log.step_seconds
    if rate is not None:
        click.echo(f"  throughput  {_rate_words(rate)}  ({rate.source})")
    if step is not None:
        counted = sum(record.count for record in log.timed_steps)
        click.echo(f"  step        {format_seconds(step)}  (mean of {counted} steps)")
    for phase, seconds in log.phases.items():
        click.echo(f"  {phase:<11} {format_seconds(seconds)}")
    if log.layers:
        _print_layers(log)
    if log.collectives:
        _print_collectives(log)
    end = "" if log.finished else "; its closing line is missing"
    click.echo(f"  {log.lines} lines, {log.unread_lines} could not be read{end}")


def _counted(number: int | None, one: str, many: str) -> str:
    return "" if not number else f"{number} {one if number == 1 else many}"


def _rate_words(rate: Rate) -> str:
    spread = f" ± {rate.spread_per_second:g}" if rate.spread_per_second else ""
    unit = {RateUnit.SAMPLES: "samples/s", RateUnit.TOKENS: "tokens/s", RateUnit.STEPS: "steps/s"}
    whose = " per device" if rate.scope is RateScope.PER_DEVICE else ""
    digits = 0 if rate.per_second >= 1000 else 2
    return f"{rate.per_second:,.{digits}f}{spread} {unit[rate.unit]}{whose}"


def _print_layers(log: ParsedLog) -> None:
    longest = sorted(log.layers, key=lambda one: -(one.forward_seconds + one.backward_seconds))
    rows = [
        (layer.name, layer.forward_seconds, layer.backward_seconds, layer.gradient_bytes)
        for layer in longest[:SHOWN_ROWS]
    ]
    columns = (
        Column("layer"),
        Column("forward", "ms", scale=1e3),
        Column("backward", "ms", scale=1e3),
        Column("gradient", "kB", scale=1e-3),
    )
    note = f"The {len(rows)} longest of {len(log.layers)} layers."
    print_table(Table(columns, tuple(rows), note=note))


def _print_collectives(log: ParsedLog) -> None:
    rows = [
        (point.operation, format_bytes(point.size_bytes), point.seconds, point.bus_bandwidth)
        for point in log.collectives
        if not point.in_place
    ]
    columns = (
        Column("operation"),
        Column("size"),
        Column("time", "us", scale=1e6),
        Column("bus bandwidth", "GB/s", scale=1e-9),
    )
    note = f"Out of place, {len(rows)} sizes; GB/s are 10^9 bytes per second."
    print_table(Table(columns, tuple(rows[-SHOWN_ROWS:]), note=note))


def _print_trace(source: Path, trace: ParsedTrace) -> None:
    job = [
        _counted(trace.ranks, "process", "processes"),
        _counted(len(trace.steps), "step", "steps"),
    ]
    words = ", ".join(word for word in job if word)
    click.echo(f"{source.name}: {trace.program} trace, {words or 'no step'}")
    step = trace.typical_step
    if step is not None:
        click.echo(f"  typical step ({step.label}): {format_seconds(step.seconds)}")
        print_phases(step)
    click.echo(f"  {trace.unread} events or lines could not be read")
