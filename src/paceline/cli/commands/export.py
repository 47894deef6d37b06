"""``paceline export``: tidy tables for other programs."""

from pathlib import Path

import click

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
    type=click.Choice(["launches", "steps", "layers"]),
    default="launches",
    show_default=True,
    help="A row per launch, per step of each rank, or per timed layer.",
)
@click.option("--study", help="Only the launches of this study.")
@store_option
@json_option
def command(
    path: Path, table: str, study: str | None, store_path: Path | None, as_json: bool
) -> None:
    """Write launches as a tidy table; the ending of PATH says CSV or Parquet."""
    from paceline.report.files import write_bytes, write_text
    from paceline.store import Store, default_store_path
    from paceline.store.export import TABLES, to_csv, to_parquet

    if path.suffix not in (".csv", ".parquet"):
        raise InputError(
            f"'{path.name}' ends neither in .csv nor in .parquet", f"name it {table}.csv"
        )
    with Store(store_path or default_store_path(), create=False) as store:
        launches = store.study(study) if study else store.launches()
    rows = list(TABLES[table](launches))
    if path.suffix == ".csv":
        write_text(path, to_csv(rows))
    else:
        write_bytes(path, to_parquet(rows))
    if as_json:
        emit_json("export", 1, {"path": str(path), "table": table, "rows": len(rows)})
        return
    click.echo(f"{len(rows)} rows of {table} in {path}")
    next_line(same_job("list"))
