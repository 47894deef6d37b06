"""``paceline study``: check and run designed experiments described in TOML files."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.knob_options import options_of
from paceline.cli.measuring_options import launcher_settings
from paceline.cli.next_steps import command_line
from paceline.cli.options import IntegerRange, store_option, study_name
from paceline.cli.output import emit, json_option
from paceline.cli.stored_studies import STORED_STUDIES
from paceline.spec.study_options import LAUNCHER, StudyOptions

EXAMPLE = """
\b
Examples:
  paceline study check study.toml
  paceline study run study.toml
  paceline study list
  paceline study show resnet44-0147
  paceline study rename resnet44-0147 before-upgrade
  paceline study export launches.csv
"""


@click.group(epilog=EXAMPLE)
def command() -> None:
    """Run studies described in TOML files; list, show, change, repeat and export recorded ones.

    \b
    model = "resnet20"
    launches = 3
    [factors]
    batch = [16, 32]
    processes = [1, 2]
    [design]
    kind = "two-level"

    'study run' continues an interrupted study, and runs the missing configurations after levels
    were added to the file. docs/reference/studies.md describes all keys.
    """


_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
_NAME = click.option(
    "--study",
    "name",
    metavar="NAME",
    callback=study_name,
    help="Name of the study [default: name of the file].",
)


@command.command(epilog="\b\nExample:\n  paceline study check study.toml")
@_FILE
@_NAME
@store_option
@json_option
def check(file: Path, name: str | None, store_path: Path | None, as_json: bool) -> None:
    """Validate FILE; show its configurations and the estimated time."""
    from paceline.study import Study

    study = Study.read(file, name=name, store=store_path)
    emit(study.check(), as_json, command_line("study", "run", str(file)))


@command.command(epilog="\b\nExample:\n  paceline study run study.toml")
@_FILE
@_NAME
@options_of(StudyOptions, only=(*LAUNCHER, "launch_seconds"))
@click.option(
    "--port", type=IntegerRange(1, 65535), help="Port of the rendezvous [default: a free port]."
)
@store_option
@json_option
def run(
    file: Path,
    name: str | None,
    launch_seconds: str | None,
    port: int | None,
    store_path: Path | None,
    as_json: bool,
    **launcher: Any,
) -> None:
    """Run the study in FILE, or continue it; Ctrl-C interrupts it."""
    from paceline.cli.progress import run_with_progress
    from paceline.study import Study

    study = Study.read(file, name=name, store=store_path, **launcher_settings(launcher))
    run_with_progress(study, launch_seconds, port, file)
    emit(
        study,
        as_json,
        command_line("report", study.name),
        command_line("study", "export", "launches.csv", "--study", study.name),
    )
    if not study.has_results:
        raise SystemExit(1)


@command.command(epilog="\b\nExample:\n  paceline study schema > study.schema.json")
def schema() -> None:
    """Print the JSON schema of study files."""
    import json

    from paceline.study.study_file import study_schema

    click.echo(json.dumps(study_schema(), indent=2))


for _one in STORED_STUDIES:
    command.add_command(_one)
