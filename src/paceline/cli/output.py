"""What every command shares on its way out: tables, versioned JSON, files."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.next_steps import next_line
from paceline.cli.say import say, shown_in_json

if TYPE_CHECKING:
    from paceline.report.table import Table
    from paceline.store import Launch

__all__ = ["emit_json", "json_option", "json_text", "next_line", "show", "show_launches"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
"""Replaces the table by the same facts as one JSON object."""


def emit_json(kind: str, version: int, fields: Mapping[str, Any]) -> None:
    """Print ``fields`` as one JSON object whose ``schema`` names its kind and version.

    Units are part of the names (``step_seconds``, ``gradient_bytes``). Numbers that are not
    finite become null, since JSON has none.
    """
    click.echo(json_text(kind, version, fields))


def json_text(kind: str, version: int, fields: Mapping[str, Any]) -> str:
    """What `emit_json` prints, for commands that write it to a file."""
    document = {"schema": f"paceline/{kind}/{version}", **fields}
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    return shown_in_json(text)


def show(parts: "Iterable[str | Table]") -> None:
    """Print lines and tables, one below the other."""
    from paceline.report.terminal import print_table

    markup = click.get_current_context().find_root().params.get("tables", "text")
    for part in parts:
        if isinstance(part, str):
            say(part)
        elif markup == "text":
            print_table(part)
        else:
            from paceline.report.markup import MARKUPS

            say(MARKUPS[markup](part))


def show_launches(launches: "Sequence[Launch]") -> None:
    """Throughput of each configuration with its interval, and every reason to doubt it."""
    from paceline.analyse.groups import grouped
    from paceline.report.tables.launches import throughput_table, warnings_of

    groups = grouped(launches)
    if groups:
        show([throughput_table(groups)])
    warn(warnings_of(launches))


def warn(lines: Iterable[str]) -> None:
    """Print lines on standard error."""
    for line in lines:
        say(line, err=True)


def write_figure(path: Path, info: object, caption: str = "") -> Path:
    """Write one figure as SVG, PDF or PNG, as the ending of ``path`` says."""
    from paceline.report.figures.drawing import draw
    from paceline.report.paper.figure_files import write_drawing

    return write_drawing(path, draw(info), caption)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
