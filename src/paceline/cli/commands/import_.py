"""``paceline import``: another program's log or trace becomes launches like any other."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.options import parse_one_place, store_option
from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.cli.imported import Imported
    from paceline.measurement.imports import Told

EXAMPLE = """
\b
Examples:
  paceline import caffe.log --dry-run
  paceline import job-1.out job-2.out --model resnet50 --batch 64 -j 2x4
  paceline import trace-rank0.json trace-rank1.json --model resnet50 --batch 32
"""


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
    from paceline.cli.imported import imported_json, print_imported, read_files
    from paceline.measurement.imports import Told

    nodes, ranks = parse_one_place(place)
    told = Told(model, batch, ranks, nodes, precision)
    found = read_files(files, program)
    recorded: list[str] = []
    if not as_json:
        for one in found:
            print_imported(one)
    if not dry_run:
        recorded = _record(found, told, study or files[0].stem, store_path)
    if as_json:
        documents = [imported_json(one) for one in found]
        emit_json("import", 1, {"files": documents, "launches": recorded})
        return
    _end(recorded, dry_run, files[0])


def _record(
    found: "list[Imported]", told: "Told", study: str, store_path: Path | None
) -> list[str]:
    from paceline.store import Store, default_store_path

    launches = [launch for one in found if (launch := one.launch(study, told)) is not None]
    if not launches:
        return []
    with Store(store_path or default_store_path()) as store:
        for launch in launches:
            store.complete(launch)
    return [launch.id for launch in launches]


def _end(recorded: list[str], dry_run: bool, first: Path) -> None:
    if recorded:
        click.echo(f"Recorded: {', '.join(recorded)}")
        next_line(f"paceline show {recorded[0]}", "paceline list", "paceline report")
    elif dry_run:
        next_line(f"paceline import {first}")
    else:
        click.echo("Nothing here is a launch; nothing was recorded.")
        next_line(f"paceline import {first} --json", "paceline recipes")
