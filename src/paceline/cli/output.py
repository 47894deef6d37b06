"""Output shared by commands: tables, versioned JSON, figure files."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo, escape_controls
from paceline.cli.next_steps import next_line
from paceline.json_text import json_text

if TYPE_CHECKING:
    from paceline.render.result import Part, PublicResult

__all__ = ["emit", "emit_json", "json_option", "next_line", "result_json", "show"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def emit(result: "PublicResult", as_json: bool, *next_commands: str) -> None:
    """Print the result of a public function as tables or JSON, its warnings and next commands."""
    if as_json:
        click.echo(result_json(result))
        return
    show(result.parts())
    warn(result.warnings())
    if next_commands:
        next_line(*next_commands)


def result_json(result: "PublicResult") -> str:
    """A result as one JSON object with its schema."""
    kind, _, version = result.schema.rpartition("/")
    return json_text(kind, int(version), result.to_dict())


def emit_json(kind: str, version: int, fields: Mapping[str, Any]) -> None:
    """Print ``fields`` as one JSON object whose ``schema`` names its kind and version.

    Field names contain units (``step_seconds``, ``gradient_bytes``). Infinite numbers and NaN
    become null, because JSON has neither.
    """
    click.echo(json_text(kind, version, fields))


def show(parts: "Iterable[Part]") -> None:
    """Print lines, tables and waterfalls; a terminal shows verdicts in colour."""
    from paceline.render.table import Table
    from paceline.render.terminal import print_lines, print_table
    from paceline.render.terminal_waterfall import print_waterfall

    coloured = sys.stdout.isatty() or "FORCE_COLOR" in os.environ
    markup = click.get_current_context().find_root().params.get("tables", "text")
    for part in parts:
        if isinstance(part, str):
            lines = [shown for line in part.split("\n") for shown in _sentences(line)]
            if coloured and markup == "text":
                print_lines(((escape_controls(line), "") for line in lines), None)
            else:
                echo("\n".join(lines), err=markup != "text")  # a file of tables has tables only
        elif not isinstance(part, Table):
            print_waterfall(part.waterfall, part.subject, part.real)
        elif markup == "text":
            print_table(part)
        else:
            from paceline.render.markup import MARKUPS

            echo(MARKUPS[markup](part))


def _sentences(line: str) -> list[str]:
    """Notes and sentences broken at the terminal's width; commands and columns as they are."""
    from paceline.render.terminal import prose

    if line.startswith("note: "):
        return prose(line, " " * 6)
    return prose(line) if line.endswith(".") and line[:1].isalnum() else [line]


def warn(lines: Iterable[str]) -> None:
    """Print ``lines`` on standard error."""
    for line in lines:
        echo(line, err=True)


def write_figure(path: Path, info: object, caption: str = "") -> Path:
    """Write a figure as SVG, PDF or PNG, depending on the suffix of ``path``."""
    from paceline.render.figure_files.figure_files import write_drawing
    from paceline.render.figures.drawing import WIDE, draw
    from paceline.render.figures.gantt import GanttInfo, readable_width

    width = readable_width(info, WIDE) if isinstance(info, GanttInfo) else WIDE
    return write_drawing(path, draw(info, width), caption)
