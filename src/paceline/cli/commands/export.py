"""``paceline export``: export launches as tidy tables."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline export launches.csv
  paceline export steps.parquet --table steps --study resnet44-1115-2140
"""


@click.command(epilog=EXAMPLE)
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--table",
    type=click.Choice(["launches", "steps", "phases", "layers"]),
    default="launches",
    show_default=True,
    help="One row per launch, per step or phase of each rank, or per layer.",
)
@click.option("--study", metavar="NAME", help="Export only this study.")
@store_option
@json_option
def command(
    path: Path, table: str, study: str | None, store_path: Path | None, as_json: bool
) -> None:
    """Export launches as a tidy table; the suffix of PATH selects CSV or Parquet.

    docs/reference/tables.md describes the columns, with examples for pandas and R.
    """
    from paceline.render.files import written
    from paceline.store import Store, default_store_path
    from paceline.store.tidy_tables import FORMATS, tidy_rows
    from paceline.units import plural

    if path.suffix not in FORMATS:
        raise InputError(
            f"unknown format of '{path.name}'",
            f"use the suffix .csv or .parquet, such as {table}.csv",
        )
    with Store(store_path or default_store_path(), create=False) as store:
        if study is not None and not store.count(study):
            raise store.no_study(study)
        with written(path) as file:
            each = tidy_rows(table, store.each_launch(study), store.factors(study))
            rows = FORMATS[path.suffix](each, file)
    if as_json:
        emit_json("export", 1, {"path": str(path), "table": table, "rows": rows})
        return
    echo(f"Wrote {plural(rows, 'row')} of {table} to {path}")
    next_line(same_job("list"))
