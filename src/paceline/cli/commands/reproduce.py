"""``paceline reproduce``: compare predictions with published studies; repeat them here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit, json_option

if TYPE_CHECKING:
    from paceline.publications.api import ReproducedStudies

EXAMPLE = """
\b
Examples:
  paceline reproduce
  paceline reproduce A
  paceline reproduce sgd2018 --json
  paceline reproduce --run --site five-studies
  paceline reproduce A C --run --short
"""


@click.command(epilog=EXAMPLE)
@click.argument("studies", nargs=-1, metavar="[STUDY]...")
@click.option("--run", "runs", is_flag=True, help="Also run the studies that fit on this machine.")
@click.option(
    "--site",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write HTML pages to this directory [default with --run: five-studies].",
)
@click.option(
    "--short", is_flag=True, help="Use fewer and smaller launches: 8 minutes instead of 40."
)
@store_option
@json_option
def command(
    studies: tuple[str, ...],
    runs: bool,
    site: Path | None,
    short: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Compare predictions with published studies [default: all five].

    Each curve is predicted from its smallest published point. Results that a paper does not
    print as numbers are listed as omitted.

    --run repeats the designs on this machine, scaled to its size, in at most 40 minutes on two
    cores. The same command continues after an interruption. --site alone writes the pages from
    the launches in the store.
    """
    from paceline.cli.progress import study_progress
    from paceline.publications.api import reproduce

    try:
        with study_progress("published studies") as progress:
            found = reproduce(
                studies,
                run=runs,
                site=site,
                short=short,
                store=store_path,
                on_stage=progress.stage,
                on_launch=progress.before_launch,
            )
    except KeyboardInterrupt:
        if runs:
            echo(f"\ncontinue with: {same_job('reproduce')}", err=True)
        raise
    emit(found, as_json, *_further(found))


def _further(found: "ReproducedStudies") -> tuple[str, ...]:
    ran = [part.study for _, part in found.measured if part.analysis is not None]
    if ran:
        return command_line("report", ran[0]), command_line("study", "show", ran[0])
    if found.index is not None:
        return (same_job("reproduce", runs=True, short=True),)
    return "paceline reproduce --run --short", "paceline validate --hold-out source"
