"""The explorer's page: one document with inline style and script; requests go to its own server."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources

from paceline.explore.board import MOST_CANDIDATES
from paceline.explore.form import form_html
from paceline.explore.state import EVIDENCE, ExplorerState, form_knobs
from paceline.hardware.catalogue import catalogue
from paceline.render.html_page import hashed, package_text
from paceline.workload import zoo

START = {"cluster": "hkbu-v100-pcie", "nodes": "8", "batch": "64"}
"""The first candidate: ResNet-50 on a cluster with published measurements at several sizes."""
SCRIPTS = ("perfetto.js", "explore.js", "chart.js", "panels.js")


def explorer_page(studies: Sequence[str] = ()) -> str:
    """The page with all names to select from; ``studies`` are those of the store."""
    fixed = {
        name: value
        for name, value in asdict(ExplorerState()).items()
        if name not in ("options", "training", "evidence")
    }
    known = {
        "most_candidates": MOST_CANDIDATES,
        "models": zoo.names(),
        "clusters": sorted(catalogue().clusters),
        "studies": list(studies),
        "defaults": {**fixed, **dict.fromkeys((*form_knobs(), *EVIDENCE), "")},
        "start": START,
    }
    text = own_template("explore.html")
    for mark, content in (
        ("<!-- form -->", form_html()),
        ("/* style */", _style()),
        ("/* script */", _script()),
        ("/* choices */", json.dumps(known).replace("<", "\\u003c")),
    ):
        text = text.replace(mark, content)
    return text


@cache
def security_policy() -> str:
    """Allow only the page's own style and script, and requests to its own server."""
    return (
        f"default-src 'none'; style-src {hashed(_style())}; script-src {hashed(_script())}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


@cache
def _style() -> str:
    return "\n".join(
        (package_text("page.css"), package_text("figure.css"), own_template("explore.css"))
    )


@cache
def _script() -> str:
    return "\n".join((package_text("files.js"), *map(own_template, SCRIPTS)))


def own_template(name: str) -> str:
    """A template of the explorer, with normalised line ends."""
    source = resources.files("paceline.explore").joinpath("templates", name)
    return source.read_text(encoding="utf-8").replace("\r\n", "\n")
