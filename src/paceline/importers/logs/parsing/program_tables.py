"""Readers from the tables in ``data/logs``: one file per program.

A table with ``[[steps]]`` has a pattern per step line (`step_lines`); ``<n>`` is a number,
``<part>`` a fragment of ``[parts]``. A table without them adds vocabulary to the inferring reader:
the quantity of labels that do not state it (``[labels]``). ``[marks]`` are texts and the confidence
that each adds, ``[settings]`` patterns of facts about the job.
"""

import re
from collections.abc import Mapping
from typing import Any

from paceline.importers.logs.inference.line_fields import FieldKind
from paceline.importers.logs.inferred import InferringReader
from paceline.importers.logs.parsing.log_reader import LogReader
from paceline.importers.logs.parsing.printed_numbers import NUMBER
from paceline.importers.logs.parsing.step_lines import SettingLine, StepLine, StepLog
from paceline.located_toml import PACKAGE, shipped_toml

FOLDER = ("data", "logs")


def program_tables() -> set[str]:
    """Names of the tables."""
    return {path.stem for path in PACKAGE.joinpath(*FOLDER).glob("*.toml")}


def reader_of_table(name: str) -> LogReader:
    """The reader that the table ``name`` describes."""
    table = shipped_toml(*FOLDER, f"{name}.toml").values
    marks = tuple((mark, float(weight)) for mark, weight in table["marks"].items())
    labels = {label: FieldKind(kind) for label, kind in table.get("labels", {}).items()}
    if "steps" not in table:
        return InferringReader(table["name"], table["title"], marks, labels)
    parts = {part: _joined(text) for part, text in table.get("parts", {}).items()}
    settings = table.get("settings", {})
    return StepLog(
        table["name"],
        table["title"],
        marks,
        steps=tuple(_step_line(step, parts) for step in table["steps"]),
        settings=tuple(
            SettingLine(fact, re.compile(pattern))
            for fact, patterns in settings.items()
            for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        ),
        finished=re.compile(table["finished"]) if "finished" in table else None,
        own_rates=table.get("own_rates", False),
    ).reader


def _step_line(step: Mapping[str, Any], parts: Mapping[str, str]) -> StepLine:
    pattern = _joined(step["pattern"])
    for part, text in parts.items():
        pattern = pattern.replace(f"<{part}>", text)
    return StepLine(
        step["needle"],
        re.compile(pattern.replace("<n>", NUMBER)),
        step.get("first", 1),
        step.get("averages", True),
    )


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
