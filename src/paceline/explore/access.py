"""Who may use the explorer's server: the user who started it, from its own page only.

Loopback is open to every user of a machine, so the address of the page contains a random token. It
is part of the path, not a cookie, because a browser sends cookies of 127.0.0.1 to any port, also to
that of another user's server.
"""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.ASCII)
"""Any port: the port of an SSH tunnel differs from that of the server."""
TOKEN_BYTES = 24
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NO_FRAMES = "frame-ancestors 'none'"
"""Browsers ignore this directive in the page's own <meta>."""


def new_token() -> str:
    """A random token, one for each run of the server."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class OwnPageOnly:
    """Refuses requests without the token and of other sites; sets the headers of every response."""

    def __init__(self, app: ASGIApp, token: str, policy: str) -> None:
        self._app, self._token = app, token
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refusal(scope)
            app = JSONResponse({"error": refused}, status_code=403) if refused else self._app
            await app(scope, receive, self._with_headers(send))

    def _refusal(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        (host, *others) = headers.getlist("host") or [""]
        origins = headers.getlist("origin")
        if others or not HOST.fullmatch(host) or set(origins) - {f"http://{host}"}:
            return "requests from other hosts or origins are refused"
        first = scope["path"].split("/")[1:2]
        if not secrets.compare_digest("".join(first).encode(), self._token.encode()):
            return "open the address that 'paceline explore' printed: it contains a token"
        return ""

    def _with_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                own = headers.get("Content-Security-Policy")
                policy = f"{own}; {NO_FRAMES}" if own else self._policy
                headers.update({**HEADERS, "Content-Security-Policy": policy})
            await send(message)

        return send_with_headers
