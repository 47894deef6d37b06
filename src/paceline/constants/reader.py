"""Reader of constant files: tables of numbers, with units and origins assigned by name patterns.

``[unit]`` lists the numbers of each unit, ``[origin.NAME]`` the source of the numbers it lists
(docs/explanation/constants.md). If several patterns match a number, the last one applies::

    [unit]
    fraction = ["memory.*"]

    [origin.operators]
    status = "fitted"
    source = "by hand on the times of single operators"
    fitted_on = "ResNet-50 on H100"
    numbers = ["memory.*"]

    [memory]
    add = 0.92

Strings with a unit (``"10us"``) are numbers; other strings, flags and lists are ignored.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

from paceline import units
from paceline.constants.value import Constant, ConstantStatus
from paceline.errors import InputError
from paceline.file_errors import Problems
from paceline.located_toml import TomlTable
from paceline.naming import nearest
from paceline.typed_toml import read_table, split_table

HEADINGS = ("unit", "origin")
_PARSERS: Mapping[str, Callable[[str | float], float]] = {
    "s": units.parse_seconds,
    "B": units.parse_bytes,
    "B/s": units.parse_bandwidth,
}
Leaf = tuple[str, ...]


@dataclass(frozen=True)
class _Origin:
    """Source of the numbers that match one of the patterns ``numbers``."""

    status: ConstantStatus
    source: str
    numbers: tuple[str, ...]
    fitted_on: str = ""


@dataclass(frozen=True)
class _Headings:
    """Units and origins of a file; units list patterns of names."""

    unit: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: Mapping[str, _Origin] = field(default_factory=dict)


def read_constants(root: TomlTable, file: str) -> dict[str, Constant]:
    """Every number of a file by name (``file.table.key``), with unit and origin."""
    problems = Problems(root)
    headings, tables = split_table(root, _Headings)
    read = read_table(headings, _Headings, problems)
    problems.check()
    assert read is not None
    leaves = {".".join(path): (path, value) for path, value in _leaves(tables.values, ())}
    unit_of: dict[str, str] = {}
    origin_of: dict[str, _Origin] = {}
    for unit, patterns in read.unit.items():
        found = _matching(patterns, leaves, ("unit", unit), problems)
        unit_of |= dict.fromkeys(found, unit)
    for name, origin in read.origin.items():
        _check_status(name, origin, problems)
        found = _matching(origin.numbers, leaves, ("origin", name, "numbers"), problems)
        origin_of |= dict.fromkeys(found, origin)
    constants = {}
    for name, (path, value) in leaves.items():
        if name not in unit_of:
            if not isinstance(value, str):
                problems.add(path, f"'{name}' has no unit", "list it under [unit]")
            continue
        if name not in origin_of:
            hint = "list it in numbers of an [origin.NAME]"
            problems.add(path, f"'{name}' has no origin", hint)
            continue
        origin, own = origin_of[name], f"{file}.{name}"
        with problems.at(*path):
            constants[own] = Constant(
                own,
                _value(path[-1], value, unit_of[name]),
                unit_of[name],
                origin.source,
                origin.status,
                origin.fitted_on,
            )
    problems.check()
    return constants


def _leaves(table: Mapping[str, Any], path: Leaf) -> Iterator[tuple[Leaf, str | float]]:
    """Every string and number below a table."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield (*path, key), value


def _matching(
    patterns: tuple[str, ...], leaves: Mapping[str, object], where: Leaf, problems: Problems
) -> list[str]:
    """The numbers that match a pattern; a pattern without a match is an error."""
    found: list[str] = []
    for pattern in patterns:
        fitting = list(filter(re.compile(translate(pattern)).match, leaves))
        if not fitting:
            near = nearest(pattern, leaves, 1)
            hint = f"did you mean '{near[0]}'?" if near else "remove it"
            problems.add(where, f"pattern '{pattern}' matches no number in this file", hint)
        found += fitting
    return found


def _check_status(name: str, origin: _Origin, problems: Problems) -> None:
    if (origin.status is ConstantStatus.FITTED) != bool(origin.fitted_on):
        has = "with" if origin.fitted_on else "without"
        problems.add(
            ("origin", name, "status"),
            f"[origin.{name}] has status {origin.status} {has} fitted_on",
            'give fitted_on for status = "fitted", and only there',
        )


def _value(key: str, written: str | float, unit: str) -> float:
    """The number in SI units."""
    try:
        value = _PARSERS.get(unit, float)(written)
    except ValueError:
        raise InputError(f"{key} is {written!r}, not a number", f"write it in {unit}") from None
    if not math.isfinite(value):
        raise InputError(f"{key} must be finite (got {written!r})", "give a finite number")
    return value
