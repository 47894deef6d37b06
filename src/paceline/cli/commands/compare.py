"""``paceline compare``: settings and step time of two studies, launches or predictions."""

from pathlib import Path

import click

from paceline.cli.next_steps import command_line
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit, json_option
from paceline.cli.study_arguments import study_argument
from paceline.errors import InputError
from paceline.units import parse_percent

EXAMPLE = """
\b
Examples:
  paceline compare resnet44-0147 resnet44-1115-2140
  paceline compare resnet44-0147 resnet44-1115-2140 --check --threshold 20%
  paceline compare 19a3b06 19a3c06
  paceline compare before.json after.json          (output of 'predict --json')

Exit codes of --check: 0 no regression, 1 regression, 2 usage error.
"""


@click.command(epilog=EXAMPLE)
@study_argument("first", "A", may_be_left_out=False)
@study_argument("second", "B", may_be_left_out=False)
@click.option("--check", is_flag=True, help="Exit with code 1 if a configuration of B is slower.")
@click.option(
    "--threshold",
    metavar="PERCENT",
    default="2%",
    show_default=True,
    help="Smallest slowdown that counts as a regression.",
)
@click.option("--no-history", is_flag=True, help="Ignore other studies of the store.")
@out_option("--markdown", "Write the step times as Markdown, for a pull request.")
@store_option
@json_option
def command(
    first: str,
    second: str,
    check: bool,
    threshold: str,
    no_history: bool,
    markdown: Path | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Compare B with A: settings, machine and versions, then step time.

    A and B are studies, launches (a prefix of the id is enough) or JSON files of predictions. Every
    configuration that is in both is tested for a change. If three or more other studies in the
    store measured it, the test includes the variance between studies, and the detectable change is
    printed. Without them a regression cannot be distinguished from day-to-day variation, and a
    warning is printed. To compare frameworks, use 'paceline measure --framework NAME,NAME'.
    """
    from paceline.analysis.api import compare
    from paceline.render.files import write_text

    found = compare(
        first,
        second,
        threshold=parse_percent(threshold),
        history=not no_history,
        store=store_path,
    )
    if check and not found.changes:
        raise InputError(
            "the two have no measured configuration in common", "compare without --check"
        )
    if markdown is not None:
        write_text(markdown, found.to_markdown())
    further = ("report", second) if found.are_studies else ("study", "list")
    emit(found, as_json, command_line(*further))
    if check and found.regressions:
        raise SystemExit(1)
