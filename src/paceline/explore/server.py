"""The server of the page: loopback only, JSON only; it runs no command and opens no path."""

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from paceline.errors import PacelineError
from paceline.explore.answers import BoardColumn, answer, job_of
from paceline.explore.board import ComparisonBoard
from paceline.explore.page import explorer_page, security_policy
from paceline.explore.panels import PANELS, panel
from paceline.explore.state import state_of
from paceline.explore.studies import MeasuredStudies
from paceline.explore.study_view import study_document, study_html, study_policy
from paceline.explore.uploads import LARGEST_UPLOAD, Uploads

LARGEST_STATE = 20_000
HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def application(studies: MeasuredStudies | None = None) -> Starlette:
    """The page and its API; ``studies`` are those of the store."""
    uploads = Uploads()
    measured = studies or MeasuredStudies(None)
    page = explorer_page(measured.names())

    def answered(given: Mapping[str, Any]) -> BoardColumn:
        state = state_of(given, uploads, measured.names() if given.get("study") else ())
        return answer(job_of(state, uploads), measured.plain(state.study) if state.study else ())

    routes = [
        Route("/", partial(_show_page, page)),
        Route("/api/board", partial(_board, ComparisonBoard(answered)), methods=["POST"]),
        Route("/api/panel/{name}", partial(_panel, uploads, measured), methods=["POST"]),
        Route("/study/{name:path}", partial(_study, measured)),
        Route("/api/model", partial(_upload, uploads), methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guarded)],
        exception_handlers={PacelineError: _mistake, Exception: _failure},
    )


async def _guarded(
    request: Request, answered: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Refuse other hosts and origins; set the headers on every response, errors included."""
    if not _comes_from_here(request):
        return _with_headers(
            JSONResponse(
                {"error": "requests from other hosts or origins are refused"}, status_code=403
            )
        )
    return _with_headers(await answered(request))


def _with_headers(response: Response) -> Response:
    response.headers.setdefault("Content-Security-Policy", security_policy())
    response.headers.update(HEADERS)
    return response


async def _mistake(request: Request, error: Exception) -> Response:
    """An invalid option is an ordinary response: the page shows ``error`` and ``hint``."""
    return JSONResponse({"error": str(error), "hint": getattr(error, "hint", "")})


async def _failure(request: Request, error: Exception) -> Response:
    """An internal error; its text may contain paths, so the page gets only its type."""
    message = f"internal error in the explorer: {type(error).__name__}"
    return _with_headers(JSONResponse({"error": message}, status_code=500))


def _comes_from_here(request: Request) -> bool:
    host = request.headers.get("host", "")
    if not HOST.fullmatch(host):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


async def _show_page(page: str, request: Request) -> Response:
    return HTMLResponse(page)


async def _study(studies: MeasuredStudies, request: Request) -> Response:
    name = request.path_params["name"]
    launches = await run_in_threadpool(lambda: studies.launches(name))
    if not launches:
        return JSONResponse({"error": "study not found"}, status_code=404)
    page = await run_in_threadpool(lambda: study_html(study_document(name, launches), back="/"))
    # Browsers ignore frame-ancestors in the page's own <meta>, so only the header has it.
    policy = f"{study_policy()}; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


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
    content = await _body(request, LARGEST_UPLOAD)
    name = unquote(request.headers.get("x-file-name", "")[-200:])
    key = await run_in_threadpool(lambda: uploads.add(name, content))
    return JSONResponse({"model": key})


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
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise PacelineError(f"the request is larger than {most:,} bytes")
    return bytes(body)
