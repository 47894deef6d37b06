"""Readers from the tables in ``data/logs``: one file per program.

A table adds vocabulary to the inferring reader. ``[marks]`` are texts and the confidence that each
adds, ``[labels]`` the quantity of labels that do not state it, ``[settings]`` patterns of facts
about the job, ``finished`` a pattern of the last line.
"""

import re

from paceline.importers.logs.inference.line_fields import FieldKind
from paceline.importers.logs.inference.vocabulary import Vocabulary
from paceline.importers.logs.inferred import InferringReader
from paceline.importers.logs.parsing.log_reader import LogReader
from paceline.located_toml import PACKAGE, shipped_toml

FOLDER = ("data", "logs")


def program_tables() -> set[str]:
    """Names of the tables."""
    return {path.stem for path in PACKAGE.joinpath(*FOLDER).glob("*.toml")}


def reader_of_table(name: str) -> LogReader:
    """The reader that the table ``name`` describes."""
    table = shipped_toml(*FOLDER, f"{name}.toml").values
    vocabulary = Vocabulary(
        {label: FieldKind(kind) for label, kind in table.get("labels", {}).items()},
        tuple(
            (fact, re.compile(pattern))
            for fact, patterns in table.get("settings", {}).items()
            for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        ),
        re.compile(table["finished"]) if "finished" in table else None,
        table.get("counts_samples", False),
        table.get("own_rates", False),
    )
    marks = tuple((mark, float(weight)) for mark, weight in table["marks"].items())
    return InferringReader(table["name"], table["title"], marks, vocabulary)
