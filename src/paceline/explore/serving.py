"""Run the explorer's server until Ctrl-C."""

import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from paceline.errors import InputError
from paceline.explore.access import new_token
from paceline.explore.published import make_index
from paceline.explore.server import application
from paceline.explore.studies import MeasuredStudies

LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 2
WAITING_CONNECTIONS = 128


def serve(
    port: int, say: Callable[[str], None], studies: MeasuredStudies, *, opens_browser: bool
) -> None:
    """Serve the page on loopback until Ctrl-C; ``port`` 0 selects a free port.

    The address contains a token, so that other users of the machine cannot read the studies.
    """
    listener = _listener(port)
    token = new_token()
    address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/{token}/"
    config = uvicorn.Config(
        application(studies, token),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SECONDS_TO_END,
        timeout_keep_alive=30,
    )
    threading.Thread(target=make_index, daemon=True).start()
    say(f"Explorer: {address}   (Ctrl-C to stop)")
    with _redirect_to(address) as page:
        if opens_browser:
            webbrowser.open(page.as_uri())
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _redirect_to(address: str) -> Iterator[Path]:
    """A private file that leads to ``address``: command lines of browsers are public."""
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:  # mode 0700
        page = Path(folder) / "explorer.html"
        target = f'<meta http-equiv="refresh" content="0; url={address}">'
        page.write_text(f"<!doctype html><title>Explorer</title>{target}", encoding="utf-8")
        yield page


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(WAITING_CONNECTIONS)  # queue requests until the server is up
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on port {port} ({error.strerror})", "use another port, or --port 0"
        ) from None
    return listener
