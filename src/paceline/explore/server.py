"""The server of the page: loopback only, JSON only; it runs no command and opens no path."""

import asyncio
import json
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from paceline.analysis.configurations import grouped
from paceline.errors import InputError, PacelineError
from paceline.explore.access import OwnPageOnly, new_token
from paceline.explore.answers import BoardColumn, answer, job_of
from paceline.explore.board import ComparisonBoard
from paceline.explore.page import explorer_page, security_policy
from paceline.explore.panels import PANELS, panel
from paceline.explore.published import make_index
from paceline.explore.state import state_of
from paceline.explore.studies import MeasuredStudies
from paceline.explore.study_view import study_document, study_html, study_policy
from paceline.explore.uploads import Uploads, largest_upload
from paceline.units import format_bytes

LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 2
WAITING_CONNECTIONS = 128
LARGEST_STATE = 20_000
BODY_SECONDS = 30.0
"""Limit on the time in which a request must be received."""


def application(studies: MeasuredStudies, token: str) -> ASGIApp:
    """The page and its API below ``/token/``; ``studies`` are those of the store."""
    uploads = Uploads()
    page = explorer_page(studies.names())

    def answered(given: Mapping[str, Any]) -> BoardColumn:
        state = state_of(given, uploads, studies.names() if given.get("study") else ())
        measured = [*studies.plain(state.study)] if state.study else []
        if "log" in state.evidence:
            measured += grouped([uploads[state.evidence["log"]].value])
        return answer(job_of(state, uploads), measured)

    routes = [
        Route("/", partial(_show_page, page)),
        Route("/api/board", partial(_board, ComparisonBoard(answered)), methods=["POST"]),
        Route("/api/panel/{name}", partial(_panel, uploads, studies), methods=["POST"]),
        Route("/study/{name:path}", partial(_study, studies)),
        Route("/api/model", partial(_upload, uploads), methods=["POST"]),
    ]
    app = Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        exception_handlers={PacelineError: _mistake, Exception: _failure},
    )
    return OwnPageOnly(app, token, security_policy())


async def _mistake(request: Request, error: Exception) -> Response:
    """An invalid option is an ordinary response: the page shows ``error`` and ``hint``."""
    return JSONResponse({"error": str(error), "hint": getattr(error, "hint", "")})


async def _failure(request: Request, error: Exception) -> Response:
    """An internal error; its text may contain paths, so the page gets only its type."""
    message = f"internal error in the explorer: {type(error).__name__}"
    return JSONResponse({"error": message}, status_code=500)


async def _show_page(page: str, request: Request) -> Response:
    return HTMLResponse(page)


async def _study(studies: MeasuredStudies, request: Request) -> Response:
    name = request.path_params["name"]
    launches = await run_in_threadpool(lambda: studies.launches(name))
    if not launches:
        return JSONResponse({"error": "study not found"}, status_code=404)
    page = await run_in_threadpool(lambda: study_html(study_document(name, launches), back="../"))
    return HTMLResponse(page, headers={"Content-Security-Policy": study_policy()})


async def _board(board: ComparisonBoard, request: Request) -> Response:
    given = await _document(request)
    begun = time.process_time()
    found = await run_in_threadpool(board.document, given)
    return JSONResponse({**found, "server_seconds": time.process_time() - begun})


async def _panel(uploads: Uploads, studies: MeasuredStudies, request: Request) -> Response:
    name = request.path_params["name"]
    if name not in PANELS:
        return JSONResponse({"error": "panel not found"}, status_code=404)
    given = await _document(request)
    names = studies.names() if given.get("study") else ()
    found = await run_in_threadpool(
        lambda: panel(name, job_of(state_of(given, uploads, names), uploads))
    )
    return JSONResponse(found)


async def _upload(uploads: Uploads, request: Request) -> Response:
    name = unquote(request.headers.get("x-file-name", "")[-200:])
    content = await _body(request, largest_upload(name))
    async with uploads.reading:  # one at a time: a hostile file takes 30 times its size in memory
        key = await run_in_threadpool(lambda: uploads.add(name, content))
    return JSONResponse({uploads[key].option: key})


async def _document(request: Request) -> dict[str, Any]:
    body = await _body(request, LARGEST_STATE)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise PacelineError("the request is not valid JSON") from None
    if not isinstance(found, dict):
        raise PacelineError("expected a JSON object")
    return found


async def _body(request: Request, most: int) -> bytes:
    """The body, received within `BODY_SECONDS`; longer ones are refused without receiving them."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise PacelineError(f"the request is larger than {format_bytes(most)}")
    except TimeoutError:
        raise PacelineError(f"the request took longer than {BODY_SECONDS:.0f} s") from None
    return bytes(body)


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
