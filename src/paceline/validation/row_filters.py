"""Filters and sorting of published rows by any column."""

import csv
import io
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.validation.published_row import PublishedRow
from paceline.validation.row_schema import COLUMNS

_CONDITION = re.compile(r"^\s*([A-Za-z_]+)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*$")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_HINT = "write COLUMN=VALUE, also with != < <= > >= or ~ (contains): --where 'devices>=8'"


def selected(rows: Sequence[PublishedRow], conditions: Sequence[str]) -> list[PublishedRow]:
    """The rows that meet every condition, such as ``device=k80``, ``nodes>1``, ``method~XLA``."""
    chosen = list(rows)
    for condition in conditions:
        keeps = _condition(condition)
        chosen = [row for row in chosen if keeps(row)]
    return chosen


def in_order(rows: Sequence[PublishedRow], column: str) -> list[PublishedRow]:
    """Rows sorted by a column, in descending order with a leading ``-``; unknown values last."""
    name = attribute_of(column.removeprefix("-"))
    known = [row for row in rows if row.value(name) not in (None, "")]
    unknown = [row for row in rows if row.value(name) in (None, "")]
    known.sort(key=lambda row: row.value(name), reverse=column.startswith("-"))
    return known + unknown


def attribute_of(column: str) -> str:
    """The attribute of a column of the file, or an error that suggests one."""
    return look_up("column", column, COLUMNS, f"columns: {', '.join(COLUMNS)}").attribute


def to_csv(rows: Sequence[PublishedRow]) -> str:
    """Rows as a CSV that `paceline validate --data` can read."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(row.value(column.attribute)) for column in COLUMNS.values()])
    return out.getvalue()


def _condition(text: str) -> Callable[[PublishedRow], bool]:
    match = _CONDITION.match(text)
    if match is None:
        raise InputError(f"'{text}' is not a condition", _HINT)
    column, sign, wanted = match.groups()
    attribute = attribute_of(column)
    if sign == "~":
        return lambda row: wanted.lower() in str(row.value(attribute) or "").lower()
    read = COLUMNS[column].read
    try:
        value = read(wanted) if wanted else None
    except ValueError as problem:
        raise InputError(f"'{text}': {problem}", _HINT) from None
    compare = _COMPARE[sign]

    def keeps(row: PublishedRow) -> bool:
        actual = row.value(attribute)
        if actual in (None, "") or value is None:
            return sign in ("=", "!=") and compare(actual or None, value)
        return compare(actual, value)

    return keeps


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
