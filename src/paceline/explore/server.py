"""The server behind the page: loopback only, answers JSON, runs nothing and opens no path."""

import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from paceline.errors import PacelineError
from paceline.explore.answers import answer, job_of
from paceline.explore.page import explorer_page, security_policy
from paceline.explore.panels import PANELS, panel
from paceline.explore.state import state_of
from paceline.explore.studies import MeasuredStudies
from paceline.explore.study_view import study_document, study_html, study_policy
from paceline.explore.uploads import LARGEST_UPLOAD, Uploads

LARGEST_STATE = 20_000
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
Handler = Callable[[Request], Awaitable[Response]]


def application(studies: MeasuredStudies | None = None) -> Starlette:
    """The page and what it asks for; ``studies`` are those of a store that may be looked at."""
    uploads = Uploads()
    measured = studies or MeasuredStudies(None)
    page = explorer_page(measured.names())
    routes = [
        Route("/", _guarded(partial(_show_page, page))),
        Route("/api/answer", _guarded(partial(_answer, uploads, measured)), methods=["POST"]),
        Route("/api/panel/{name}", _guarded(partial(_panel, uploads, measured)), methods=["POST"]),
        Route("/study/{name:path}", _guarded(partial(_study, measured))),
        Route("/api/model", _guarded(partial(_upload, uploads)), methods=["POST"]),
    ]
    return Starlette(routes=routes)


def _guarded(handler: Handler) -> Handler:
    """Only browsers of this machine that show this page, and what they get stays in it.

    A mistake of who chooses is an answer like others: its words are in ``error``.
    """

    async def guarded(request: Request) -> Response:
        if not _comes_from_here(request):
            return JSONResponse({"error": "not from here"}, status_code=403)
        try:
            response = await handler(request)
        except PacelineError as error:
            hint = getattr(error, "hint", "")
            response = JSONResponse({"error": str(error), "hint": hint})
        response.headers.setdefault("Content-Security-Policy", security_policy())
        response.headers.update(
            {
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
        )
        return response

    return guarded


def _comes_from_here(request: Request) -> bool:
    host = request.headers.get("host", "")
    if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


async def _show_page(page: str, request: Request) -> Response:
    return HTMLResponse(page)


async def _study(studies: MeasuredStudies, request: Request) -> Response:
    name = request.path_params["name"]
    launches = await run_in_threadpool(lambda: studies.launches(name))
    if not launches:
        return JSONResponse({"error": "there is no such study"}, status_code=404)
    page = await run_in_threadpool(lambda: study_html(study_document(name, launches), back="/"))
    return HTMLResponse(page, headers={"Content-Security-Policy": study_policy()})


async def _answer(uploads: Uploads, studies: MeasuredStudies, request: Request) -> Response:
    given = await _document(request)
    begun = time.process_time()

    def found_answer() -> dict[str, Any]:
        state = state_of(given, uploads, studies.names() if given.get("study") else ())
        return answer(job_of(state, uploads), studies.plain(state.study) if state.study else ())

    found = await run_in_threadpool(found_answer)
    seconds = time.process_time() - begun
    return JSONResponse({**found, "server_seconds": seconds})


async def _panel(uploads: Uploads, studies: MeasuredStudies, request: Request) -> Response:
    name = request.path_params["name"]
    if name not in PANELS:
        return JSONResponse({"error": "there is no such part"}, status_code=404)
    given = await _document(request)
    names = studies.names() if given.get("study") else ()
    found = await run_in_threadpool(
        lambda: panel(name, job_of(state_of(given, uploads, names), uploads))
    )
    return JSONResponse(found)


async def _upload(uploads: Uploads, request: Request) -> Response:
    content = await _body(request, LARGEST_UPLOAD)
    name = request.headers.get("x-file-name", "")[:200]
    key = await run_in_threadpool(lambda: uploads.add(name, content))
    return JSONResponse({"model": key})


async def _document(request: Request) -> dict[str, Any]:
    body = await _body(request, LARGEST_STATE)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise PacelineError("what was sent is not JSON") from None
    if not isinstance(found, dict):
        raise PacelineError("what was sent is no set of choices")
    return found


async def _body(request: Request, most: int) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise PacelineError(f"more than {most:,} bytes were sent")
    return body
