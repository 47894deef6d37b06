"""Operations to plain JSON fields and back, with the field named when one is wrong."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from paceline.errors import InputError
from paceline.naming import look_up, unknown_name
from paceline.workload.ops.base import OPS, Op


def fields_of(op: Op) -> dict[str, Any]:
    """Every field of an operation, tuples as lists."""
    values = ((f.name, getattr(op, f.name)) for f in _fields(type(op)))
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values}


def op_from_fields(kind: str, values: Mapping[str, Any]) -> Op:
    """The operation of a kind, its fields checked for name and type."""
    cls = look_up("operation", kind, OPS, f"one of {', '.join(sorted(OPS))}")
    hints = _hints(cls)
    for name in values:
        if name not in hints:
            raise unknown_name(f"field of '{kind}'", name, hints, f"fields: {', '.join(hints)}")
    missing = [
        f.name for f in _fields(cls) if f.default is dataclasses.MISSING and f.name not in values
    ]
    if missing:
        raise InputError(f"'{kind}' lacks {', '.join(missing)}", f"fields: {', '.join(hints)}")
    return cls(
        **{name: _converted(kind, name, value, hints[name]) for name, value in values.items()}
    )


def _converted(kind: str, name: str, value: Any, wanted: Any) -> Any:
    if get_origin(wanted) is tuple:
        item = get_args(wanted)[0]
        if isinstance(value, list | tuple):
            return tuple(_converted(kind, name, v, item) for v in value)
    elif wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif type(value) is wanted:
        return value
    expected = "a list" if get_origin(wanted) is tuple else wanted.__name__
    raise InputError(f"'{name}' of '{kind}' must be {expected}, not {value!r}")


@cache
def _fields(cls: type[Op]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]  # every registered Op is one


@cache
def _hints(cls: type[Op]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in _fields(cls)}
