"""Published measurements and their sources, as tables and JSON."""

from collections.abc import Sequence
from typing import Any

from paceline.render.table import Column, Table
from paceline.units import plural
from paceline.validation.published_row import PublishedRow
from paceline.validation.reference_data import Source
from paceline.validation.row_schema import COLUMNS


def published_table(rows: Sequence[PublishedRow], chosen: int) -> Table:
    """Table of ``rows`` out of ``chosen`` matching ones."""
    more = f"; {len(rows)} shown, --limit or --export for more" if len(rows) < chosen else ""
    return Table.of(
        ((row.configuration, row.throughput) for row in rows),
        (Column("id"), lambda row: row[0].id),
        (Column("framework"), lambda row: row[0].framework),
        (Column("model"), lambda row: row[0].model),
        (Column("prec."), lambda row: row[0].precision),
        (Column("device"), lambda row: row[0].device),
        (Column("nodes x GPUs"), lambda row: f"{row[0].nodes}x{row[0].devices_per_node}"),
        (Column("batch"), lambda row: f"{row[0].global_batch:g}"),
        (Column("rate"), lambda row: f"{row[1]:.5g}"),
        (Column("per s"), lambda row: row[0].throughput_unit),
        note=f"{plural(chosen, 'matching row')}{more}. Batch and throughput are for the whole job.",
    )


def sources_table(sources: Sequence[Source]) -> Table:
    """Sources with their numbers of rows and licences."""
    columns = tuple(Column(name) for name in ("family", "rows", "repository", "licence"))
    rows = tuple((s.family, s.rows, s.repository, s.licence) for s in sources)
    note = "--json and --export also give the file and line of each row."
    return Table(columns, rows, note=note)


def row_json(row: PublishedRow) -> dict[str, Any]:
    """A row as JSON values without unknown fields."""
    values = {name: row.value(column.attribute) for name, column in COLUMNS.items()}
    return {name: value for name, value in values.items() if value not in (None, "")}
