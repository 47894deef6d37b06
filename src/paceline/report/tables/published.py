"""Published measurements and who published them, as tables and as JSON."""

from collections.abc import Sequence
from typing import Any

from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.reference import Source
from paceline.analyse.validation.schema import COLUMNS
from paceline.report.table import Column, Table


def published_table(rows: Sequence[Measurement], chosen: int) -> Table:
    """The rows that are shown of those ``chosen``."""
    columns = (
        "id",
        "framework",
        "model",
        "prec.",
        "device",
        "nodes x dev.",
        "batch",
        "rate",
        "per s",
    )
    cells = []
    for row in rows:
        what = row.configuration
        cells.append(
            (
                what.id,
                what.framework,
                what.model,
                what.precision,
                what.device,
                f"{what.nodes}x{what.devices_per_node}",
                f"{what.global_batch:g}",
                f"{row.throughput:.5g}",
                what.throughput_unit,
            )
        )
    more = f"; {len(rows)} shown, --limit or --export for more" if len(rows) < chosen else ""
    note = f"{chosen} rows chosen{more}. Batch and rate are those of the whole job."
    return Table(tuple(Column(name) for name in columns), tuple(cells), note=note)


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
