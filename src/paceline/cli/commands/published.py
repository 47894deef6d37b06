"""``paceline published``: published measurements used for validation."""

from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import IntegerRange
from paceline.cli.output import emit_json, json_option, show

if TYPE_CHECKING:
    from paceline.validation.published_row import PublishedRow

_SHOWN = 40


@click.command(name="published")
@click.option("--family", metavar="NAME", help="Source, such as dlperf.")
@click.option("--model", metavar="NAME", help="Model, such as resnet50_v1.5.")
@click.option("--device", metavar="NAME", help="Device, such as v100_sxm2_16gb.")
@click.option("--framework", metavar="NAME", help="Framework, such as pytorch_ddp.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="COLUMN=VALUE, or with != < <= > >= or ~ (contains); repeatable.",
)
@click.option(
    "--sort",
    metavar="[-]COLUMN",
    default="id",
    show_default=True,
    help="Sort by a column; -COLUMN sorts in descending order.",
)
@click.option(
    "--limit", type=IntegerRange(min=1), help=f"Number of rows to show.  [default: {_SHOWN}]"
)
@click.option("--export", type=click.Path(dir_okay=False), help="Write all selected rows as CSV.")
@click.option("--sources", is_flag=True, help="List the sources and their licences.")
@json_option
def command(
    family: str | None,
    model: str | None,
    device: str | None,
    framework: str | None,
    conditions: tuple[str, ...],
    sort: str,
    limit: int | None,
    export: str | None,
    sources: bool,
    as_json: bool,
) -> None:
    """List the published measurements used for validation.

    None of them was measured by Paceline; every row cites the page of its publication.

    \b
    Examples:
      paceline published --model bert_base --where 'nodes>1' --sort -throughput
      paceline published --family hkbu --export hkbu.csv
    """
    from paceline.validation.published_tables import published_table, row_json
    from paceline.validation.reference_data import reference_table
    from paceline.validation.row_filters import in_order, selected

    if sources:
        _show_sources(as_json)
        return
    named = {"family": family, "model": model, "device": device, "framework": framework}
    everything = reference_table().measurements
    wanted = []
    for column, value in named.items():
        if value:
            _require_known(everything, column, value)
            wanted.append(f"{column}={value}")
    rows = in_order(selected(everything, [*wanted, *conditions]), sort)
    if export:
        _export(rows, export)
    shown = rows[: limit or (len(rows) if as_json else _SHOWN)]
    if as_json:
        facts = [row_json(row) for row in shown]
        emit_json("published", 1, {"rows_chosen": len(rows), "rows": facts})
        return
    show([published_table(shown, len(rows))])
    if export:
        next_line(same_job("validate", files=export))
    else:
        next_line("paceline published --sources", "paceline validate")


def _require_known(rows: "list[PublishedRow]", column: str, value: str) -> None:
    from paceline.naming import unknown_name

    known = sorted({str(row.value(column)) for row in rows})
    if value not in known:
        raise unknown_name(
            f"published {column}", value, known, f"choose one of {', '.join(known)[:300]}"
        )


def _show_sources(as_json: bool) -> None:
    from dataclasses import asdict

    from paceline.validation.published_tables import sources_table
    from paceline.validation.reference_data import reference_sources

    sources = reference_sources()
    if as_json:
        emit_json("published-sources", 1, {"sources": [asdict(source) for source in sources]})
        return
    show([sources_table(sources)])
    next_line(same_job("published", drop=("sources",), family="hkbu"))


def _export(rows: "list[PublishedRow]", path: str) -> None:
    from pathlib import Path

    from paceline.render.files import write_text
    from paceline.units import plural
    from paceline.validation.row_filters import to_csv

    write_text(Path(path), to_csv(rows))
    echo(f"wrote {plural(len(rows), 'row')} to {path}", err=True)
