"""The explorer's page: one document with inline style and script; requests go to its own server."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from importlib import resources

from paceline.explore.board import MOST_CANDIDATES
from paceline.explore.state import EVIDENCE, ExplorerState, form_knobs, names_by_option
from paceline.hardware.catalogue import catalogue
from paceline.render.html_page import hashed, package_text
from paceline.spec.knob import KnobField
from paceline.workload import zoo

START = {"cluster": "hkbu-v100-pcie", "nodes": "8", "batch": "64"}
"""The first candidate: ResNet-50 on a cluster with published measurements at several sizes."""
SCRIPTS = ("perfetto.js", "explore.js", "chart.js", "panels.js")
_WITH_SLIDER = {"batch"}
_CLOSED = {"Measurements", "Training run"}
_MOST_STEPS = 16
"""Largest power of two of a slider."""
_LONGEST_PLACEHOLDER = 12
"""Characters that a field shows; the tooltip has the whole default."""


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
        ("<!-- form -->", _form_html()),
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


def _form_html() -> str:
    """A group of fields for each group of options; options with a slider are in the page."""
    groups: dict[str, list[str]] = {}
    for name, knob in form_knobs().items():
        if name not in _WITH_SLIDER:
            groups.setdefault(knob.knob.group, []).append(_field(knob))
    return "\n".join(
        f'<details class="group"{"" if group in _CLOSED else " open"}>'
        f'<summary>{escape(group)}</summary>\n<div class="fields">\n'
        + "\n".join(fields)
        + "\n</div></details>"
        for group, fields in groups.items()
    )


def _label(knob: KnobField) -> str:
    """The beginning of the help text, up to examples and explanations."""
    return re.split(r"[;:,(.]| such as ", knob.knob.help)[0].strip()


def _field(knob: KnobField) -> str:
    title, usual = escape(knob.knob.text), escape(knob.knob.default or "default")
    names = names_by_option().get(knob.name) or (["true", "false"] if knob.kind is bool else [])
    if names:
        options = "".join(f"<option>{escape(name)}</option>" for name in names)
        field = f'<select name="{knob.name}"><option value="">{usual}</option>{options}</select>'
    else:
        shown = usual if len(usual) <= _LONGEST_PLACEHOLDER else "default"
        field = f'<input name="{knob.name}" placeholder="{shown}"{_number(knob)}>'
    return f'<label title="{title}">{escape(_label(knob))} {field}{_slider(knob)}</label>'


def _slider(knob: KnobField) -> str:
    """A slider over powers of two for a count; the number field keeps exact values."""
    if knob.kind is not int or (knob.knob.low or 0) < 1:
        return ""
    most = min(_MOST_STEPS, (knob.knob.high or 1 << _MOST_STEPS).__floor__().bit_length() - 1)
    label = escape(_label(knob))
    return (
        f'<input type="range" data-of="{knob.name}" aria-label="{label}" min="0" max="{most}" '
        'step="1">'
    )


def _number(knob: KnobField) -> str:
    """Attributes of a number; empty for text with a unit."""
    if knob.kind not in (int, float):
        return ""
    bounds = {"min": knob.knob.low, "max": knob.knob.high}
    given = "".join(f' {name}="{value:g}"' for name, value in bounds.items() if value is not None)
    return f' type="number"{given}' + (' step="any"' if knob.kind is float else "")
