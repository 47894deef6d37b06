"""The form of the explorer: fields of the declared options, in their groups."""

import re
from html import escape

from paceline.explore.state import form_knobs, names_by_option
from paceline.spec.knob import KnobField

_WITH_SLIDER = {"batch"}
_CLOSED = {"Measurements", "Training run"}
_MOST_STEPS = 16
"""Largest power of two of a slider."""
_LONGEST_PLACEHOLDER = 12
"""Characters that a field shows; the tooltip has the whole default."""


def form_html() -> str:
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


def label_of(knob: KnobField) -> str:
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
    return f'<label title="{title}">{escape(label_of(knob))} {field}{_slider(knob)}</label>'


def _slider(knob: KnobField) -> str:
    """A slider over powers of two for a count; the number field keeps exact values."""
    if knob.kind is not int or (knob.knob.low or 0) < 1:
        return ""
    most = min(_MOST_STEPS, (knob.knob.high or 1 << _MOST_STEPS).__floor__().bit_length() - 1)
    label = escape(label_of(knob))
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
