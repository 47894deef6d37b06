"""Shapes of a model's inputs as text: ``32x3x224x224``, ``tokens=8x1024:int64``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.errors import InputError
from paceline.naming import look_up

_TYPES = {
    "float": "float32",
    "float32": "float32",
    "float64": "float64",
    "double": "float64",
    "float16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int64",
    "int64": "int64",
    "long": "int64",
    "int32": "int32",
    "bool": "bool",
}
_PATTERN = re.compile(r"^(?:(?P<name>[A-Za-z_][\w.]*)=)?(?P<shape>[^:]+?)(?::(?P<type>\w+))?$")
_EXAMPLE = "write it as 32x3x224x224, 8x1024:int64 or tokens=8x1024:int64"


@dataclass(frozen=True, slots=True)
class InputShape:
    """Shape of one input with the batch first, its type, and its name if given."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str | None = None


def parse_input(text: str) -> InputShape:
    """Parse ``[name=]AxBxC[:type]``; the default type is float32."""
    match = _PATTERN.match(text.strip())
    if match is None:
        raise InputError(f"invalid input shape '{text}'", _EXAMPLE)
    try:
        shape = tuple(int(size) for size in match["shape"].lower().replace("×", "x").split("x"))
    except ValueError:
        raise InputError(f"invalid input shape '{text}'", _EXAMPLE) from None
    if min(shape) < 1:
        raise InputError(f"'{text}' has a dimension below 1", _EXAMPLE)
    known = f"one of {', '.join(sorted(set(_TYPES.values())))}"
    dtype = look_up("input type", (match["type"] or "float").lower(), _TYPES, known)
    return InputShape(shape, dtype, match["name"])


def parse_inputs(inputs: Iterable[str | Sequence[int]]) -> list[InputShape]:
    """Parse inputs given as text or as shapes; named ones come last, as in a call."""
    parsed = [
        parse_input(given) if isinstance(given, str) else InputShape(tuple(given))
        for given in inputs
    ]
    if any(named.name and not plain.name for named, plain in pairwise(parsed)):
        raise InputError("an input without a name follows a named input", "put named inputs last")
    return parsed
