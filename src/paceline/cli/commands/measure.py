"""``paceline measure``: measure training throughput over repeated launches."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    IntegerRange,
    launcher_settings,
    store_option,
    study_keywords,
    study_name_option,
)
from paceline.cli.output import emit_json, json_option, show, show_launches
from paceline.errors import InputError
from paceline.spec.study_options import FILE_ONLY, LAUNCHER, StudyOptions
from paceline.units import parse_seconds, plural

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
@options_of(StudyOptions, without=FILE_ONLY)
@study_name_option
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
        _prepare(_study(options), options["prepared"], options["launch_seconds"], as_json)
        return
    if options["collected"]:
        study = _collected(options["collected"], options["store_path"])
    else:
        study = run_with_progress(
            _study(options), options["launch_seconds"], options["port"], options["file"]
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


def _prepare(study: "Study", directory: Path, timeout: str | None, as_json: bool) -> None:
    limit = {} if timeout is None else {"timeout_seconds": parse_seconds(timeout)}
    scripts, count = study.prepare(directory, **limit)
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
    allowed = {*compatible, "store_path", "as_json", "launch_seconds", "port"}
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
        _check_alone("--from", ("file", "name", "prepared", *LAUNCHER))
        return Study.read(
            options["file"], name=options["name"], store=store, **launcher_settings(options)
        )
    return Study(**study_keywords(options))
