"""Inputs of a user's model as people write them: ``32x3x224x224``, ``tokens=8x1024:int64``."""

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
_EXAMPLE = "write it like 32x3x224x224, 8x1024:int64 or tokens=8x1024:int64"


@dataclass(frozen=True, slots=True)
class InputShape:
    """One input: its shape with the batch first, its type, and its name if it has one."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str | None = None


def parse_input(text: str) -> InputShape:
    """The input that ``[name=]AxBxC[:type]`` describes; the type is float32 unless said."""
    match = _PATTERN.match(text.strip())
    if match is None:
        raise InputError(f"'{text}' is not the shape of an input", _EXAMPLE)
    try:
        shape = tuple(int(size) for size in match["shape"].lower().replace("×", "x").split("x"))
    except ValueError:
        raise InputError(f"'{text}' is not the shape of an input", _EXAMPLE) from None
    if min(shape) < 1:
        raise InputError(f"'{text}' has a dimension below 1", _EXAMPLE)
    known = f"one of {', '.join(sorted(set(_TYPES.values())))}"
    dtype = look_up("type of numbers", (match["type"] or "float").lower(), _TYPES, known)
    return InputShape(shape, dtype, match["name"])


def parse_inputs(inputs: Iterable[str | Sequence[int]]) -> list[InputShape]:
    """Inputs given as text or as plain shapes; those with names come last, as in a call."""
    parsed = [
        parse_input(given) if isinstance(given, str) else InputShape(tuple(given))
        for given in inputs
    ]
    if any(named.name and not plain.name for named, plain in pairwise(parsed)):
        raise InputError("an input without a name follows one with a name", "give names last")
    return parsed
