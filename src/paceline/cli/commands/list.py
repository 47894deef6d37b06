"""``paceline list``: list recorded launches."""

from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import IntegerRange, store_option
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Examples:
  paceline list
  paceline list --study resnet44-1115-2140 --json
"""


@click.command(epilog=EXAMPLE)
@click.option("--study", metavar="NAME", help="List only launches of this study.")
@click.option(
    "--last",
    type=IntegerRange(1),
    default=40,
    show_default=True,
    help="Number of newest launches.",
)
@store_option
@json_option
def command(study: str | None, last: int, store_path: Path | None, as_json: bool) -> None:
    """List recorded launches, newest last."""
    from paceline.analysis.launch_tables import launch_table, launches_json
    from paceline.store import Store, default_store_path
    from paceline.units import plural

    with Store(store_path or default_store_path(), create=False) as store:
        total = store.count(study)
        if study is not None and not total:
            raise store.no_study(study)
        shown = store.launches(study, newest=last)
    if as_json:
        emit_json("list", 1, {"launches": launches_json(shown)})
        return
    note = f"{len(shown):,} of {plural(total, 'launch')}."
    show([launch_table(shown, note, of_one_study=False)])
    if shown:
        newest = shown[-1]
        next_line(
            same_job("show", launch_id=newest.id),
            same_job("report", study=newest.study),
            same_job("export", path="launches.csv"),
        )
