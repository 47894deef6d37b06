"""Published measurements and who published them, as tables and as JSON."""

from collections.abc import Sequence
from typing import Any

from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.reference import Source
from paceline.analyse.validation.schema import COLUMNS
from paceline.report.table import Column, Table


def published_table(rows: Sequence[Measurement], chosen: int) -> Table:
    """The rows that are shown of those ``chosen``."""
    more = f"; {len(rows)} shown, --limit or --export for more" if len(rows) < chosen else ""
    return Table.of(
        ((row.configuration, row.throughput) for row in rows),
        (Column("id"), lambda row: row[0].id),
        (Column("framework"), lambda row: row[0].framework),
        (Column("model"), lambda row: row[0].model),
        (Column("prec."), lambda row: row[0].precision),
        (Column("device"), lambda row: row[0].device),
        (Column("nodes x dev."), lambda row: f"{row[0].nodes}x{row[0].devices_per_node}"),
        (Column("batch"), lambda row: f"{row[0].global_batch:g}"),
        (Column("rate"), lambda row: f"{row[1]:.5g}"),
        (Column("per s"), lambda row: row[0].throughput_unit),
        note=f"{chosen} rows chosen{more}. Batch and rate are those of the whole job.",
    )


def sources_table(sources: Sequence[Source]) -> Table:
    """Who published how many rows, under which licence."""
    columns = tuple(Column(name) for name in ("family", "rows", "repository", "licence"))
    rows = tuple((s.family, s.rows, s.repository, s.licence) for s in sources)
    note = "Each row also names the file and line it was printed on: --json or --export."
    return Table(columns, rows, note=note)


def row_json(row: Measurement) -> dict[str, Any]:
    """A row as JSON values, without what is not known of it."""
    values = {name: row.value(column.attribute) for name, column in COLUMNS.items()}
    return {name: value for name, value in values.items() if value not in (None, "")}
