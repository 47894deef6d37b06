"""``paceline measure``: train for some steps, several times, and record it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    LAUNCHER_OPTIONS,
    AliasedOption,
    lab_options,
    lab_settings,
    launcher_options,
    launcher_settings,
    store_option,
    study_options,
    study_settings,
    timeout_seconds,
    training_options,
    training_settings,
)
from paceline.cli.output import emit_json, json_option, show, show_launches
from paceline.cli.say import say
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.study import Study

EXAMPLE = """
\b
Examples:
  paceline measure --model resnet44 --batch 64 -j 1x1,1x2
  paceline measure --model resnet20 --batch 128 --scaling strong -j 1x1,1x2 --launches 5
  paceline measure --from study.toml
  paceline measure --from study.toml --launcher local --hosts localhost,localhost
  paceline measure --from study.toml --launcher slurm --dry-run prepared
  paceline measure --resume resnet44-0147
"""


@click.command(epilog=EXAMPLE)
@study_options
@training_options
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="Whether --batch is per process (weak) or shared by all (strong).",
)
@click.option("--framework", default="torch-ddp", show_default=True, help="Who trains.")
@launcher_options
@lab_options
@click.option(
    "--instrument",
    default="none",
    show_default=True,
    help="Kinds of launches by commas: none (throughput), phases, layers.",
)
@click.option(
    "--no-sync",
    "--unsynchronised",
    "no_sync",
    cls=AliasedOption,
    is_flag=True,
    help="Also run processes co-located without communication.",
)
@click.option("--bucket", help="DDP's bucket size, such as 25MiB.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the rendezvous [default: a free one].",
)
@click.option("--resume", "resumed", help="Finish this study, which was interrupted.")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take the study from this TOML file instead of from options.",
)
@click.option(
    "--dry-run",
    "prepared",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Start nothing: write every launch and the launcher's scripts to a new directory.",
)
@click.option(
    "--collect",
    "collected",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Record the launches of such a directory that have run.",
)
@store_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Train for some steps, several times in random order, and record how fast it went.

    Every launch is a fresh start of all processes, since one start differs from the next by more
    than one step from another. A study that was interrupted goes on with --resume.
    """
    from paceline.cli.progress import run_with_progress
    from paceline.store import Status

    if options["prepared"]:
        _prepare(_study(options), options["prepared"], options["timeout"], as_json)
        return
    if options["collected"]:
        study = _collected(options["collected"], options["store_path"])
    else:
        study = run_with_progress(
            _study(options), _timeout(options), options["port"], options["file"]
        )
    launches = study.launches
    if as_json:
        from paceline.report.tables.launches import launches_json

        emit_json("measure", 1, {"study": study.name, "launches": launches_json(launches)})
    else:
        say(f"Study {study.name}: {len(launches)} launches, kept in {study.path}")
        show_launches(launches)
        show(study.outcome_tables())
        several = len({launch.world_size for launch in launches}) > 1
        names = ["explain"] if several and study.analyse().explanations else []
        further = [same_job(name, study=study.name) for name in (*names, "report", "list")]
        next_line(*further)
    if all(launch.status is not Status.FINISHED for launch in launches):
        raise SystemExit(1)


def _timeout(options: dict[str, Any]) -> str | None:
    """The longest time of a launch; a file or a resumed study has its own unless told."""
    source = click.get_current_context().get_parameter_source("timeout")
    own = options["file"] or options["resumed"]
    return None if own and source is not ParameterSource.COMMANDLINE else options["timeout"]


def _prepare(study: "Study", directory: Path, timeout: str, as_json: bool) -> None:
    """Write the launches of a study, and say what starts them."""
    seconds = timeout_seconds(timeout)
    assert seconds is not None, "--timeout has a default"
    scripts, count = study.prepare(directory, timeout_seconds=seconds)
    if as_json:
        files = [str(script) for script in scripts]
        emit_json("measure", 1, {"study": study.name, "launches": [], "scripts": files})
        return
    say(f"Study {study.name}: {count} launches written to {directory}, none started")
    for script in scripts:
        say(f"  {script}")
    next_line(f"paceline measure --collect {shlex.quote(str(directory))}")


def _collected(directory: Path, store: Path | None) -> "Study":
    from paceline.study import Study

    _check_alone("--collect", "the directory has the study", ("collected",))
    study, waiting = Study.collect(directory, store=store)
    if waiting:
        several = "launches have" if waiting > 1 else "launch has"
        say(f"{waiting} {several} not run yet", err=True)
    if not study.launches:
        raise InputError(f"no launch of {directory} has run", "start its scripts first")
    return study


def _check_alone(option: str, reason: str, beside: tuple[str, ...]) -> None:
    """Refuse options that would be ignored beside one that stands for all of them."""
    context = click.get_current_context()
    allowed = {*beside, "store_path", "as_json", "timeout", "port"}
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in allowed:
            raise InputError(
                f"{parameter.opts[0]} is ignored with {option}: {reason}",
                f"leave {parameter.opts[0]} out",
            )


def _study(options: dict[str, Any]) -> "Study":
    from paceline.study import Study
    from paceline.units import parse_bytes

    store = options["store_path"]
    if options["resumed"]:
        _check_alone("--resume", "the study knows its settings", ("resumed",))
        return Study.load(options["resumed"], store)
    if options["file"]:
        _check_alone(
            "--from", "the file has the settings", ("file", "name", "prepared", *LAUNCHER_OPTIONS)
        )
        return Study.read(
            options["file"], name=options["name"], store=store, **launcher_settings(options)
        )
    return Study(
        **study_settings(options),
        **training_settings(options),
        frameworks=[options["framework"]],
        scaling=options["scaling"],
        **launcher_settings(options),
        **lab_settings(options),
        instruments=options["instrument"],
        no_sync=options["no_sync"],
        bucket_bytes=parse_bytes(options["bucket"]) if options["bucket"] else None,
    )
