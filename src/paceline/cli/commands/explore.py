"""``paceline explore``: a local web page for predictions."""

import shlex
from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.options import IntegerRange, store_option
from paceline.cli.output import emit, json_option
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline explore
  paceline explore --port 8123 --no-browser
  paceline explore --export site --study resnet44-1115-214119
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--port",
    type=IntegerRange(0, 65535),
    default=8017,
    show_default=True,
    help="Port of the local server; 0 for any free port.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--export",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Export a study as static pages to this directory; do not serve.",
)
@click.option("--study", "name", metavar="NAME", help="Study to export [default: the newest].")
@store_option
@json_option
def command(
    port: int,
    no_browser: bool,
    directory: Path | None,
    name: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Explore predictions in a browser: choose model, topology and plan interactively.

    The page shows throughput and efficiency with intervals, step time breakdown, memory, best
    plans, data versus model parallelism, and published measurements. It shows the command with the
    same result and keeps the settings in its URL. The server listens on the loopback interface
    only; stop it with Ctrl-C.

    Studies of the store can be compared with predictions and browsed by configuration, launch,
    rank, phase, layer and trace. --export writes these pages, the report and tables as files.
    """
    from paceline.explore.api import export_pages, serve_explorer

    if directory is not None:
        found = export_pages(directory, study=name, store=store_path)
        report = f"paceline report {shlex.quote(found.study)} --figures figures"
        emit(found, as_json, report)
        return
    if name is not None or as_json:
        raise InputError("--study and --json require --export", "add --export DIRECTORY")
    serve_explorer(port=port, store=store_path, opens_browser=not no_browser, on_start=echo)
