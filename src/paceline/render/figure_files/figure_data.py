"""The numbers of any figure as rows of a CSV file, one row per mark."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from paceline.render.figures.bars import BarsInfo
from paceline.render.number_format import Ranged
from paceline.step.waterfall import Waterfall

Row = dict[str, Any]
_LEFT_OUT = {"title", "x_title", "y_title", "unit", "log_x", "log_y", "ideal", "names"}
_LEFT_OUT |= {"device_title", "quantity", "order", "band", "left_out"}
"""Labels and settings of a figure."""


def figure_rows(info: object) -> list[Row]:
    """One row per mark: the labels of its series, then its numbers; intervals are low and high."""
    if not is_dataclass(info) or isinstance(info, type):
        return []
    return [row for row in _rows(info, {}) if row]


def rows_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV; columns in the order of their first use."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _rows(node: Any, context: Row) -> Iterator[Row]:
    if isinstance(node, Waterfall):
        yield from ({**context, **_numbers(item)} for item in node.items)
        return
    if isinstance(node, BarsInfo):
        for one in node.series:
            for group, value in zip(node.groups, one.values, strict=True):
                yield {"label": one.label, "group": group, **_named("value", value)}
        return
    values = {one.name: getattr(node, one.name) for one in fields(node)}
    own = {**context, **_scalars(values)}
    nested = {
        name: value for name, value in values.items() if _is_nested(value) and name != "names"
    }
    if not nested:
        yield own
    for name, value in nested.items():
        where = {**own, "part": name} if len(nested) > 1 else own
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from _item_rows(item, {**where, "name": str(key)})
            continue
        items = [value] if is_dataclass(value) else list(value)
        for index, item in enumerate(items):
            yield from _item_rows(item, where if is_dataclass(item) else {**where, "index": index})


def _item_rows(item: Any, context: Row) -> Iterator[Row]:
    if isinstance(item, tuple) and len(item) == 2:
        first, second = item
        yield {**context, "x": first, **_named("y", second)}
    elif is_dataclass(item) and not isinstance(item, Ranged):
        yield from _rows(item, context)
    elif isinstance(item, list | tuple):
        for index, each in enumerate(item):
            yield {**context, "index": index, **_named("value", each)}
    else:
        yield {**context, **_named("value", item)}


def _numbers(item: Any) -> Row:
    return _scalars({one.name: getattr(item, one.name) for one in fields(item)})


def _scalars(values: Mapping[str, Any]) -> Row:
    found: Row = {}
    for name, value in values.items():
        if name not in _LEFT_OUT and not _is_nested(value) and value is not None:
            found |= _named(name, value)
    return found


def _named(name: str, value: Any) -> Row:
    if isinstance(value, Ranged):
        return {name: value.value, "low": value.low, "high": value.high}
    is_known = value is not None and not isinstance(value, int | float)
    return {name: str(value) if is_known else value}


def _is_nested(value: Any) -> bool:
    if isinstance(value, Ranged | str):
        return False
    return is_dataclass(value) or isinstance(value, list | tuple | Mapping)
