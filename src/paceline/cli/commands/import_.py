"""``paceline import``: another program's log or trace becomes launches like any other."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import parse_one_place, store_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.store import Launch

EXAMPLE = """
\b
Examples:
  paceline import caffe.log --dry-run
  paceline import job-1.out job-2.out --model resnet50 --batch 64 -j 2x4
  paceline import trace-rank0.json trace-rank1.json --model resnet50 --batch 32
"""
LONG_FILE_BYTES = 20_000_000
BYTES_PER_SECOND = 10_000_000.0
"""How fast files are read, about, for the estimate of a long one."""


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--program", help="Whose files these are [default: found out by looking].")
@click.option("--model", default="", help="The network, where the file does not tell it.")
@click.option("--batch", type=click.IntRange(min=1), help="Samples per process and step.")
@click.option("-j", "place", help="NODESxPROCESSES of the job, where the file does not tell.")
@click.option("--precision", default="", help="fp32, bf16, ... where the file does not tell it.")
@click.option("--study", help="Study to put the launches in [default: the first file's name].")
@click.option("--dry-run", is_flag=True, help="Only show what the files tell.")
@store_option
@json_option
def command(
    files: tuple[Path, ...],
    program: str | None,
    model: str,
    batch: int | None,
    place: str | None,
    precision: str,
    study: str | None,
    dry_run: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Turn logs and traces of other programs into launches with provenance "imported".

    Each log is a launch; trace files given together are the ranks of one. What a file does not
    tell is asked for, never guessed.
    """
    from paceline.measurement.imported import read_files
    from paceline.measurement.imports import UserFacts
    from paceline.report.tables.imported import imported_json, imported_parts

    nodes, ranks = parse_one_place(place)
    told = UserFacts(model, batch, ranks, nodes, precision)
    found = read_files(files, program, _say_if_long)
    if not as_json:
        for one in found:
            show(imported_parts(one))
            warn(f"warning: {warning}" for warning in one.content.warnings)
    try:
        made = [one.launch(study or files[0].stem, told) for one in found]
    except InputError as error:
        if not dry_run:
            raise
        click.echo(f"to be recorded it needs more: {error.message}; {error.hint}")
        made = []
    launches = [launch for launch in made if launch is not None]
    if not dry_run:
        _record(launches, store_path)
    if as_json:
        documents = [imported_json(one) for one in found]
        ids = [] if dry_run else [launch.id for launch in launches]
        emit_json("import", 1, {"files": documents, "launches": ids})
        return
    if dry_run:
        next_line(same_job("import", drop=("dry_run",)) if launches else "paceline import --help")
    elif launches:
        click.echo(f"Recorded: {', '.join(launch.id for launch in launches)}")
        first = launches[0]
        next_line(same_job("show", launch_id=first.id), same_job("report", study=first.study))
    else:
        click.echo("Nothing here is a launch; nothing was recorded.")
        next_line(same_job("import", as_json=True), "paceline recipes")


def _say_if_long(path: Path) -> None:
    """Files that take more than a few seconds are announced."""
    from paceline.units import format_bytes, format_seconds

    size = path.stat().st_size if path.is_file() else 0
    if size > LONG_FILE_BYTES:
        about = format_seconds(size / BYTES_PER_SECOND)
        click.echo(f"  reading {path.name}, {format_bytes(size)}, about {about}", err=True)


def _record(launches: "list[Launch]", store_path: Path | None) -> None:
    from paceline.store import Store, default_store_path

    if launches:
        with Store(store_path or default_store_path()) as store:
            for launch in launches:
                store.complete(launch)
