"""A measured step as a table: what each rank's time went to."""

from paceline.report.table import Column, Table
from paceline.step import Step, breakdown

SHOWN_RANKS = 8


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
    note = "Exposed parts sum to the step; busy time may run under other phases."
    return Table(columns, tuple(rows), note=note + more)
