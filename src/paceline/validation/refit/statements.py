"""Linear statements of the reference rows about the fitted quantities, stored for fast refits.

Linearising a row takes schedules of its step; solving does not. So script/fit-constants writes
the linear statements down, and a fit without some of the rows is one solution of a small system.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources

from paceline.predictor.uncertainty.mixed_effects import Quantity
from paceline.predictor.uncertainty.quantities import COMPUTING, SCALING
from paceline.validation.refit.linearise import Statement

FILE = "statements.csv.gz"
STEPS_FILE = "step_statements.csv.gz"
_DIGITS = 6
_SLOPE_DECIMALS = 4


def quantities_of(paired: bool) -> tuple[Quantity, ...]:
    """Quantities that a row constrains: scaling with a baseline, compute without one."""
    return SCALING if paired else (COMPUTING,)


@cache
def shipped_statements(paired: bool) -> dict[str, Statement]:
    """The statements of the reference rows by id: with their baselines, or alone."""
    names = [quantity.name for quantity in quantities_of(paired)]
    return {
        row["id"]: _statement(row, names)
        for row in _read(FILE)
        if (row["kind"] == "pair") is paired
    }


@cache
def shipped_step_statements() -> tuple[Statement, ...]:
    """Steps linearised in the constants that `fitting.steps` fits, about the shipped values."""
    rows = _read(STEPS_FILE)
    names = [name for name in rows[0] if name not in ("id", "response")]
    return tuple(_statement(row, names) for row in rows)


def statements_bytes(paired: Iterable[Statement], alone: Iterable[Statement]) -> bytes:
    """The file of the statements, the same bytes for the same statements."""
    names = [quantity.name for quantity in (COMPUTING, *SCALING)]
    rows = [["id", "kind", "response", *names]]
    for kind, statements in (("pair", paired), ("cold", alone)):
        for each in statements:
            numbers = [each.slopes.get(name) for name in names]
            rows.append([each.id, kind, _text(each.response), *map(_text, numbers)])
    return _packed(rows)


def step_statements_bytes(statements: Sequence[Statement]) -> bytes:
    """The file of linearised steps; slopes with fewer digits."""
    names = list(statements[0].slopes)
    rows = [["id", "response", *names]]
    for each in statements:
        slopes = [f"{each.slopes[name]:.{_SLOPE_DECIMALS}f}" for name in names]
        short = [text.rstrip("0").rstrip(".") for text in slopes]
        rows.append([each.id, _text(each.response), *short])
    return _packed(rows)


def _packed(rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return gzip.compress(out.getvalue().encode("utf-8"), 9, mtime=0)


def _read(file: str) -> list[dict[str, str]]:
    path = resources.files("paceline") / "data" / "reference" / file
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _statement(row: Mapping[str, str], names: Iterable[str]) -> Statement:
    slopes = {name: float(row[name]) for name in names}
    return Statement(row["id"], slopes, float(row["response"]))


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DIGITS}g}"
