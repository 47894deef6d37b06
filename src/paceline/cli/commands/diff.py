"""``paceline diff``: compare two launches, studies or predictions."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.cli.study_arguments import study_argument

EXAMPLE = """
\b
Examples:
  paceline diff resnet44-0147 resnet44-1115-2140
  paceline diff 19a3b06 19a3c06
  paceline diff before.json after.json          (output of 'predict --json')
"""


@click.command(epilog=EXAMPLE)
@study_argument("first", "A", may_be_left_out=False)
@study_argument("second", "B", may_be_left_out=False)
@store_option
@json_option
def command(first: str, second: str, store_path: Path | None, as_json: bool) -> None:
    """Compare B with A: settings, machine and versions, then step time.

    A and B are studies, launches (a prefix of the id is enough) or JSON files of predictions.
    """
    from contextlib import ExitStack

    from paceline.analysis.regression import time_changes
    from paceline.analysis.regression_tables import campaign_warnings, changes_json, changes_table
    from paceline.analysis.run_summary import describe, setting_changes
    from paceline.errors import InputError
    from paceline.render.table import Column, Table
    from paceline.store import Store, default_store_path

    with ExitStack() as stack:
        store = None
        if not (first.endswith(".json") and second.endswith(".json")):
            path = store_path or default_store_path()
            store = stack.enter_context(Store(path, create=False))
        sides = describe(store, first), describe(store, second)
    settings = setting_changes(*sides)
    try:
        changes = time_changes(sides[0].launches, sides[1].launches)
    except InputError:
        changes = []
    document: dict[str, Any] = {
        "settings": [asdict(one) for one in settings],
        "changes": changes_json(changes),
        "step_seconds": [one.step_seconds for one in sides],
    }
    if as_json:
        emit_json("diff", 1, {"first": first, "second": second, **document})
        return
    if settings:
        columns = (Column("setting"), Column(first), Column(second))
        rows = tuple((one.name, _short(one.first), _short(one.second)) for one in settings)
        show([Table(columns, rows)])
    else:
        echo("Settings, machine and versions are identical.")
    if changes:
        show([changes_table(changes)])
        warn(campaign_warnings(changes))
    for line in _predicted_lines(first, second, *(one.step_seconds for one in sides)):
        echo(line)
    if not changes and not any(one.step_seconds for one in sides):
        echo("The two have no configuration in common: step times are not compared.")
    studies = bool(changes) and not any(one.step_seconds for one in sides)
    arguments = ("check", first, second) if studies and len(sides[0].launches) > 1 else ("list",)
    next_line(command_line(*arguments))


def _predicted_lines(
    first: str, second: str, before: float | None, after: float | None
) -> list[str]:
    from paceline.units import format_seconds

    named = ((first, before), (second, after))
    lines = [f"{name}: predicted {format_seconds(one)} per step" for name, one in named if one]
    if before and after:
        lines.append(f"{second} / {first}: {after / before:.3f}")
    return lines


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
