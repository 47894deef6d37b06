"""Declarations of files: a table is a frozen dataclass, `Key` states what a type cannot.

@dataclass(frozen=True)
class Disk:
    size_bytes: Annotated[float, quantity(parse_bytes, key="size")]
    kind: Annotated[str, Key(choices=("hdd", "ssd"))] = "ssd"
"""

import dataclasses
import math
import reprlib
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from paceline.errors import InputError

MOST = 10**9
"""Largest valid count, such as nodes or devices."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Key:
    """Metadata of a field of a file.

    ``key`` is its key [the name of the field]: dotted if it is in a sub-table, None if files do not
    contain the field. ``parse`` converts the value of the file. ``low`` and ``high`` are inclusive
    bounds.
    """

    key: str | None = ""
    parse: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


COUNT = Key(low=1, high=MOST)
NOT_IN_FILE = Key(key=None)


def quantity(parse: Callable[[Any], float], key: str = "", may_be_zero: bool = False) -> Key:
    """A finite, positive quantity: a number in SI units or a string with a unit."""
    return Key(key=key, parse=_Quantity(parse, may_be_zero))


@dataclasses.dataclass(frozen=True)
class _Quantity:
    parse: Callable[[Any], float]
    may_be_zero: bool

    def __call__(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(
                f"expected a number or a string, not {shortened(value)}",
                "write a number, or a string with a unit",
            )
        try:
            found = self.parse(value)
        except OverflowError:
            found = math.inf
        except ValueError:
            raise InputError(
                f"expected a number, not {shortened(value)}", "write a number without a unit"
            ) from None
        if not math.isfinite(found) or found < 0 or (found == 0 and not self.may_be_zero):
            least = "of at least 0" if self.may_be_zero else "greater than 0"
            raise InputError(f"out of range: {shortened(value)}", f"give a finite number {least}")
        return found


def shortened(value: Any) -> str:
    """``repr`` of a value, limited in length and depth."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    return short.repr(value)


@cache
def keys_of(kind: type) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for name, hint in hints_of(kind).items():
        key = mark_of(hint).key
        if key is not None:
            found[tuple((key or name).split("."))] = name
    return found


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotation of each field of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


def mark_of(hint: Any) -> Key:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((one for one in marks if isinstance(one, Key)), Key())


def bare(hint: Any) -> Any:
    """A type without metadata and None."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        others = [one for one in get_args(hint) if one is not NoneType]
        return bare(others[0]) if len(others) == 1 else hint
    return hint


def is_mapping(kind: Any) -> bool:
    """Whether a type is a mapping, such as ``Mapping[str, float]``."""
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)
