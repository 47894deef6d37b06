"""``paceline study``: check and run designed experiments described in TOML files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import (
    IntegerRange,
    launcher_settings,
    store_option,
    study_name,
)
from paceline.cli.output import emit_json, json_option, show, show_launches
from paceline.spec.study_options import LAUNCHER, StudyOptions
from paceline.units import format_seconds, plural

if TYPE_CHECKING:
    from paceline.study import Study
    from paceline.study.study_estimate import StudyEstimate

EXAMPLE = """
\b
Examples:
  paceline study check study.toml
  paceline study run study.toml
  paceline study schema
"""


@click.group(epilog=EXAMPLE)
def command() -> None:
    """Check or run a study described in a TOML file.

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
    from paceline.study.study_check_tables import alias_lines, factor_table

    study = Study.read(file, name=name, store=store_path)
    assert study.settings is not None
    ahead = study.time_estimate()
    if as_json:
        fields = {"study": study.name, "points": study.settings.points}
        document = {**fields, **vars(ahead), "aliases": alias_lines(study.settings)}
        emit_json("study-check", 1, document)
        return
    show([factor_table(study.settings), *alias_lines(study.settings), _estimate_line(study, ahead)])
    next_line(command_line("study", "run", str(file)))


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
    from paceline.analysis.launch_tables import launches_json
    from paceline.cli.progress import run_with_progress
    from paceline.store import Status
    from paceline.study import Study

    study = Study.read(file, name=name, store=store_path, **launcher_settings(launcher))
    assert study.settings is not None
    run_with_progress(study, launch_seconds, port, file)
    launches, ended = study.launches, study.ended
    if as_json:
        emit_json(
            "study-run",
            1,
            {"study": study.name, "ended": ended, "launches": launches_json(launches)},
        )
    else:
        echo(f"Study {study.name}: {plural(len(launches), 'launch')} in {study.path}")
        show_launches(launches)
        show([*study.outcome_tables(), *study.effects_tables()])
        for one in ended.get("configurations", ()) if study.settings.stopping else ():
            count = plural(one["launches"], "launch")
            echo(f"{one['configuration']}: {count}, {one['stopped_by']}")
        next_line(
            command_line("report", study.name),
            command_line("export", "launches.csv", "--study", study.name),
        )
    if all(launch.status is not Status.FINISHED for launch in launches):
        raise SystemExit(1)


@command.command(epilog="\b\nExample:\n  paceline study schema > study.schema.json")
def schema() -> None:
    """Print the JSON schema of study files."""
    import json

    from paceline.study.study_file import study_schema

    click.echo(json.dumps(study_schema(), indent=2))


def _estimate_line(study: "Study", ahead: "StudyEstimate") -> str:
    assert study.settings is not None
    combinations = plural(len(study.settings.points), "combination")
    at_least = "at least " if study.settings.stopping else ""
    text = f"{combinations}, {at_least}{plural(ahead.launches, 'launch')}"
    if ahead.made:
        text += f", {ahead.made} done"
    if ahead.made == ahead.launches:
        return f"{text}: the study is complete"
    most = f"at most {format_seconds(ahead.most_seconds)}"
    if ahead.seconds is None:
        return f"{text}: {most} (no estimate: no earlier launch with these frameworks)"
    return f"{text}: about {format_seconds(ahead.seconds)}, {most}"
