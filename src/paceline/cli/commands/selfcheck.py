"""``paceline selfcheck``: how often this machine would cry wolf."""

import math
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import store_option, study_options, study_settings
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.say import say
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.study.selfcheck import SelfCheck

EXAMPLE = """
\b
Examples:
  paceline selfcheck
  paceline selfcheck --model resnet20 --batch 16 --launches 8
"""


@click.command(epilog=EXAMPLE)
@study_options
@click.option("--framework", default="torch-ddp", show_default=True, help="Who trains.")
@store_option
@json_option
def command(framework: str, as_json: bool, **options: Any) -> None:
    """Measure one job twice, blind, and say how often this machine calls equals different.

    Two halves of the same job run in turns; nothing but that tells them apart. What is called
    different is a false alarm. --launches is that of each half.
    """
    from paceline.cli.progress import run_with_progress
    from paceline.report.tables.changes import changes_table
    from paceline.study import Study
    from paceline.study.selfcheck import self_check

    halves = {**study_settings(options), "launches": 2 * options["launches"]}
    study = Study(**halves, frameworks=[framework])
    assert study.settings is not None
    if len(list(study.settings.jobs())) != 1:
        raise InputError("a self-check is of one job", "give one place, one number of threads")
    run_with_progress(study, options["timeout"])
    found = self_check(study.launches)
    if as_json:
        emit_json("selfcheck", 1, {"study": study.name, **found.to_json()})
    else:
        show([changes_table([found.blind])])
        for line in _lines(found):
            say(line)
        next_line(command_line("list", "--study", study.name))
    if math.isnan(found.blind.p_value):
        raise SystemExit(1)


def _lines(found: "SelfCheck") -> list[str]:
    alarm = "a false alarm" if found.cried_wolf else "no false alarm"
    lines = [f"Blind halves: {alarm} (p = {found.blind.p_value:.3f}; 0.05 is allowed)."]
    if not math.isnan(found.in_time):
        lines.append(
            f"Neighbours in time, {found.window} launches each: called different in "
            f"{100 * found.in_time:.0f} % of {found.windows} cases; well above 5 %, the machine "
            "drifts, and only interleaved launches compare."
        )
    if not math.isnan(found.blind.smallest):
        lines.append(
            f"A change of {100 * found.blind.smallest:.1f} % would be seen in 8 of 10 cases with "
            f"{len(found.blind.base.launches)} launches each."
        )
    return lines
