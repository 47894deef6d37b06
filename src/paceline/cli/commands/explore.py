"""``paceline explore``: a local page on which predictions are turned over."""

import shlex
from pathlib import Path

import click

from paceline.cli.next_steps import next_line
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option
from paceline.cli.say import say
from paceline.errors import InputError, MissingExtraError
from paceline.store import default_store_path

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
    type=click.IntRange(0, 65535),
    default=8017,
    show_default=True,
    help="Port on this machine; 0 for any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Only serve; open no browser.")
@click.option(
    "--export",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a finished study there as pages that open from disk, and serve nothing.",
)
@click.option("--study", "name", help="The study to export [default: the newest].")
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
    """Serve a page on this machine on which model, place and plan are chosen by hand.

    Sliders along five axes answer at once: throughput and efficiency with intervals, where the time
    goes, memory, best plans, data against model parallelism, published rows. The page shows the
    command that gives the same answer, and keeps what is chosen in its address. The server listens
    on loopback only, and ends with Ctrl-C.

    Studies of the store can be drawn over predictions and walked through: configuration, launch,
    rank, phase, layer, trace. --export writes that walk, the report and tables as static files.
    """
    if directory is not None:
        _export(directory, name, store_path, as_json)
        return
    if name is not None or as_json:
        raise InputError("--study and --json belong to --export", "add --export DIRECTORY")
    try:
        from paceline.explore.serving import serve
        from paceline.explore.studies import MeasuredStudies
    except ImportError:
        raise MissingExtraError(
            "the explorer needs Starlette and uvicorn", "pip install 'paceline[web]'"
        ) from None
    studies = MeasuredStudies(store_path or default_store_path())
    serve(port, say, studies, opens_browser=not no_browser)


def _export(directory: Path, name: str | None, store_path: Path | None, as_json: bool) -> None:
    from paceline.explore.export import export_study
    from paceline.store import Store
    from paceline.study import Study

    path = store_path or default_store_path()
    if name is None:
        with Store(path) as store:
            newest = store.launches(newest=1)
        if not newest:
            raise InputError(f"no launch in '{path}'", "'paceline measure' makes some")
        name = newest[0].study
    written = export_study(Study.load(name, path), directory)
    if as_json:
        emit_json("export-site", 1, {"study": name, "files": [str(one) for one in written]})
        return
    say(f"{name}: {len(written)} files; open {directory / 'index.html'}")
    next_line(f"paceline report {shlex.quote(name)} --figures figures")
