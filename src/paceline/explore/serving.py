"""Run the explorer's server until Ctrl-C."""

import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from paceline.errors import InputError
from paceline.explore.published import make_index
from paceline.explore.server import application
from paceline.explore.studies import MeasuredStudies

LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 2
WAITING_CONNECTIONS = 128


def serve(
    port: int, say: Callable[[str], None], studies: MeasuredStudies, *, opens_browser: bool
) -> None:
    """Serve the page on loopback until Ctrl-C; ``port`` 0 selects a free port."""
    listener = _listener(port)
    address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/"
    config = uvicorn.Config(
        application(studies),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SECONDS_TO_END,
        timeout_keep_alive=30,
    )
    threading.Thread(target=make_index, daemon=True).start()
    say(f"Explorer: {address}   (Ctrl-C to stop)")
    if opens_browser:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listener])


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
