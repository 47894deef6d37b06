"""Convert operations to JSON fields and back; errors name the field."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from paceline.errors import InputError
from paceline.naming import look_up, unknown_name
from paceline.workload import ops
from paceline.workload.cost import Number
from paceline.workload.ops.base import Op


def fields_of(op: Op) -> dict[str, Any]:
    """Fields of an operation as plain data: tuples as lists, nested values as mappings."""
    return {f.name: _plain(getattr(op, f.name)) for f in _fields(type(op))}


def op_from_fields(kind: str, values: Mapping[str, Any]) -> Op:
    """Create an operation from fields, checking their names and types."""
    cls = look_up("operation", kind, ops.OPS, f"one of {', '.join(sorted(ops.OPS))}")
    hints = _hints(cls)
    for name in values:
        if name not in hints:
            raise unknown_name(f"field of '{kind}'", name, hints, f"fields: {', '.join(hints)}")
    missing = [
        f.name for f in _fields(cls) if f.default is dataclasses.MISSING and f.name not in values
    ]
    if missing:
        raise InputError(
            f"missing fields of '{kind}': {', '.join(missing)}", f"fields: {', '.join(hints)}"
        )
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
    elif dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
        return _nested(kind, name, value, wanted)
    elif _is_of(value, wanted):
        return value
    expected = "a list" if get_origin(wanted) is tuple else getattr(wanted, "__name__", wanted)
    raise InputError(f"'{name}' of '{kind}' must be {expected} (got {value!r})")


def _is_of(value: Any, wanted: Any) -> bool:
    if get_origin(wanted) is Literal:
        return value in get_args(wanted)
    return type(value) in (int, float) if wanted == Number else type(value) is wanted


def _nested(kind: str, name: str, value: Mapping[str, Any], wanted: Any) -> Any:
    hints = _hints(wanted)
    for key in value:
        if key not in hints:
            raise InputError(f"'{name}' of '{kind}' has no '{key}'", f"fields: {', '.join(hints)}")
    fields = {key: _converted(kind, f"{name}.{key}", v, hints[key]) for key, v in value.items()}
    try:
        return wanted(**fields)
    except TypeError as error:
        raise InputError(f"'{name}' of '{kind}' is incomplete: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


@cache
def _fields(cls: type[Op]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]  # every registered Op is one


@cache
def _hints(cls: type[Op]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in _fields(cls)}
