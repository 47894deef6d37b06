"""Launches as tables and as JSON: what `measure`, `list`, `show`, pages and notebooks show."""

from collections.abc import Sequence
from typing import Any

from paceline.analyse.groups import LaunchGroup, doubt_lines, grouped
from paceline.analyse.statistics import mean_step_seconds, throughput, wall_over_cpu
from paceline.report.numbers import Ranged
from paceline.report.table import Cell, Column, Table
from paceline.store import Launch, Status

COLOCATED = "co-located"
"""Processes that ran at once without communication, in one word."""


def throughput_table(groups: Sequence[LaunchGroup]) -> Table:
    """One row per configuration: samples per second and seconds per step over launches."""
    return Table(
        columns=(
            Column("configuration"),
            Column("launches", decimals=0),
            Column("throughput", "samples/s"),
            Column("step", "ms", scale=1e3),
            Column("cores used", decimals=2),
        ),
        rows=tuple(
            (
                group.words,
                float(group.throughput.launches),
                Ranged.of(group.throughput),
                Ranged.of(group.step),
                group.cores_used,
            )
            for group in groups
        ),
        note="± is the 95 % interval of the mean over launches (Student's t); all processes "
        "together, steps of the slowest process, warm-up left out. Cores used: CPU over wall time "
        "of the busiest process.",
    )


def launch_table(launches: Sequence[Launch], note: str = "", *, of_one_study: bool) -> Table:
    """One row per launch; those ``of_one_study`` share a model and show their CPU time."""
    mixed = len({launch.framework for launch in launches}) > 1
    rows: list[tuple[Cell, ...]] = []
    for launch in launches:
        done = launch.status is Status.FINISHED
        reason = f": {launch.outcome.reason}" if of_one_study and not done else ""
        kind = f"{launch.status}{reason}"
        rates = [throughput(launch), mean_step_seconds(launch)] if done else [None, None]
        last = [launch.cores_used if done else None] if of_one_study else []
        what = [] if of_one_study else [launch.study, launch.model]
        who = [launch.framework] if mixed else []
        size = [] if of_one_study else [float(launch.batch_per_rank)]
        rows.append(
            (
                launch.id,
                *what,
                *who,
                float(launch.world_size),
                *size,
                launch_kind(launch),
                kind,
                *rates,
                *last,
            )
        )
    columns = (
        Column("launch"),
        *(() if of_one_study else (Column("study"), Column("model"))),
        *((Column("framework"),) if mixed else ()),
        Column("processes", decimals=0),
        *(() if of_one_study else (Column("batch", decimals=0),)),
        Column("kind"),
        Column("status"),
        Column("samples/s"),
        Column("step", "ms", scale=1e3),
        *((Column("cores used", decimals=2),) if of_one_study else ()),
    )
    return Table(columns, tuple(rows), note=note)


def launch_kind(launch: Launch) -> str:
    """What a launch was for: plain, co-located, or timed in some way."""
    if launch.world_size > 1 and not launch.synchronised:
        return COLOCATED
    return "plain" if launch.instrument == "none" else launch.instrument


def warnings_of(launches: Sequence[Launch]) -> list[str]:
    """Every reason to doubt the figures, and every launch that has none."""
    lines = [f"warning: {line}" for line in doubt_lines(grouped(launches))]
    return lines + [
        f"{launch.status}: {launch.id}: {launch.outcome.reason}"
        for launch in launches
        if launch.status is not Status.FINISHED
    ]


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
            "cores_used": launch.cores_used,
        }
    return fields


def launch_record(launch: Launch) -> dict[str, Any]:
    """Everything recorded of one launch but its graph: what `paceline show` prints."""
    outcome = launch.outcome
    return {
        **launch_json(launch),
        "ended_at": outcome.ended_at,
        "warmup_steps": launch.warmup_steps,
        "job": {key: value for key, value in launch.job.items() if key != "graph"},
        "environment": launch.environment,
        "facts": outcome.facts,
        "ranks": [
            {
                "rank": rank.rank,
                "wall_seconds": list(rank.wall_seconds),
                "cpu_seconds": list(rank.cpu_seconds),
                "losses": list(rank.losses),
            }
            for rank in outcome.ranks
        ],
        "layers": len(outcome.layers),
    }
