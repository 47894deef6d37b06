"""``paceline validate``: score predictions against published measurements."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.options import workers_option
from paceline.cli.output import emit, result_json

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

_MODES = ("baseline", "cold", "layout")
_File = click.Path(path_type=Path, dir_okay=False)


@click.command(name="validate")
@click.option(
    "--data",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="CSV file in the schema of 'paceline catalog publications --export'; repeatable.  "
    "[default: the published measurements]",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(_MODES),
    multiple=True,
    help="baseline: predict from the baseline row of the group; cold: without measurements; "
    "layout: which layout is fastest.  [default: all]",
)
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    default="",
    help="Additional columns to split the scores by, such as framework,device.",
)
@click.option(
    "--hold-out",
    type=click.Choice(["group", "source", "generation", "framework", "model", "network", "scale"]),
    default="group",
    show_default=True,
    help="Rows excluded when fitting the corrections for a row: its own table (group), or all of "
    "the same source, device generation, framework, model family, network or scale.",
)
@workers_option
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the scores as JSON; - for standard output."
)
@click.option(
    "--predictions",
    type=_File,
    metavar="FILE",
    help="Write the prediction of each row as CSV; memory in GiB.",
)
@click.option("--scoreboard", type=_File, metavar="FILE", help="Write the scoreboard as Markdown.")
def command(
    files: tuple[Path, ...],
    modes: tuple[str, ...],
    by: str,
    hold_out: str,
    workers: "Workers",
    json_file: str | None,
    predictions: Path | None,
    scoreboard: Path | None,
) -> None:
    """Score predictions against published measurements, in comparison with null models.

    Each row is predicted as 'paceline predict' would, with corrections fitted without its own
    table; its measured throughput is used for the score only. Other files in the same schema can
    be scored with --data, including rows with model sizes instead of names, and failed runs.

    \b
    Examples:
      paceline validate --mode baseline --by framework
      paceline validate --mode cold --hold-out source --workers 2
      paceline validate --data mine.csv --predictions out.csv
    """
    from paceline.cli.progress import rows_progress
    from paceline.render.files import write_text
    from paceline.validation.api import validate

    with rows_progress("rows") as progress:
        found = validate(
            files,
            modes=[mode for mode in _MODES if mode in modes or not modes],
            by=[name.strip() for name in by.split(",") if name.strip()],
            hold_out=hold_out,
            workers=workers,
            predictions=predictions,
            scoreboard=scoreboard,
            on_row=progress,
            on_stage=lambda text: echo(f"  {text}", err=True),
        )
    if json_file not in (None, "-"):
        write_text(Path(str(json_file)), result_json(found) + "\n")
    further = ("paceline catalog publications", "paceline validate --predictions predictions.csv")
    emit(found, json_file == "-", *further)
