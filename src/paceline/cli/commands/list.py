"""``paceline list``: what has been recorded."""

from pathlib import Path

import click

from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, next_line

EXAMPLE = """
\b
Examples:
  paceline list
  paceline list --study resnet44-1115-2140 --json
"""


@click.command(epilog=EXAMPLE)
@click.option("--study", help="Only the launches of this study.")
@click.option("--last", default=40, show_default=True, help="Only the newest launches.")
@store_option
@json_option
def command(study: str | None, last: int, store_path: Path | None, as_json: bool) -> None:
    """List recorded launches, the newest last."""
    from paceline.analyse.statistics import mean_step_seconds, throughput
    from paceline.cli.tables import launches_json
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table
    from paceline.store import Status, Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        launches = store.launches(study)
    shown = launches[-last:] if last > 0 else launches
    if as_json:
        emit_json("list", 1, {"launches": launches_json(shown)})
        return
    columns = (
        Column("launch"),
        Column("study"),
        Column("model"),
        Column("processes", decimals=0),
        Column("batch", decimals=0),
        Column("kind"),
        Column("status"),
        Column("samples/s"),
        Column("step", "ms", scale=1e3),
    )
    rows = []
    for launch in shown:
        kind = "plain" if launch.instrument == "none" else launch.instrument
        if launch.world_size > 1 and not launch.synchronised:
            kind = "side by side"
        done = launch.status is Status.FINISHED
        rows.append(
            (
                launch.id,
                launch.study,
                launch.model,
                float(launch.world_size),
                float(launch.batch_per_rank),
                kind,
                str(launch.status),
                throughput(launch) if done else None,
                mean_step_seconds(launch) if done else None,
            )
        )
    print_table(Table(columns, tuple(rows), note=f"{len(shown)} of {len(launches)} launches."))
    next_line("paceline show LAUNCH", "paceline explain STUDY", "paceline export launches.csv")
