"""Knobs: options declared once, as annotated fields of a TypedDict or a dataclass.

``tp: Annotated[int, Knob("Tensor-parallel degree.", low=1)]`` is the Python keyword ``tp``, the
option ``--tp`` (`paceline.cli.knob_options`), the row of the reference page and the field of the
explorer's form. Types are `int`, `float`, `bool` or text; None always means "not given".
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

from paceline.errors import InputError
from paceline.naming import did_you_mean
from paceline.topology import parse_counts
from paceline.units import integer_hint, read_integer, read_number


@dataclass(frozen=True)
class Knob:
    """Metadata of one option.

    ``option`` is its spelling on the command line [``--name-with-dashes``], ``metavar`` the
    notation of its value. ``parse`` converts text with a unit and rejects other text. ``default``
    describes a default that is computed; ``negative`` marks a flag that is usually on, so that
    help lists ``--no-name``. ``several`` allows lists: comma-separated text or a sequence;
    ``repeated`` is an option that is given once per value. ``key`` is its key in files [the name];
    a dotted key is in a table. ``formerly`` is the keyword of version 0.1, ``also`` a second
    spelling on the command line.
    """

    help: str
    group: str = ""
    option: str = ""
    metavar: str = ""
    low: float | None = None
    high: float | None = None
    choices: Iterable[str] = ()
    parse: Callable[[Any], Any] | None = None
    default: str = ""
    negative: bool = False
    several: bool = False
    repeated: bool = False
    key: str = ""
    formerly: str = ""
    also: str = ""

    @property
    def text(self) -> str:
        """Help with the default."""
        stem = self.help.rstrip(".")
        return f"{stem} [default: {self.default}]." if self.default else f"{stem}."


@dataclass(frozen=True)
class KnobField:
    """A knob with its name, the types that it accepts and the default of a dataclass field."""

    name: str
    knob: Knob
    types: tuple[Any, ...]
    default: Any = field(default=None, compare=False)

    @property
    def kind(self) -> type:
        """`bool`, `int`, `float` or `str` (text, names, quantities with units)."""
        if self.knob.parse is None and str not in self.types:
            for kind in (bool, int, float):
                if kind in self.types:
                    return kind
        return str

    @property
    def option(self) -> str:
        """The spelling on the command line."""
        return self.knob.option or f"--{self.name.replace('_', '-')}"

    @property
    def has_negation(self) -> bool:
        """Whether a flag has a ``--no-`` spelling: its default is on, or computed."""
        return self.kind is bool and (self.knob.negative or bool(self.knob.default))

    @property
    def negation(self) -> str:
        """The spelling that turns a flag off."""
        return f"--no-{self.option.removeprefix('--')}"

    def check(self, value: Any, label: str = "") -> Any:
        """The value in SI units, or an error about ``label`` [the name]."""
        label = label or self.name
        if value is None:
            return None
        if (self.knob.several or self.knob.repeated) and _is_list(value):
            if not value:
                raise InputError(f"{label} is an empty list", "give at least one value")
            return [self.check(one, label) for one in value]
        if self.knob.parse is not None and (
            isinstance(value, str | int | float) or _is_list(value)
        ):
            return self._parsed(self.knob.parse, value, label)
        checks = {bool: self._boolean, int: self._integer, float: self._number, str: self._text}
        return checks[self.kind](value, label)

    def read(self, text: str, label: str = "") -> Any:
        """The value of an argument; text with units is checked and stays text."""
        label = label or self.option
        if self.knob.several and "," in text and self.kind is not int:
            return [self.read(part.strip(), label) for part in text.split(",")]
        if self.kind is int:
            if self.knob.several and ("," in text or ".." in text):
                return self._integers(text, label)
            return self.check(_integer_of(text, label, self._range("an integer")), label)
        if self.kind is float:
            try:
                return self.check(read_number(text), label)
            except ValueError:
                raise self._error(self._range("a number"), text, label) from None
        checked = self.check(text, label)
        return checked if self.knob.parse is None else text

    def _integers(self, text: str, label: str) -> list[int]:
        """The integers of ``1,4..8``."""
        found: list[int] = []
        for part in text.split(","):
            if ".." in part:
                found += parse_counts(part, self.name, label)
            else:
                found.append(_integer_of(part, label, self._range("an integer")))
        return [self._integer(one, label) for one in dict.fromkeys(found)]

    def write(self, value: Any) -> list[str]:
        """The value as arguments of a command: the inverse of `read`."""
        if value is None:
            return []
        if isinstance(value, bool):
            off = [self.negation] if self.has_negation else []
            return [self.option] if value else off
        if self.knob.repeated:
            return [part for one in value for part in (self.option, str(one))]
        if isinstance(value, Mapping):
            value = [f"{key}={factor:g}" for key, factor in value.items()]
        return [self.option, ",".join(map(str, value)) if _is_list(value) else str(value)]

    def _parsed(self, parse: Callable[[Any], Any], value: Any, label: str) -> Any:
        try:
            number = parse(value)
        except InputError as error:
            raise InputError(f"{label}: {error.message}", error.hint) from None
        except TypeError:
            raise self._error("a number or text with a unit", value, label) from None
        is_number = isinstance(number, int | float)
        return self._bounded(number, "a value", value, label) if is_number else number

    def _boolean(self, value: Any, label: str) -> bool:
        if not isinstance(value, bool):
            raise self._error("true or false", value, label)
        return value

    def _integer(self, value: Any, label: str) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise self._error(self._range("an integer"), value, label) from None
        if isinstance(value, bool):
            raise self._error(self._range("an integer"), value, label)
        return int(self._bounded(number, "an integer", value, label))

    def _number(self, value: Any, label: str) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise self._error(self._range("a number"), value, label)
        return float(self._bounded(float(value), "a number", value, label))

    def _bounded(self, number: Any, noun: str, value: Any, label: str) -> Any:
        low, high = self.knob.low, self.knob.high
        if (low is not None and number < low) or (high is not None and number > high):
            raise self._error(self._range(noun), value, label)
        return number

    def _text(self, value: Any, label: str) -> Any:
        """Names and files; objects of other accepted types are checked where they are used."""
        if not isinstance(value, str):
            if isinstance(value, Path) or self._accepts(value):
                return value
            raise self._error("text", value, label)
        known = [str(choice) for choice in self.knob.choices]
        if known and value not in known:
            hint = did_you_mean(value, known).strip() or f"use one of {', '.join(known)}"
            raise InputError(f"{label} must be one of {', '.join(known)} (got '{value}')", hint)
        return value

    def _accepts(self, value: Any) -> bool:
        """Whether the annotation names a type of ``value``; a quoted annotation accepts objects."""
        known = tuple(get_origin(one) or one for one in self.types)
        objects = any(isinstance(one, ForwardRef) for one in known)
        plain = (bool, int, float, bytes, NoneType)
        return isinstance(value, tuple(one for one in known if isinstance(one, type))) or (
            objects and not isinstance(value, plain)
        )

    def _range(self, noun: str) -> str:
        low, high = self.knob.low, self.knob.high
        if low is not None and high is not None:
            return f"{noun} from {_digits(low)} to {_digits(high)}"
        return noun if low is None else f"{noun} of at least {_digits(low)}"

    def _error(self, wanted: str, value: Any, label: str) -> InputError:
        return InputError(f"{label} must be {wanted} (got {value!r:.60})", f"give {wanted}")


@cache
def knobs_of(spec: type) -> Mapping[str, KnobField]:
    """The knobs of a TypedDict or a dataclass by name; fields without a `Knob` are left out."""
    defaults: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    if is_dataclass(spec):
        for one in fields(spec):
            annotations[one.name] = one.type
            defaults[one.name] = None if one.default is MISSING else one.default
    else:
        annotations = spec.__annotations__
    return {
        name: KnobField(name, knob, _members(get_args(annotation)[0]), defaults.get(name))
        for name, annotation in annotations.items()
        if get_origin(annotation) is Annotated
        for knob in annotation.__metadata__
        if isinstance(knob, Knob)
    }


def check_options(spec: type, options: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Checked values of the given ``options`` in SI units; None is left out.

    Raises for an option that ``spec`` does not declare; ``function`` names the caller.
    """
    known = knobs_of(spec)
    for name in options:
        if name not in known:
            renamed = [knob.name for knob in known.values() if knob.knob.formerly == name]
            raise InputError(
                f"{function} has no option '{name}'.{did_you_mean(name, known)}",
                f"use {renamed[0]}" if renamed else f"use one of {', '.join(known)}",
            )
    return {name: known[name].check(value) for name, value in options.items() if value is not None}


def arguments_of(spec: type, options: Mapping[str, Any]) -> list[str]:
    """Options as arguments of a command."""
    known = knobs_of(spec)
    return [part for name, value in options.items() for part in known[name].write(value)]


def _members(annotation: Any) -> tuple[Any, ...]:
    """Types of a union without None; a quoted annotation is one unknown type."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(one for one in get_args(annotation) if one is not NoneType)
    return (annotation,)


def _digits(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _integer_of(text: str, label: str, wanted: str) -> int:
    try:
        return read_integer(text)
    except ValueError:
        raise InputError(f"{label} must be {wanted} (got '{text}')", integer_hint(text)) from None
