"""``paceline import``: import logs and traces of other programs as launches."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import IntegerRange, parse_single_topology, store_option
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
"""Approximate speed of reading, for the time estimate of large files."""


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--program", metavar="NAME", help="Program that wrote the files [default: detected].")
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
    from paceline.importers.import_launches import UserFacts
    from paceline.importers.import_tables import imported_json, imported_parts
    from paceline.importers.imported_files import read_files

    nodes, ranks = parse_single_topology(topology)
    facts = UserFacts(model, batch, ranks, nodes, precision)
    found = read_files(files, program, _announce_large_file)
    if not as_json:
        for one in found:
            show(imported_parts(one))
            warn(f"warning: {warning}" for warning in one.warnings(facts))
    try:
        made = [one.launch(study or files[0].stem, facts) for one in found]
    except InputError as error:
        if not dry_run:
            raise
        echo(f"missing facts: {error.message}; {error.hint}")
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
        echo(f"Recorded: {', '.join(launch.id for launch in launches)}")
        first = launches[0]
        next_line(same_job("show", launch_id=first.id), same_job("report", study=first.study))
    else:
        echo("The files contain no launch; nothing was recorded.")
        next_line(same_job("import", as_json=True), "paceline recipes")


def _announce_large_file(path: Path) -> None:
    from paceline.units import format_bytes, format_seconds

    size = path.stat().st_size if path.is_file() else 0
    if size > LONG_FILE_BYTES:
        about = format_seconds(size / BYTES_PER_SECOND)
        echo(f"  reading {path.name}, {format_bytes(size)}, about {about}", err=True)


def _record(launches: "list[Launch]", store_path: Path | None) -> None:
    from paceline.store import Store, default_store_path

    if launches:
        with Store(store_path or default_store_path()) as store:
            for launch in launches:
                store.complete(launch)
