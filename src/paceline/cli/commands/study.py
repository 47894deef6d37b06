"""``paceline study``: a designed experiment in one file, checked, run, gone on with."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import launcher_options, launcher_settings, store_option, study_name
from paceline.cli.output import emit_json, json_option, show, show_launches
from paceline.cli.say import say

if TYPE_CHECKING:
    from paceline.study import Study
    from paceline.study.outlook import Outlook

EXAMPLE = """
\b
Examples:
  paceline study check study.toml
  paceline study run study.toml
  paceline study schema
"""


@click.group(epilog=EXAMPLE)
def command() -> None:
    """Check or run a study that a TOML file describes.

    \b
    model = "resnet20"
    launches = 3
    [factors]
    batch = [16, 32]
    processes = [1, 2]
    [design]
    kind = "two-level"

    The same command goes on where a study was interrupted, and runs what is missing when levels
    were added. docs/studies.md has every key.
    """


_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
_NAME = click.option(
    "--study", "name", callback=study_name, help="Name of the study [default: that of the file]."
)


@command.command(epilog="\b\nExample:\n  paceline study check study.toml")
@_FILE
@_NAME
@store_option
@json_option
def check(file: Path, name: str | None, store_path: Path | None, as_json: bool) -> None:
    """Say what FILE would run and how long it takes, and refuse what cannot run."""
    from paceline.study import Study
    from paceline.study.plan_tables import alias_lines, factor_table

    study = Study.read(file, name=name, store=store_path)
    assert study.settings is not None
    ahead = study.outlook()
    if as_json:
        fields = {"study": study.name, "points": study.settings.points}
        document = {**fields, **vars(ahead), "aliases": alias_lines(study.settings)}
        emit_json("study-check", 1, document)
        return
    show([factor_table(study.settings), *alias_lines(study.settings), _words(study, ahead)])
    next_line(command_line("study", "run", str(file)))


@command.command(epilog="\b\nExample:\n  paceline study run study.toml")
@_FILE
@_NAME
@launcher_options
@click.option("--timeout", help="Longest time a launch may take [default: as in FILE, else 10min].")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the rendezvous.")
@store_option
@json_option
def run(
    file: Path,
    name: str | None,
    timeout: str | None,
    port: int | None,
    store_path: Path | None,
    as_json: bool,
    **launcher: Any,
) -> None:
    """Run what FILE describes, or what is left of it; Ctrl-C stops it and says how to go on."""
    from paceline.cli.progress import run_with_progress
    from paceline.report.tables.launches import launches_json
    from paceline.store import Status
    from paceline.study import Study

    study = Study.read(file, name=name, store=store_path, **launcher_settings(launcher))
    assert study.settings is not None
    run_with_progress(study, timeout, port, file)
    launches, ended = study.launches, study.ended
    if as_json:
        emit_json(
            "study-run",
            1,
            {"study": study.name, "ended": ended, "launches": launches_json(launches)},
        )
    else:
        say(f"Study {study.name}: {len(launches)} launches, kept in {study.path}")
        show_launches(launches)
        show([*study.outcome_tables(), *study.effects_tables()])
        for one in ended.get("configurations", ()) if study.settings.stopping else ():
            say(f"{one['configuration']}: {one['launches']} launches, {one['stopped_by']}")
        next_line(
            command_line("report", study.name),
            command_line("export", "launches.csv", "--study", study.name),
        )
    if all(launch.status is not Status.FINISHED for launch in launches):
        raise SystemExit(1)


@command.command(epilog="\b\nExample:\n  paceline study schema > study.schema.json")
def schema() -> None:
    """Print the JSON schema of study files, for editors."""
    import json

    from paceline.study.file import study_schema

    click.echo(json.dumps(study_schema(), indent=2))


def _words(study: "Study", ahead: "Outlook") -> str:
    from paceline.units import format_seconds

    assert study.settings is not None
    at_least = "at least " if study.settings.stopping else ""
    words = f"{len(study.settings.points)} combinations, {at_least}{ahead.launches} launches"
    if ahead.made:
        words += f", {ahead.made} of them made"
    if ahead.made == ahead.launches:
        return f"{words}: nothing is left to run"
    most = f"at most {format_seconds(ahead.most_seconds)}"
    if ahead.seconds is None:
        return f"{words}: {most} (no launch of these frameworks tells how long one takes)"
    return f"{words}: about {format_seconds(ahead.seconds)}, {most}"
