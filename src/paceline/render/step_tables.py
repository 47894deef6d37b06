"""Measured steps as tables: time by rank and phase, of one step and in the mean."""

from paceline.render.table import Column, Table
from paceline.step import Step, breakdown
from paceline.step.difference import StepDifference
from paceline.step.step_profile import StepProfile
from paceline.units import plural

SHOWN_RANKS = 8
SHOWN_TASKS = 10


def step_table(step: Step) -> Table:
    """Exposed and busy milliseconds by rank and phase, of the first ranks."""
    rows: list[tuple[str, str, float, float | None]] = []
    for rank in step.ranks[:SHOWN_RANKS]:
        parts = breakdown(step, rank)
        rows.extend(
            (f"rank {rank}", str(phase), seconds, parts.busy.get(phase))
            for phase, seconds in parts.exposed.items()
        )
    columns = (
        Column("rank"),
        Column("phase"),
        Column("exposed", "ms", scale=1e3),
        Column("busy", "ms", scale=1e3),
    )
    more = f" {len(step.ranks) - SHOWN_RANKS} more ranks." if len(step.ranks) > SHOWN_RANKS else ""
    note = "Exposed times sum to the step; busy time may overlap other phases."
    return Table(columns, tuple(rows), note=note + more)


def ranks_table(profile: StepProfile) -> Table:
    """Mean milliseconds by rank and phase, and how often each rank was last."""
    phases = list(dict.fromkeys(phase for rank in profile.ranks for phase in rank.phases))
    more = len(profile.ranks) - SHOWN_RANKS
    return Table(
        (
            Column("rank"),
            *(Column(str(p), "ms", scale=1e3, decimals=1) for p in phases),
            Column("last in", "%", scale=1e2, decimals=0),
        ),
        tuple(
            (str(rank.rank), *(rank.phases.get(p) for p in phases), rank.last_share)
            for rank in profile.ranks[:SHOWN_RANKS]
        ),
        note=f"Mean of {plural(profile.steps, 'step')}. Communication is "
        "exposed time including waiting; the rank that waits least is the straggler."
        + (f" {more} more ranks." if more > 0 else ""),
    )


def difference_tables(difference: StepDifference, before: str, after: str) -> list[Table]:
    """Two steps by phase, changes summing to that of the step; the tasks that changed most."""
    phases = [
        (str(change.phase), change.before_seconds, change.after_seconds, change.seconds)
        for change in difference.phases
    ]
    whole = (difference.before_seconds, difference.after_seconds)
    columns = (
        Column(before, "ms", scale=1e3, decimals=2),
        Column(after, "ms", scale=1e3, decimals=2),
        Column("change", "ms", scale=1e3, decimals=2),
    )
    changed = [change for change in difference.tasks[:SHOWN_TASKS] if abs(change.seconds) > 0]
    tables = [
        Table(
            (Column("phase, exposed"), *columns),
            (*phases, ("step", *whole, whole[1] - whole[0])),
            note="The slowest rank of each step.",
        )
    ]
    if changed:
        tables.append(
            Table(
                (Column("task"), Column("tasks"), *columns),
                tuple(
                    (
                        change.name,
                        f"{change.before_tasks}, {change.after_tasks}",
                        change.before_seconds,
                        change.after_seconds,
                        change.seconds,
                    )
                    for change in changed
                ),
                note="Busy time of tasks by name and order, the largest changes first.",
            )
        )
    return tables
