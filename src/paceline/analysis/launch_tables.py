"""Tables and JSON of launches, for `measure`, `study show`, pages and notebooks."""

from collections.abc import Callable, Sequence
from typing import Any

from paceline.analysis.configurations import LaunchGroup, grouped, warning_lines
from paceline.analysis.launch_statistics import mean_step_seconds, throughput, wall_over_cpu
from paceline.render.number_format import Ranged
from paceline.render.table import Cell, Column, Table
from paceline.stats.normality import ENOUGH
from paceline.store import Launch, Status
from paceline.store.tidy_tables import launch_keys

Shown = Callable[[Launch], Cell]
"""Value of a column for a launch."""

COLOCATED = "co-located"
"""Name of launches whose processes ran at the same time without communication."""


def throughput_table(groups: Sequence[LaunchGroup]) -> Table:
    """One row per configuration: throughput and step time over launches."""
    return Table.of(
        groups,
        (Column("configuration"), lambda group: group.description),
        (Column("launches", decimals=0), lambda group: float(group.throughput.launches)),
        (Column("throughput", "samples/s"), lambda group: Ranged.of(group.throughput)),
        (Column("step", "ms", scale=1e3), lambda group: Ranged.of(group.step)),
        (Column("cores used", decimals=2), lambda group: group.cores_used),
        note="± or [low, high] is the 95 % interval of the mean over launches (Student's t on "
        f"logarithms; normality is not tested below {ENOUGH} launches). Throughput: samples of all "
        "processes over the mean step time of the slowest process, without warm-up. Cores used: "
        "CPU time over wall time of the busiest process.",
    )


def launch_table(launches: Sequence[Launch], note: str = "", *, of_one_study: bool) -> Table:
    """One row per launch; launches ``of_one_study`` share a model and show the cores used."""

    def if_done(figure: Callable[[Launch], float]) -> Shown:
        return lambda one: figure(one) if one.status is Status.FINISHED else None

    def status(one: Launch) -> str:
        failed = of_one_study and one.status is not Status.FINISHED
        return f"{one.status}: {one.outcome.reason}" if failed else str(one.status)

    columns: list[tuple[Column, Shown]] = [(Column("launch"), lambda one: one.id)]
    if not of_one_study:
        columns.append((Column("study"), lambda one: one.study))
        columns.append((Column("model"), lambda one: one.model))
    if len({launch.framework for launch in launches}) > 1:
        columns.append((Column("framework"), lambda one: one.framework))
    columns.append((Column("processes", decimals=0), lambda one: float(one.world_size)))
    if not of_one_study:
        columns.append((Column("batch", decimals=0), lambda one: float(one.batch_per_rank)))
    columns += [
        (Column("kind"), launch_kind),
        (Column("status"), status),
        (Column("samples/s"), if_done(throughput)),
        (Column("step", "ms", scale=1e3), if_done(mean_step_seconds)),
    ]
    if of_one_study:
        columns.append((Column("cores used", decimals=2), if_done(lambda one: one.cores_used)))
    return Table.of(launches, *columns, note=note)


def launch_kind(launch: Launch) -> str:
    """Kind of a launch: plain, co-located, or its instrument."""
    if launch.world_size > 1 and not launch.synchronised:
        return COLOCATED
    return "plain" if launch.instrument == "none" else launch.instrument


def warnings_of(launches: Sequence[Launch]) -> list[str]:
    """Warnings about the results, and launches without results."""
    lines = [f"warning: {line}" for line in warning_lines(grouped(launches))]
    lines += [
        f"left out: {launch.id}: unstable, step time changed late"
        for launch in launches
        if launch.status is Status.FINISHED and not launch.is_steady
    ]
    return lines + [
        f"{launch.status}: {launch.id}: {launch.outcome.reason}"
        for launch in launches
        if launch.status is not Status.FINISHED
    ]


def launches_json(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Launches as JSON: settings, outcome, and results of finished ones."""
    return [launch_json(launch) for launch in launches]


def launch_json(launch: Launch) -> dict[str, Any]:
    """One launch as JSON, without its graph and its steps."""
    keys = launch_keys(launch)
    fields: dict[str, Any] = {
        "id": keys.pop("launch"),
        "status": str(launch.status),
        "reason": launch.outcome.reason,
        **keys,
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
    """Everything recorded about one launch except its graph, for `paceline study show`."""
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
