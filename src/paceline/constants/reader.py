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
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from paceline import units
from paceline.constants.value import Constant, ConstantStatus
from paceline.located_toml import TomlTable
from paceline.naming import nearest

HEADINGS = ("unit", "origin")
_KEYS = ("status", "source", "fitted_on", "numbers")
_PARSERS: Mapping[str, Callable[[str | float], float]] = {
    "s": units.parse_seconds,
    "B": units.parse_bytes,
    "B/s": units.parse_bandwidth,
}


def read_constants(root: TomlTable, file: str) -> dict[str, Constant]:
    """Every number of a file by name (``file.table.key``), with unit and origin."""
    leaves = {leaf_name(table, key): (table, key) for table, key in _leaves(root)}
    unit_of = _by_number(root.table("unit"), root.table("unit").values, leaves)
    origins = root.table("origin").tables()
    for origin in origins.values():
        _check_origin(origin)
    origin_of: dict[str, str] = {}
    for name, origin in origins.items():
        origin_of |= dict.fromkeys(_by_number(origin, ("numbers",), leaves), name)
    found = {}
    for name, (table, key) in leaves.items():
        if name not in unit_of:
            if not isinstance(table.values[key], str):
                table.fail(key, f"'{name}' has no unit", "list it under [unit]")
            continue
        if name not in origin_of:
            table.fail(key, f"'{name}' has no origin", "list it in numbers of an [origin.NAME]")
        origin = origins[origin_of[name]]
        found[f"{file}.{name}"] = Constant(
            f"{file}.{name}",
            _value(table, key, unit_of[name]),
            unit_of[name],
            origin.text_of("source"),
            ConstantStatus(origin.text_of("status")),
            origin.text_of("fitted_on"),
        )
    return found


def leaf_name(table: TomlTable, key: str) -> str:
    """The name of a number within its file."""
    return ".".join([*map(str, table.path), key])


def _leaves(table: TomlTable) -> Iterator[tuple[TomlTable, str]]:
    """Every string and number below a table, without `HEADINGS`."""
    for key, value in table.values.items():
        if isinstance(value, dict) and not (key in HEADINGS and not table.path):
            yield from _leaves(table.table(key))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield table, key


def _by_number(
    table: TomlTable, keys: Mapping[str, object] | tuple[str, ...], leaves: Mapping[str, object]
) -> dict[str, str]:
    """For each number, the last of ``keys`` with a matching pattern."""
    found: dict[str, str] = {}
    for key in keys:
        for pattern in table.names(key):
            fitting = [name for name in leaves if fnmatchcase(name, pattern)]
            if not fitting:
                near = nearest(pattern, leaves, 1)
                hint = f"did you mean '{near[0]}'?" if near else "remove it"
                table.fail(key, f"pattern '{pattern}' matches no number in this file", hint)
            found |= dict.fromkeys(fitting, key)
    return found


def _check_origin(origin: TomlTable) -> None:
    origin.check_keys(_KEYS, needed=("status", "source", "numbers"))
    status = origin.text_of("status", allowed=tuple(ConstantStatus))
    if (status == ConstantStatus.FITTED) != ("fitted_on" in origin.values):
        has = "without" if status == ConstantStatus.FITTED else "with"
        origin.fail(
            "status",
            f"{origin.title} has status {status} {has} fitted_on",
            'give fitted_on for status = "fitted", and only there',
        )


def _value(table: TomlTable, key: str, unit: str) -> float:
    """The number in SI units."""
    written = table.values[key]
    with table.locating(key):
        try:
            value = _PARSERS.get(unit, float)(written)
        except ValueError:
            table.fail(key, f"{key} is {written!r}, not a number", f"write it in {unit}")
    if not math.isfinite(value):
        table.fail(key, f"{key} must be finite (got {written!r})", "give a finite number")
    return value
