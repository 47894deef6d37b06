"""Output shared by commands: tables, versioned JSON, figure files."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo, escape_json
from paceline.cli.next_steps import next_line

if TYPE_CHECKING:
    from paceline.render.table import Table
    from paceline.store import Launch

__all__ = ["emit_json", "json_option", "json_text", "next_line", "show", "show_launches"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def emit_json(kind: str, version: int, fields: Mapping[str, Any]) -> None:
    """Print ``fields`` as one JSON object whose ``schema`` names its kind and version.

    Field names contain units (``step_seconds``, ``gradient_bytes``). Infinite numbers and NaN
    become null, because JSON has neither.
    """
    click.echo(json_text(kind, version, fields))


def json_text(kind: str, version: int, fields: Mapping[str, Any]) -> str:
    """The text that `emit_json` prints, for commands that write it to a file."""
    document = {"schema": f"paceline/{kind}/{version}", **fields}
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    return escape_json(text)


def show(parts: "Iterable[str | Table]") -> None:
    """Print lines and tables; a verdict "does NOT fit" is printed in red."""
    from paceline.render.safe_text import NO_ROOM
    from paceline.render.terminal import print_lines, print_table

    markup = click.get_current_context().find_root().params.get("tables", "text")
    for part in parts:
        if isinstance(part, str) and part.startswith(NO_ROOM):
            verdict, _, rest = part.partition("\n")
            print_lines([(verdict, "bold red")], None)
            echo(rest)
        elif isinstance(part, str):
            echo(part)
        elif markup == "text":
            print_table(part)
        else:
            from paceline.render.markup import MARKUPS

            echo(MARKUPS[markup](part))


def show_launches(launches: "Sequence[Launch]") -> None:
    """Print the throughput of each configuration with its interval, and warnings."""
    from paceline.analysis.configurations import grouped
    from paceline.analysis.launch_tables import throughput_table, warnings_of

    groups = grouped(launches)
    if groups:
        show([throughput_table(groups)])
    warn(warnings_of(launches))


def warn(lines: Iterable[str]) -> None:
    """Print ``lines`` on standard error."""
    for line in lines:
        echo(line, err=True)


def write_figure(path: Path, info: object, caption: str = "") -> Path:
    """Write a figure as SVG, PDF or PNG, depending on the suffix of ``path``."""
    from paceline.render.figure_files.figure_files import write_drawing
    from paceline.render.figures.drawing import draw

    return write_drawing(path, draw(info), caption)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
