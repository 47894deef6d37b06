"""``paceline doctor``: check this machine, its noise, or a set of hosts."""

import math
import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from paceline.cli.help_sections import SectionedCommand, together
from paceline.cli.knob_options import options_of
from paceline.cli.measuring_options import (
    launcher_options,
    launcher_settings,
    study_keywords,
    study_name_option,
)
from paceline.cli.next_steps import command_line
from paceline.cli.options import store_option, timeout_seconds
from paceline.cli.output import emit, json_option
from paceline.errors import InputError
from paceline.spec.study_options import StudyOptions

NOISE_OPTIONS = (
    *("model", "batch", "seq", "processes", "frameworks", "launches", "steps", "warmup_steps"),
    *("threads", "oversubscribe", "precision", "launch_seconds", "seed"),
)
EXAMPLE = """
\b
Examples:
  paceline doctor
  paceline doctor --noise --model resnet20 --batch 16 --launches 8
  paceline doctor --hosts localhost,localhost
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@together(
    click.option("--noise", is_flag=True, help="Run an A/A test, report the false-positive rate."),
    section="A/A test",
)
@launcher_options
@options_of(StudyOptions, only=NOISE_OPTIONS)
@study_name_option
@store_option
@json_option
def command(noise: bool, store_path: Path | None, as_json: bool, **options: Any) -> None:
    """Check the installation on this machine, and suggest fixes.

    With --hosts a,b --launcher ssh, check hosts before training on them: name resolution, ports,
    network interface, versions, clocks, and latency and bandwidth of every pair.

    With --noise, measure one configuration as two interleaved groups, so that any significant
    difference is a false positive. --launches is the number of launches per group; the other
    options describe the configuration.
    """
    launcher = launcher_settings(options)
    if noise:
        if launcher:
            raise InputError("--noise runs on this machine", "omit the options of the launcher")
        _test_noise({**options, "store_path": store_path}, as_json)
        return
    _refuse_study_options()
    if launcher:
        _check_hosts(launcher, store_path, as_json)
        return
    from paceline.measurement.api import doctor

    emit(doctor(), as_json, "paceline demo", "paceline catalog models")


def _refuse_study_options() -> None:
    """Reject options of --noise that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name in (*NOISE_OPTIONS, "name"):
            raise InputError(f"{parameter.opts[0]} requires --noise", "add --noise")


def _test_noise(options: dict[str, Any], as_json: bool) -> None:
    from paceline.cli.progress import study_progress
    from paceline.study.api import noise_test

    with study_progress("A/A test") as progress:
        found = noise_test(
            timeout_seconds=timeout_seconds(options["launch_seconds"]),
            on_launch=progress.before_launch,
            **study_keywords(options),
        )
    emit(found, as_json, command_line("study", "show", found.study))
    if math.isnan(found.halves.p_value):
        raise SystemExit(1)


def _check_hosts(launcher: dict[str, Any], store_path: Path | None, as_json: bool) -> None:
    from paceline.cli.progress import study_progress
    from paceline.measurement.api import check_hosts

    with study_progress("hosts") as progress:
        progress.stage("checking hosts")
        found = check_hosts(**launcher, store=store_path)
    given = [f"--{name} {launcher[name]}" for name in ("launcher", "hosts") if name in launcher]
    given += [
        f"--launcher-option {shlex.quote(one)}" for one in launcher.get("launcher_options", ())
    ]
    words = " ".join(given)
    measured = f"paceline measure {words} -j {len(found.hosts)}x1"
    emit(found, as_json, f"paceline calibrate {words}", measured)
    if not found.works:
        raise SystemExit(1)
