"""Registry of constants, and overrides for the current thread."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import translate
from functools import cache, lru_cache, wraps
from types import MappingProxyType
from typing import Any, TypeVar

from paceline import units
from paceline.errors import InputError
from paceline.file_errors import Problems
from paceline.located_toml import TomlTable, shipped_toml
from paceline.naming import look_up, nearest
from paceline.typed_toml import read_table, split_table


class ConstantStatus(StrEnum):
    """How the value of a constant was obtained."""

    FACT = "fact"
    """Stated by the source, e.g. the code of a library."""
    PRIOR = "prior"
    """An expert judgement, to be fitted or calibrated."""
    FITTED = "fitted"
    """Chosen so that predictions agree with the measurements in ``fitted_on``."""


@dataclass(frozen=True)
class Constant:
    """A number that predictions depend on, in SI units.

    ``name`` is file, table and key (``kernels.matrix.ceiling``). ``fitted_on``
    names the measurements of a fitted constant; otherwise it is empty.
    """

    name: str
    value: float
    unit: str
    source: str
    status: ConstantStatus
    fitted_on: str = ""


FILES = (
    *("kernels", "overheads", "libraries", "parallelism", "spread", "corrections", "explain"),
    "operation",
)
"""Files of ``data/constants``; the name of a constant begins with that of its file."""

T = TypeVar("T")
_HINT = "'paceline catalog constants' lists all"
_NONE: Mapping[str, float] = MappingProxyType({})
_overrides: ContextVar[Mapping[str, float]] = ContextVar("overrides", default=_NONE)


@cache
def shipped_constants() -> dict[str, Constant]:
    """Every constant that comes with the package, by name."""
    return {name: constant for file in FILES for name, constant in _constants_of(file).items()}


def constant(name: str) -> Constant:
    """The constant called ``name``, with overrides applied."""
    file = name.partition(".")[0]
    found = _constants_of(file).get(name) if file in FILES else None
    if found is None:
        found = look_up("constant", name, shipped_constants(), _HINT)
    return replace(found, value=_overrides.get().get(name, found.value))


def number(name: str) -> float:
    """The value of a constant, in SI units.

    Reads only the file of the constant, without units and sources, because commands start faster.
    Values with a unit in their text need `read_constants`.
    """
    changed = _overrides.get().get(name)
    if changed is not None:
        return changed
    file, *path = name.split(".")
    found: Any = _file(file).values if file in FILES else None
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    is_plain = is_number and path[0] not in HEADINGS
    return float(found) if is_plain else constant(name).value


def numbers_of(file: str) -> TomlTable:
    """The tables of numbers of one of `FILES`, with overrides applied."""
    root = _file(file)
    values = {key: value for key, value in root.values.items() if key not in HEADINGS}
    return replace(root, values=_changed(values, file, _overrides.get()))


@contextmanager
def overridden(changes: Mapping[str, float]) -> Iterator[None]:
    """Override constants inside the context, for this thread and all functions that it calls.

    ``with overridden({"kernels.matrix.ceiling": 0.8}): predict(...)``
    """
    for name in changes:
        look_up("constant", name, shipped_constants(), _HINT)
    token = _overrides.set({**_overrides.get(), **changes})
    try:
        yield
    finally:
        _overrides.reset(token)


def built_from_constants(build: Callable[[], T]) -> Callable[[], T]:
    """Decorator: cache the result of ``build`` until a constant is overridden."""

    @lru_cache(maxsize=2)
    def kept(changes: frozenset[tuple[str, float]]) -> T:
        return build()

    @wraps(build)
    def current() -> T:
        return kept(frozenset(_overrides.get().items()))

    return current


@cache
def _constants_of(file: str) -> dict[str, Constant]:
    return read_constants(_file(file), file)


@cache
def _file(file: str) -> TomlTable:
    return shipped_toml("data", "constants", f"{file}.toml")


def _changed(values: Mapping[str, Any], name: str, changes: Mapping[str, float]) -> dict[str, Any]:
    """A copy of a table with the named numbers replaced."""
    return {
        key: _changed(value, f"{name}.{key}", changes)
        if isinstance(value, dict)
        else changes.get(f"{name}.{key}", value)
        for key, value in values.items()
    }


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
    try:
        value = _PARSERS.get(unit, float)(written)
    except ValueError:
        raise InputError(f"{key} is {written!r}, not a number", f"write it in {unit}") from None
    if not math.isfinite(value):
        raise InputError(f"{key} must be finite (got {written!r})", "give a finite number")
    return value
