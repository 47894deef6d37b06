"""``paceline show``: everything that was recorded about one launch."""

import json
from pathlib import Path

import click

from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, next_line

EXAMPLE = """
\b
Examples:
  paceline show 19a3b
  paceline show 19a3b --trace step.json     (open it in Perfetto or chrome://tracing)
"""


@click.command(epilog=EXAMPLE)
@click.argument("launch_id")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the timed step as a Chrome trace.",
)
@store_option
@json_option
def command(launch_id: str, trace: Path | None, store_path: Path | None, as_json: bool) -> None:
    """Show one launch; the beginning of its id is enough."""
    from paceline.cli.tables import launch_json
    from paceline.errors import InputError
    from paceline.report.files import write_text
    from paceline.step import chrome_trace
    from paceline.store import Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        launch = store.launch(launch_id)
        directory = store.path.parent / "launches" / launch.id
    if trace is not None:
        if launch.outcome.timeline is None:
            raise InputError(
                f"launch {launch.id} has no timeline",
                "launches made with 'measure --instrument phases' have one",
            )
        write_text(trace, chrome_trace(launch.outcome.timeline))
    outcome = launch.outcome
    record = {
        **launch_json(launch),
        "ended_at": outcome.ended_at,
        "warmup_steps": launch.warmup_steps,
        "job": {key: value for key, value in launch.job.items() if key != "graph"},
        "environment": launch.environment,
        "facts": outcome.facts,
        "ranks": [
            {
                "rank": rank.rank,
                "wall_seconds": list(rank.wall_seconds),
                "cpu_seconds": list(rank.cpu_seconds),
                "losses": list(rank.losses),
            }
            for rank in outcome.ranks
        ],
        "layers": len(outcome.layers),
    }
    if as_json:
        emit_json("show", 1, record)
        return
    for key, value in record.items():
        words = value if isinstance(value, str | int | float) else json.dumps(value)
        click.echo(f"{key:32} {words if len(str(words)) < 400 else str(words)[:400] + ' ...'}")
    if directory.exists():
        click.echo(f"{'logs':32} {directory}")
    if trace is not None:
        click.echo(f"{'trace':32} {trace}")
    next_line(f"paceline explain {launch.study}", f"paceline show {launch.id} --json")
