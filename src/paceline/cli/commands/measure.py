"""``paceline measure``: measure training throughput over repeated launches."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    LAUNCHER_OPTIONS,
    AliasedOption,
    IntegerRange,
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
from paceline.errors import InputError
from paceline.units import parse_bytes, plural

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


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@study_options
@training_options
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="weak: --batch is per process; strong: --batch is divided among processes.",
)
@click.option(
    "--framework",
    metavar="NAME",
    default="torch-ddp",
    show_default=True,
    help="Framework to use; see 'paceline frameworks'.",
)
@launcher_options
@lab_options
@click.option(
    "--instrument",
    metavar="KIND[,KIND]",
    default="none",
    show_default=True,
    help="Instrumentation of launches: none (throughput), phases, layers; comma-separated.",
)
@click.option(
    "--no-sync",
    "--unsynchronised",
    "no_sync",
    cls=AliasedOption,
    is_flag=True,
    help="Also run the processes side by side without communication.",
)
@click.option("--bucket", metavar="BYTES", help="Bucket size of DDP, such as 25MiB.")
@click.option(
    "--port",
    type=IntegerRange(1, 65535),
    help="Port of the rendezvous [default: a free port].",
)
@click.option("--resume", "resumed", metavar="STUDY", help="Continue an interrupted study.")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Read the study from a TOML file instead of options.",
)
@click.option(
    "--dry-run",
    "prepared",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Write the launches and scripts to a new directory without starting them.",
)
@click.option(
    "--collect",
    "collected",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Record the finished launches of a directory written by --dry-run.",
)
@store_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Measure training throughput over repeated launches in random order.

    Each launch restarts all processes: launch-to-launch variation exceeds step-to-step variation.
    Continue an interrupted study with --resume.
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
        from paceline.analysis.launch_tables import launches_json

        emit_json("measure", 1, {"study": study.name, "launches": launches_json(launches)})
    else:
        echo(f"Study {study.name}: {plural(len(launches), 'launch')} in {study.path}")
        show_launches(launches)
        show(study.outcome_tables())
        several = len({launch.world_size for launch in launches}) > 1
        names = ["explain"] if several and study.analyse().explanations else []
        further = [same_job(name, study=study.name) for name in (*names, "report", "list")]
        next_line(*further)
    if all(launch.status is not Status.FINISHED for launch in launches):
        raise SystemExit(1)


def _timeout(options: dict[str, Any]) -> str | None:
    """Time limit of a launch; None keeps the limit of a file or resumed study."""
    source = click.get_current_context().get_parameter_source("timeout")
    own = options["file"] or options["resumed"]
    return None if own and source is not ParameterSource.COMMANDLINE else options["timeout"]


def _prepare(study: "Study", directory: Path, timeout: str, as_json: bool) -> None:
    seconds = timeout_seconds(timeout)
    assert seconds is not None, "--timeout has a default"
    scripts, count = study.prepare(directory, timeout_seconds=seconds)
    if as_json:
        files = [str(script) for script in scripts]
        emit_json("measure", 1, {"study": study.name, "launches": [], "scripts": files})
        return
    echo(f"Study {study.name}: wrote {plural(count, 'launch')} to {directory}; none started")
    for script in scripts:
        echo(f"  {script}")
    next_line(f"paceline measure --collect {shlex.quote(str(directory))}")


def _collected(directory: Path, store: Path | None) -> "Study":
    from paceline.study import Study

    _check_alone("--collect", ("collected",))
    study, waiting = Study.collect(directory, store=store)
    if waiting:
        echo(f"not run yet: {plural(waiting, 'launch')}", err=True)
    if not study.launches:
        raise InputError(f"no launch in {directory} has run", "start its scripts first")
    return study


def _check_alone(option: str, compatible: tuple[str, ...]) -> None:
    """Reject options that would be ignored with ``option``."""
    context = click.get_current_context()
    allowed = {*compatible, "store_path", "as_json", "timeout", "port"}
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in allowed:
            raise InputError(
                f"{parameter.opts[0]} cannot be combined with {option}",
                f"omit {parameter.opts[0]}",
            )


def _study(options: dict[str, Any]) -> "Study":
    from paceline.study import Study

    store = options["store_path"]
    if options["resumed"]:
        _check_alone("--resume", ("resumed",))
        return Study.load(options["resumed"], store)
    if options["file"]:
        _check_alone("--from", ("file", "name", "prepared", *LAUNCHER_OPTIONS))
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
