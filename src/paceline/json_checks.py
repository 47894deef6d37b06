"""Checks of JSON values, composed of small predicates.

Files come from other programs, other versions and damaged disks: they are checked once, when
read, so that later code can rely on their types.
"""

import json
import math
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]

LARGEST_COUNT = 2**63
"""Integers stay below it, so that SQLite and arrays can store them."""


def parsed_json(text: str | bytes) -> Any:
    """The value of a JSON text; raises `ValueError`, also for too deep nesting."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_number(value: Any) -> bool:
    """A finite number, not a boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < LARGEST_COUNT


def is_amount(value: Any) -> bool:
    """A finite, non-negative number, such as seconds or bytes."""
    return is_number(value) and value >= 0


def is_count(value: Any) -> bool:
    """A non-negative integer."""
    return isinstance(value, int) and is_amount(value)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_loss(value: Any) -> bool:
    """A number, including NaN and infinity of training that diverged."""
    return isinstance(value, float) or is_number(value)


def optional(check: Check) -> Check:
    """Null or a value that passes ``check``."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def row_of(*checks: Check) -> Check:
    """A list with one value for each check."""
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def object_of(check: Check) -> Check:
    """An object whose values all pass ``check``."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def with_fields(required: dict[str, Check], others: dict[str, Check] | None = None) -> Check:
    """An object with the ``required`` fields; ``others`` are checked if present."""
    return lambda value: (
        isinstance(value, dict)
        and all(name in value and check(value[name]) for name, check in required.items())
        and all(check(value[name]) for name, check in (others or {}).items() if name in value)
    )
