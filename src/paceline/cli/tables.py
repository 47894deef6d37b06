"""Launches as tables and as JSON: what `measure`, `list`, `show` and `demo` print alike."""

from collections.abc import Sequence
from typing import Any

import click

from paceline.analyse.groups import LaunchGroup, doubt_lines, grouped
from paceline.analyse.statistics import mean_step_seconds, throughput, wall_over_cpu
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table
from paceline.report.terminal import print_table
from paceline.store import Launch, Status


def print_throughput(launches: Sequence[Launch]) -> None:
    """Throughput of each configuration with its interval, and every reason to doubt it."""
    groups = grouped(launches)
    if groups:
        print_table(throughput_table(groups))
    print_doubts(launches)


def print_doubts(launches: Sequence[Launch]) -> None:
    """Every reason to doubt the figures, and every launch that has none, on standard error."""
    for line in doubt_lines(grouped(launches)):
        click.echo(f"warning: {line}", err=True)
    for launch in launches:
        if launch.status is not Status.FINISHED:
            click.echo(f"{launch.status}: {launch.id}: {launch.outcome.reason}", err=True)


def throughput_table(groups: Sequence[LaunchGroup]) -> Table:
    """One row per configuration: samples per second and seconds per step over launches."""
    return Table(
        columns=(
            Column("configuration"),
            Column("launches", decimals=0),
            Column("throughput", "samples/s"),
            Column("step", "ms", scale=1e3),
            Column("wall/CPU", decimals=2),
        ),
        rows=tuple(
            (
                group.words,
                float(group.throughput.launches),
                Ranged.of(group.throughput),
                Ranged.of(group.step),
                group.wall_over_cpu,
            )
            for group in groups
        ),
        note="± is the 95 % interval of the mean over launches (Student's t); all processes "
        "together, steps of the slowest process, warm-up left out.",
    )


def launches_json(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Launches as JSON: what was asked, how it ended, and the figures of those that finished."""
    return [launch_json(launch) for launch in launches]


def launch_json(launch: Launch) -> dict[str, Any]:
    """One launch as JSON, without its graph and its single steps."""
    fields: dict[str, Any] = {
        "id": launch.id,
        "study": launch.study,
        "created_at": launch.created_at,
        "status": str(launch.status),
        "reason": launch.outcome.reason,
        "provenance": launch.provenance,
        "framework": launch.framework,
        "model": launch.model,
        "nodes": launch.nodes,
        "processes": launch.world_size,
        "batch_per_process": launch.batch_per_rank,
        "precision": launch.precision,
        "instrument": launch.instrument,
        "synchronised": launch.synchronised,
    }
    if launch.status is Status.FINISHED:
        fields |= {
            "throughput_samples_per_second": throughput(launch),
            "step_seconds": mean_step_seconds(launch),
            "wall_over_cpu": wall_over_cpu(launch),
        }
    return fields
