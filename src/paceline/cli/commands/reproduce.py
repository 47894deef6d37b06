"""``paceline reproduce``: compare predictions with published studies; repeat them here."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import WIDTH, command_line, next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.publications.reproduction_result import ReproductionResult

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
    if runs or site is not None:
        _reproduce_here(studies, runs, site or DEFAULT_SITE, short, store_path, as_json)
        return
    if short or store_path is not None:
        raise InputError(
            "--short and --store require --run or --site", "add --run or --site DIRECTORY"
        )
    from paceline.publications.predict_studies import reproduce
    from paceline.publications.reproduction_tables import (
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


def _reproduce_here(
    studies: tuple[str, ...],
    runs: bool,
    site: Path,
    short: bool,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Run the remaining launches with ``runs``, predict, and write the pages."""
    from paceline.cli.progress import study_progress
    from paceline.publications.run_studies import INDEX, run_studies, studies_so_far

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
                echo(f"\ncontinue with: {same_job('reproduce')}", err=True)
                raise
    if as_json:
        _emit(results, site / INDEX)
    else:
        _show(results, site / INDEX)


def _emit(results: "list[ReproductionResult]", index: Path) -> None:
    from paceline.publications.reproduction_tables import reproduction_json

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


def _show(results: "list[ReproductionResult]", index: Path) -> None:
    from paceline.publications.reproduction_tables import summary_table
    from paceline.publications.site.site_pages import answers, measured_table

    parts = [(one, part) for one in results for part in one.measured]
    lines = [textwrap.fill(text, WIDTH, subsequent_indent="   ") for text in answers(parts)]
    show([measured_table(parts), "", *lines, ""])
    show([summary_table([one.reproduction for one in results])])
    missing = {name: hint for _, part in parts for name, hint in part.missing.items()}
    for name, hint in missing.items():
        echo(f"omitted: {name} is not installed; {hint}")
    echo(f"Pages: {index}")
    ran = [part.study for _, part in parts if part.analysis is not None]
    if ran:
        next_line(command_line("report", ran[0]), command_line("list", "--study", ran[0]))
    else:
        next_line(same_job("reproduce", runs=True, short=True))
