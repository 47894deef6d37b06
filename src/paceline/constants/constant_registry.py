"""Registry of constants, and overrides for the current thread."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, lru_cache, wraps
from types import MappingProxyType
from typing import Any, TypeVar

from paceline.constants.reader import HEADINGS, read_constants
from paceline.constants.value import Constant
from paceline.located_toml import TomlTable, shipped_toml
from paceline.naming import look_up

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
    Values with a unit in their text need the whole reader.
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
