"""What every reference row says about the quantities, as it is kept for refits in a second.

Linearising a row takes schedules of its step; solving does not. So script/fit-constants writes
the linear statements down, and a fit without some of the rows is one solution of a small system.
"""

import csv
import gzip
import io
from collections.abc import Iterable
from functools import cache
from importlib import resources

from paceline.analyse.validation.fitting.linearise import Statement
from paceline.predictor.corrections.hierarchy import Quantity
from paceline.predictor.corrections.quantities import COMPUTING, SCALING

FILE = "statements.csv.gz"
_DIGITS = 6


def quantities_of(paired: bool) -> tuple[Quantity, ...]:
    """What a row says something about: with its baseline of scaling, alone of computing."""
    return SCALING if paired else (COMPUTING,)


@cache
def shipped_statements(paired: bool) -> dict[str, Statement]:
    """The statements of the reference rows by id: with their baselines, or alone."""
    path = resources.files("paceline") / "data" / "reference" / FILE
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    names = [quantity.name for quantity in quantities_of(paired)]
    return {
        row["id"]: Statement(
            row["id"], {name: float(row[name]) for name in names}, float(row["response"])
        )
        for row in csv.DictReader(io.StringIO(text))
        if (row["kind"] == "pair") is paired
    }


def statements_bytes(paired: Iterable[Statement], alone: Iterable[Statement]) -> bytes:
    """The file of the statements, the same bytes for the same statements."""
    names = [quantity.name for quantity in (COMPUTING, *SCALING)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "kind", "response", *names])
    for kind, statements in (("pair", paired), ("cold", alone)):
        for each in statements:
            numbers = [each.slopes.get(name) for name in names]
            writer.writerow([each.id, kind, _text(each.response), *map(_text, numbers)])
    return gzip.compress(out.getvalue().encode("utf-8"), 9, mtime=0)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DIGITS}g}"
