"""``paceline reproduce``: five published studies beside predictions, and done on this machine."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import WIDTH, command_line, next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.say import say
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.analyse.study_results import StudyResults

DEFAULT_SITE = Path("five-studies")
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
@click.argument("studies", nargs=-1)
@click.option("--run", "runs", is_flag=True, help="Train what of them this machine can.")
@click.option(
    "--site",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a page for each and an index there [default with --run: five-studies].",
)
@click.option("--short", is_flag=True, help="Fewer and smaller launches: 8 minutes, not 40.")
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
    """Set what published STUDIES [all five] measured beside what is predicted for their machines.

    Each curve is predicted from its smallest published point. What a paper does not print as a
    number is listed as left out.

    With --run their designs are trained on this machine as far as it goes: studies that come with
    Paceline, in at most 40 minutes on two cores. The same command goes on where it was
    interrupted. --site alone writes the pages from the launches that the store has.
    """
    if runs or site is not None:
        _done_here(studies, runs, site or DEFAULT_SITE, short, store_path, as_json)
        return
    if short or store_path is not None:
        raise InputError("nothing is run", "add --run to train, or --site DIR to write pages")
    from paceline.api.reproduction import reproduce
    from paceline.report.tables.reproduction import (
        reproduction_json,
        reproduction_parts,
        summary_table,
    )

    found = reproduce(studies)
    if as_json:
        emit_json("reproduce", 1, reproduction_json(found))
        return
    for one in found:
        show([*reproduction_parts(one), ""])
    show([summary_table(found)])
    next_line("paceline reproduce --run --short", "paceline validate --hold-out source")


def _done_here(
    studies: tuple[str, ...],
    runs: bool,
    site: Path,
    short: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Run what is left where that is asked for, predict the rest and write the pages."""
    from paceline.api.studies_here import INDEX, run_studies, studies_so_far
    from paceline.cli.progress import study_progress

    with study_progress("published studies") as progress:
        if not runs:
            results = studies_so_far(
                studies, store=store_path, short=short, site=site, on_stage=progress.stage
            )
        else:
            try:
                results = run_studies(
                    studies,
                    store=store_path,
                    short=short,
                    site=site,
                    on_stage=progress.stage,
                    on_launch=progress.before_launch,
                )
            except KeyboardInterrupt:
                say(f"\ncontinue with: {same_job('reproduce')}", err=True)
                raise
    if as_json:
        _emit(results, site / INDEX)
    else:
        _tell(results, site / INDEX)


def _emit(results: "list[StudyResults]", index: Path) -> None:
    from paceline.report.tables.reproduction import reproduction_json

    document = reproduction_json([one.reproduction for one in results])
    measured = [
        {
            "study": one.reproduction.study.name,
            "part": part.part.what,
            "name": part.study,
            "launches": 0 if part.analysis is None else len(part.analysis.launches),
            "missing_frameworks": dict(part.missing),
            "reason": part.reason,
        }
        for one in results
        for part in one.measured
    ]
    emit_json("reproduce", 1, {**document, "measured": measured, "site": str(index)})


def _tell(results: "list[StudyResults]", index: Path) -> None:
    from paceline.report.reproduced.site import answers, measured_table
    from paceline.report.tables.reproduction import summary_table

    parts = [(one, part) for one in results for part in one.measured]
    told = [textwrap.fill(words, WIDTH, subsequent_indent="   ") for words in answers(parts)]
    show([measured_table(parts), "", *told, ""])
    show([summary_table([one.reproduction for one in results])])
    missing = {name: words for _, part in parts for name, words in part.missing.items()}
    for name, words in missing.items():
        say(f"left out: {name} is not installed; {words}")
    say(f"Pages: {index}")
    ran = [part.study for _, part in parts if part.analysis is not None]
    if ran:
        next_line(command_line("report", ran[0]), command_line("list", "--study", ran[0]))
    else:
        next_line(same_job("reproduce", runs=True, short=True))
