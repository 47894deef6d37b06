"""``paceline explore``: a local page on which predictions are turned over."""

import click

from paceline.cli.say import say
from paceline.errors import MissingExtraError

EXAMPLE = """
\b
Examples:
  paceline explore
  paceline explore --port 8123 --no-browser
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
def command(port: int, no_browser: bool) -> None:
    """Serve a page on this machine on which model, place and plan are chosen by hand.

    Sliders along five axes answer at once: throughput and efficiency with intervals, where the time
    goes, memory, best plans, data against model parallelism, published rows. The page shows the
    command that gives the same answer, and keeps what is chosen in its address. The server listens
    on loopback only, and ends with Ctrl-C.
    """
    try:
        from paceline.explore.serving import serve
    except ImportError:
        raise MissingExtraError(
            "the explorer needs Starlette and uvicorn", "pip install 'paceline[web]'"
        ) from None
    serve(port, say, opens_browser=not no_browser)
