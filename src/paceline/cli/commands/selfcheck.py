"""``paceline selfcheck``: A/A test of this machine."""

import math
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import store_option, study_keywords, study_name_option
from paceline.cli.output import emit_json, json_option, show
from paceline.errors import InputError
from paceline.spec.study_options import StudyOptions
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.study.aa_test import SelfCheck

OPTIONS = (
    *("model", "batch", "seq", "processes", "frameworks", "launches", "steps", "warmup_steps"),
    *("threads", "oversubscribe", "precision", "launch_seconds", "seed"),
)
EXAMPLE = """
\b
Examples:
  paceline selfcheck
  paceline selfcheck --model resnet20 --batch 16 --launches 8
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(StudyOptions, only=OPTIONS)
@study_name_option
@store_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Run an A/A test on this machine and report the false-positive rate.

    The same configuration is measured as two interleaved groups, so that any significant
    difference is a false positive. --launches is the number of launches per group.
    """
    from paceline.analysis.regression_tables import changes_table
    from paceline.cli.progress import run_with_progress
    from paceline.study import Study, StudySettings
    from paceline.study.aa_test import self_check

    launches = options["launches"] or StudySettings.launches
    study = Study(**{**study_keywords(options), "launches": 2 * launches})
    assert study.settings is not None
    if len(list(study.settings.jobs())) != 1:
        raise InputError(
            "selfcheck needs a single configuration", "give one topology and one number of threads"
        )
    run_with_progress(study, options["launch_seconds"])
    found = self_check(study.launches)
    if as_json:
        emit_json("selfcheck", 1, {"study": study.name, **found.to_json()})
    else:
        show([changes_table([found.blind])])
        for line in _lines(found):
            echo(line)
        next_line(command_line("list", "--study", study.name))
    if math.isnan(found.blind.p_value):
        raise SystemExit(1)


def _lines(found: "SelfCheck") -> list[str]:
    verdict = "a false positive" if found.cried_wolf else "no false positive"
    lines = [f"A/A test: {verdict} (p = {found.blind.p_value:.3f}, significance level 0.05)."]
    if not math.isnan(found.in_time):
        lines.append(
            f"Consecutive groups of {plural(found.window, 'launch')}: significantly different in "
            f"{100 * found.in_time:.0f} % of {plural(found.windows, 'case')}. Well above 5 % the "
            "machine drifts: compare interleaved launches only."
        )
    if not math.isnan(found.blind.detectable):
        lines.append(
            f"Detectable change with {plural(len(found.blind.base.launches), 'launch')} per group, "
            f"interleaved: {100 * found.blind.detectable:.3g} % (power 0.8). It is larger between "
            "studies of different days."
        )
    return lines
