"""``paceline rerun``: repeat the measurements of a study or launch."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import IntegerRange, store_option, study_name
from paceline.cli.output import emit_json, json_option, show_launches
from paceline.cli.study_arguments import study_argument
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.measurement.study_design import Design
    from paceline.store import Store

EXAMPLE = """
\b
Examples:
  paceline rerun resnet44-0147
  paceline rerun 19a3b06 --launches 5 --study once-more
"""


@click.command(epilog=EXAMPLE)
@study_argument("subject", "ID")
@click.option(
    "--launches",
    type=IntegerRange(1),
    help="Launches per configuration [default: as before, or 3].",
)
@click.option(
    "--study",
    "name",
    metavar="NAME",
    callback=study_name,
    help="Name of the new study [default: STUDY-rerun].",
)
@click.option("--timeout", metavar="DURATION", help="Time limit of a launch [default: as before].")
@store_option
@json_option
def command(
    subject: str,
    launches: int | None,
    name: str | None,
    timeout: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Repeat the measurements of a study or launch as a new study.

    ID is the name of a study or a prefix of a launch id. The same command continues after an
    interruption.
    """
    from paceline.analysis.launch_tables import launches_json
    from paceline.cli.options import timeout_seconds
    from paceline.cli.progress import study_progress
    from paceline.measurement.study_runner import run_study
    from paceline.store import Status, Store, default_store_path
    from paceline.units import plural

    path = store_path or default_store_path()
    with Store(path, create=False) as store:
        old, design = _again(store, subject, launches)
    new = name or f"{old}-rerun"
    with Store(path) as store, study_progress(new) as progress:
        made = run_study(
            store, new, design, timeout_seconds(timeout), None, progress.before_launch, extend=True
        )
    if as_json:
        emit_json("rerun", 1, {"of": old, "study": new, "launches": launches_json(made)})
    else:
        echo(f"Study {new}: {plural(len(made), 'launch')} in {path}")
        show_launches(made)
        next_line(command_line("diff", old, new), command_line("check", old, new))
    if all(launch.status is not Status.FINISHED for launch in made):
        raise SystemExit(1)


def _again(store: "Store", subject: str, launches: int | None) -> "tuple[str, Design]":
    """The study of ID, and the design that repeats it."""
    from paceline.measurement.study_design import Design, job_from_json

    document = store.design(subject)
    if document is not None:
        design = Design.from_json(document)
        if launches is None:
            return subject, design
        return subject, Design.randomised(design.jobs, launches, design.seed)
    if subject in store.studies():
        raise InputError(
            f"study {subject} was recorded or imported, not measured",
            "repeat its command with 'paceline run -- COMMAND'",
        )
    launch = store.launch(subject)
    if "graph" not in launch.job:
        raise InputError(
            f"launch {launch.id} was recorded or imported, not measured",
            "repeat its command with 'paceline run -- COMMAND'",
        )
    return launch.study, Design.randomised([job_from_json(launch.job)], launches or 3, 1)
