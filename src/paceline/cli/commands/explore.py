"""``paceline explore``: a local web page for predictions."""

import shlex
from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line
from paceline.cli.options import IntegerRange, store_option
from paceline.cli.output import emit_json, json_option
from paceline.errors import InputError, MissingExtraError
from paceline.store import default_store_path
from paceline.units import plural

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
    if directory is not None:
        _export(directory, name, store_path, as_json)
        return
    if name is not None or as_json:
        raise InputError("--study and --json require --export", "add --export DIRECTORY")
    try:
        from paceline.explore.server import serve
        from paceline.explore.studies import MeasuredStudies
    except ImportError:
        raise MissingExtraError(
            "the explorer needs Starlette and uvicorn", "pip install 'paceline[web]'"
        ) from None
    studies = MeasuredStudies(store_path or default_store_path())
    serve(port, echo, studies, opens_browser=not no_browser)


def _export(directory: Path, name: str | None, store_path: Path | None, as_json: bool) -> None:
    from paceline.explore.study_view import export_study
    from paceline.store import Store
    from paceline.study import Study

    path = store_path or default_store_path()
    if name is None:
        with Store(path, create=False) as store:
            newest = store.launches(newest=1)
        if not newest:
            raise InputError(f"the store '{path}' is empty", "run 'paceline measure' first")
        name = newest[0].study
    written = export_study(Study.load(name, path), directory)
    if as_json:
        emit_json("export-site", 1, {"study": name, "files": [str(one) for one in written]})
        return
    echo(f"{name}: wrote {plural(len(written), 'file')}; open {directory / 'index.html'}")
    next_line(f"paceline report {shlex.quote(name)} --figures figures")
