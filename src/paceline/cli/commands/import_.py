"""``paceline import``: import logs and traces of other programs as launches."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, same_job
from paceline.cli.options import IntegerRange, parse_single_topology, store_option
from paceline.cli.output import emit, json_option

EXAMPLE = """
\b
Examples:
  paceline import caffe.log --dry-run
  paceline import job-1.out job-2.out --model resnet50 --batch 64 -j 2x4
  paceline import trace-rank0.json trace-rank1.json --model resnet50 --batch 32
"""
LONG_FILE_BYTES = 20_000_000
BYTES_PER_SECOND = 10_000_000.0
"""Approximate speed of reading, for the time estimate of large files."""


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--program", metavar="NAME", help="Program that wrote the files [default: detected].")
@click.option(
    "--series",
    metavar="LABEL",
    default="",
    help="Training series of a log that has several: a part of its line.",
)
@click.option("--model", metavar="NAME", default="", help="Model, if the file does not name it.")
@click.option("--batch", type=IntegerRange(min=1), help="Samples per process and step.")
@click.option(
    "-j",
    "topology",
    metavar="NODESxPROCESSES",
    help="Topology of the job, if the file does not contain it.",
)
@click.option(
    "--precision",
    metavar="NAME",
    default="",
    help="Precision, such as bf16, if the file does not contain it.",
)
@click.option(
    "--study", metavar="NAME", help="Study of the launches [default: name of the first file]."
)
@click.option("--dry-run", is_flag=True, help="Show the contents of the files; record nothing.")
@store_option
@json_option
def command(
    files: tuple[Path, ...],
    program: str | None,
    series: str,
    model: str,
    batch: int | None,
    topology: str | None,
    precision: str,
    study: str | None,
    dry_run: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Import logs and traces of other programs as launches.

    Each log is one launch; trace files given together are the ranks of one launch. Missing facts
    must be given as options; they are never guessed. Launches have the provenance "imported".
    """
    from paceline.importers.api import import_launches

    nodes, ranks = parse_single_topology(topology)
    found = import_launches(
        files,
        program=program,
        series=series,
        model=model,
        batch=batch,
        nodes=nodes,
        ranks=ranks,
        precision=precision,
        study=study,
        dry_run=dry_run,
        store=store_path,
        on_file=_announce_large_file,
    )
    further = [same_job("import", as_json=True), "paceline catalog recipes"]
    if dry_run:
        again = same_job("import", drop=("dry_run",))
        further = [again if found.launches else "paceline import --help"]
    elif found.launches:
        first = found.launches[0]
        shown = command_line("study", "show", first.id)
        further = [shown, same_job("report", study=first.study)]
    emit(found, as_json, *further)


def _announce_large_file(path: Path) -> None:
    from paceline.units import format_bytes, format_seconds

    size = path.stat().st_size if path.is_file() else 0
    if size > LONG_FILE_BYTES:
        about = format_seconds(size / BYTES_PER_SECOND)
        echo(f"  reading {path.name}, {format_bytes(size)}, about {about}", err=True)
