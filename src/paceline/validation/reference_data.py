"""Published measurements in the package, and their sources."""

import gzip
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

from paceline.validation.read_rows import MeasurementTable, read_lines

REFERENCE_NAME = "measurements.csv.gz"
LAYOUTS_NAME = "layouts.csv.gz"


@dataclass(frozen=True, slots=True)
class Source:
    """One origin of reference rows: repository at its commit, licence, and number of rows."""

    family: str
    repository: str
    licence: str
    rows: int


@lru_cache(maxsize=1)
def reference_table() -> MeasurementTable:
    """All reference measurements. The table is cached: do not modify it."""
    table = MeasurementTable()
    read_lines(table, REFERENCE_NAME, reference_text().splitlines(keepends=True), "")
    return table


@lru_cache(maxsize=1)
def layout_table() -> MeasurementTable:
    """Layouts of Llama-like models, including failed ones."""
    table = MeasurementTable()
    read_lines(table, LAYOUTS_NAME, _text(LAYOUTS_NAME).splitlines(keepends=True), "")
    return table


def reference_text() -> str:
    return _text(REFERENCE_NAME)


def _text(name: str) -> str:
    return gzip.decompress((_folder() / name).read_bytes()).decode("utf-8")


def reference_sources() -> list[Source]:
    """Sources of the reference rows, in the order of their families."""
    counts = Counter(
        (row.configuration.family, row.source)
        for table in (reference_table(), layout_table())
        for row in table.measurements
    )
    listed = tomllib.loads((_folder() / "sources.toml").read_text(encoding="utf-8"))["source"]
    return [
        Source(
            entry["family"],
            entry["repository"],
            entry["licence"],
            counts[entry["family"], entry["repository"]],
        )
        for entry in listed
    ]


def _folder() -> Traversable:
    return resources.files("paceline") / "data" / "reference"
