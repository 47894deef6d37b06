"""``paceline show``: everything recorded about one launch."""

import json
from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit_json, json_option
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline show 19a3b
  paceline show 19a3b --trace step.json     (for Perfetto or chrome://tracing)
"""
LONGEST_VALUE = 400


@click.command(epilog=EXAMPLE)
@click.argument("launch_id")
@out_option("--trace", "Write the instrumented step as a Chrome trace.")
@store_option
@json_option
def command(launch_id: str, trace: Path | None, store_path: Path | None, as_json: bool) -> None:
    """Show everything recorded about one launch; a prefix of its id is enough."""
    from paceline.analysis.launch_tables import launch_record
    from paceline.render.files import write_text
    from paceline.step.serialise import chrome_trace
    from paceline.store import Store, default_store_path

    with Store(store_path or default_store_path(), create=False) as store:
        launch = store.launch(launch_id)
        directory = store.path.parent / "launches" / launch.id
    if trace is not None:
        if launch.outcome.timeline is None:
            raise InputError(
                f"launch {launch.id} has no timeline",
                "measure one with 'paceline measure --instrument phases'",
            )
        write_text(trace, chrome_trace(launch.outcome.timeline))
    record = launch_record(launch)
    if as_json:
        emit_json("show", 1, record)
        return
    for key, value in record.items():
        text = str(value if isinstance(value, str | int | float) else json.dumps(value))
        cut = f"{text[:LONGEST_VALUE]} ..." if len(text) > LONGEST_VALUE else text
        echo(f"{key:32} {cut}")
    for name, path in (("logs", directory), ("trace", trace)):
        if path is not None and path.exists():
            echo(f"{name:32} {path}")
    next_line(same_job("report", study=launch.study), same_job("show", as_json=True))
