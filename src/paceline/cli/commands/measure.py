"""``paceline measure``: measure training throughput over repeated launches."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.measuring_options import launcher_settings, study_keywords, study_name_option
from paceline.cli.next_steps import command_line, next_line, same_job
from paceline.cli.options import IntegerRange, figure_option, store_option
from paceline.cli.output import emit, emit_json, json_option
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
  paceline measure --framework torch-ddp,jax --model resnet20 --batch 32 -j 1x1,1x2
  paceline measure --from study.toml
  paceline measure --from study.toml --launcher local --hosts localhost,localhost
  paceline measure --from study.toml --launcher slurm --dry-run prepared
  paceline measure --resume resnet44-0147
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(StudyOptions, without=FILE_ONLY)
@study_name_option
@figure_option("--figure", "Draw the ranking of several frameworks")
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

    Several frameworks are ranked with confidence intervals. A parity test comes first: with the
    same weights and data, each must have the same parameters and reach the same losses as the NumPy
    reference (without dropout, on short sequences). Frameworks that fail are excluded.
    """
    from paceline.cli.progress import run_with_progress

    if options["collected"]:
        study = _collected(options["collected"], options["store_path"])
    elif options["prepared"]:
        _prepare(_study(options), options["prepared"], options["launch_seconds"], as_json)
        return
    else:
        study = run_with_progress(
            _study(options),
            options["launch_seconds"],
            options["port"],
            options["file"],
            options["figure"],
        )
    several = len({launch.world_size for launch in study.launches}) > 1
    names = ["explain"] if several and study.analyse().explanations else []
    further = [same_job(name, study=study.name) for name in (*names, "report")]
    emit(study, as_json, *further, command_line("study", "show", study.name))
    if options["figure"] and not as_json:
        echo(f"Figure: {options['figure']}")
    if not study.has_results:
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
