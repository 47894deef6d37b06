"""One table of a TOML file: its values checked, and each mistake located by file and line."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from paceline.errors import InputError, PacelineError
from paceline.hardware.toml_lines import line_of
from paceline.naming import nearest


@dataclass(frozen=True)
class Table:
    """One ``[kind.name]`` table with what is needed to point at a mistake in it."""

    file: str
    text: str
    path: tuple[str, ...]
    values: Mapping[str, Any]

    def fail(self, key: str | None, message: str, hint: str) -> NoReturn:
        """Raise an error that names the file and the line of ``key``."""
        line = line_of(self.text, self.path, key)
        where = f"{self.file}, line {line}" if line else self.file
        raise InputError(f"{where}: {message}", hint)

    def locate(self, error: InputError, key: str | None) -> NoReturn:
        """Raise ``error`` with its place in the file, unless it has one already."""
        if error.message.startswith(f"{self.file}"):
            raise error
        self.fail(key, error.message, error.hint)

    def check_keys(self, known: Sequence[str]) -> None:
        """Refuse a key that is not in ``known``, naming the nearest."""
        for key in self.values:
            if key not in known:
                near = nearest(key, known, 1)
                self.fail(
                    key,
                    f"unknown key '{key}' in [{'.'.join(self.path)}]",
                    f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}",
                )

    def parsed(
        self, key: str, parse: Callable[[Any], float], may_be_zero: bool = False
    ) -> float | None:
        """A quantity in SI units, None where the key is absent."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(key, f"{key} is {value!r}, not a quantity", "write a number or a text")
        try:
            quantity = parse(value)
        except PacelineError as error:
            self.fail(key, f"{key}: {error.message}", error.hint)
        except ValueError:
            self.fail(key, f"{key} is {value!r}, not a number", "write a number without a unit")
        if not math.isfinite(quantity) or quantity < 0 or (quantity == 0 and not may_be_zero):
            self.fail(key, f"{key} of {value!r} is impossible", "give a number above zero")
        return quantity

    def text_of(self, key: str, default: str = "", allowed: Sequence[str] = ()) -> str:
        """A text, one of ``allowed`` where these are given."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            self.fail(key, f"{key} is {value!r}, not a text", 'write it in "quotes"')
        if allowed and value not in allowed:
            self.fail(key, f"{key} is '{value}'", f"one of {', '.join(allowed)}")
        return value

    def count(self, key: str, default: int | None = None) -> int | None:
        """A whole number of at least one."""
        value = self.values.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(key, f"{key} is {value!r}", "give a whole number of at least 1")
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where the key is absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"{key} is {value!r}", "write true or false")
        return value

    def names(self, key: str) -> list[str]:
        """A list of texts."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, f"{key} is {value!r}, not a list of texts", 'write ["one", "two"]')
        return value
