"""The explorer's page: one document with its style and script, which ask only its own server."""

import json
from dataclasses import asdict
from functools import cache
from importlib import resources

from paceline.explore.state import ExplorerState, choices
from paceline.report.page import hashed, package_text


@cache
def explorer_page() -> str:
    """The page, with every name that can be chosen."""
    known = {**choices(), "defaults": asdict(ExplorerState())}
    text = _own("explore.html")
    for mark, content in (
        ("/* style */", _style()),
        ("/* script */", _script()),
        ("/* choices */", json.dumps(known).replace("<", "\\u003c")),
    ):
        text = text.replace(mark, content)
    return text


@cache
def security_policy() -> str:
    """Nothing but the page's own style and script, and requests to its own server."""
    return (
        f"default-src 'none'; style-src {hashed(_style())}; script-src {hashed(_script())}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


@cache
def _style() -> str:
    return "\n".join((package_text("page.css"), package_text("figure.css"), _own("explore.css")))


@cache
def _script() -> str:
    return _own("explore.js")


def _own(name: str) -> str:
    source = resources.files("paceline.explore").joinpath("templates", name)
    return source.read_text(encoding="utf-8").replace("\r\n", "\n")
