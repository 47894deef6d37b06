"""`paceline published`: the measurements that Paceline is validated on."""

from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.say import say

if TYPE_CHECKING:
    from paceline.analyse.validation.measurement import Measurement

_SHOWN = 40


@click.command(name="published")
@click.option("--family", help="Only this source, e.g. dlperf.")
@click.option("--model", help="Only this network, e.g. resnet50_v1.5.")
@click.option("--device", help="Only this device, e.g. v100_sxm2_16gb.")
@click.option("--framework", help="Only this framework, e.g. pytorch_ddp.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="COLUMN=VALUE, also with != < <= > >= or ~ (contains); may be repeated.",
)
@click.option("--sort", default="id", show_default=True, help="Column to sort by; -COLUMN down.")
@click.option("--limit", type=click.IntRange(min=1), help=f"Rows to show.  [default: {_SHOWN}]")
@click.option("--export", type=click.Path(dir_okay=False), help="Write all chosen rows as CSV.")
@click.option("--sources", is_flag=True, help="List who published the rows, and the licences.")
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
    """Show the published measurements that predictions are validated on.

    Nothing here was measured by Paceline: every row names the page it was printed on.

    \b
    Example:
      paceline published --model bert_base --where 'nodes>1' --sort -throughput
      paceline published --family hkbu --export hkbu.csv
    """
    from paceline.analyse.validation.reference import reference_table
    from paceline.analyse.validation.selection import in_order, selected
    from paceline.report.tables.published import published_table, row_json

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


def _require_known(rows: "list[Measurement]", column: str, value: str) -> None:
    from paceline.naming import unknown_name

    known = sorted({str(row.value(column)) for row in rows})
    if value not in known:
        raise unknown_name(f"published {column}", value, known, f"known: {', '.join(known)[:300]}")


def _show_sources(as_json: bool) -> None:
    from dataclasses import asdict

    from paceline.analyse.validation.reference import reference_sources
    from paceline.report.tables.published import sources_table

    sources = reference_sources()
    if as_json:
        emit_json("published-sources", 1, {"sources": [asdict(source) for source in sources]})
        return
    show([sources_table(sources)])
    next_line(same_job("published", drop=("sources",), family="hkbu"))


def _export(rows: "list[Measurement]", path: str) -> None:
    from pathlib import Path

    from paceline.analyse.validation.selection import to_csv
    from paceline.report.files import write_text

    write_text(Path(path), to_csv(rows))
    say(f"wrote {len(rows)} rows to {path}", err=True)
