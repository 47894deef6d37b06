"""Whether a JSON value is what it should be, built of small checks; and JSON that is bounded.

Files come from other programs, other versions and damaged disks: what is read is checked once,
where it comes in, so that nothing behind it has to ask.
"""

import json
import math
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]

LARGEST_COUNT = 2**63
"""Whole numbers stay below it: databases, arrays and floating point hold them."""


def parsed_json(text: str | bytes) -> Any:
    """The value of a JSON text; `ValueError` for all that is wrong with it, depth included."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_number(value: Any) -> bool:
    """A finite number, no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < LARGEST_COUNT


def is_amount(value: Any) -> bool:
    """A finite number that is not negative: seconds, bytes."""
    return is_number(value) and value >= 0


def is_count(value: Any) -> bool:
    """A whole number that is not negative."""
    return isinstance(value, int) and is_amount(value)


def is_text(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    """An object of any fields."""
    return isinstance(value, dict)


def is_loss(value: Any) -> bool:
    """A number, also one that training which diverged comes to."""
    return isinstance(value, float) or is_number(value)


def optional(check: Check) -> Check:
    """Null, or what passes."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """A list of what passes."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def row_of(*checks: Check) -> Check:
    """A list with one value for each check."""
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def object_of(check: Check) -> Check:
    """An object of any names whose values pass."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def with_fields(required: dict[str, Check], others: dict[str, Check] | None = None) -> Check:
    """An object that has the required fields; others are checked where they are."""
    return lambda value: (
        isinstance(value, dict)
        and all(name in value and check(value[name]) for name, check in required.items())
        and all(check(value[name]) for name, check in (others or {}).items() if name in value)
    )
