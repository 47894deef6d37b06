"""Reader of TOML files: values are checked, and errors name the file and line.

`read_toml` (a user's file), `shipped_toml` (a file of the package) and `parse_toml` (a text) return
the root `TomlTable`, which returns its values by type and its inner tables::

    root = read_toml(Path("lab.toml"))
    for name, table in root.table("device").tables().items():
        table.check_keys(("vendor", "memory"), needed=("memory",))
        memory_bytes = table.parsed("memory", units.parse_bytes)
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from paceline.errors import InputError, PacelineError
from paceline.naming import nearest
from paceline.user_files import read_text

LARGEST_BYTES = 4_000_000
LONGEST_LINE = 10_000
MOST = 10**9
"""Largest valid count, such as nodes or devices."""

TablePath = tuple[str | int, ...]
_HEADER = re.compile(r"^\s*(?P<array>\[)?\[\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_HEADER_PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'\s]+))\s*""")
_KEY = r"""(?:^|[\s{{,.])["']?{}["']?\s*="""


@dataclass(frozen=True)
class TomlTable:
    """One table of a TOML file with its location for error messages.

    ``path`` has the keys from the root, with an index after the name of an array of tables. For
    an absent key, methods return the default in their docstring; `check_keys` checks required keys.
    """

    file: str
    text: str
    path: TablePath
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The last key of its path: ``my_gpu`` of ``[device.my_gpu]``."""
        return str(self.path[-1])

    @property
    def title(self) -> str:
        """The header of the table: ``[device.my_gpu]``."""
        return f"[{'.'.join(map(str, self.path))}]" if self.path else self.file

    def fail(self, key: str | None, message: str, hint: str) -> NoReturn:
        """Raise an error that names the file and the line of ``key`` (None: of the table)."""
        line = line_of(self.text, self.path, key)
        where = f"{self.file}, line {line}" if line else self.file
        raise InputError(f"{where}: {message}", hint)

    @contextmanager
    def locating(self, key: str | None) -> Iterator[None]:
        """Add the location of ``key`` to errors raised in the block that have none."""
        try:
            yield
        except PacelineError as error:
            if error.message.startswith(self.file):
                raise
            self.fail(key, error.message, error.hint)

    def check_keys(self, known: Sequence[str], needed: Sequence[str] = ()) -> None:
        """Raise for a key that is not ``known`` and for a missing key of ``needed``."""
        where = f" in {self.title}" if self.path else ""
        for key in self.values:
            if key not in known:
                near = nearest(key, known, 1)
                self.fail(
                    key,
                    f"unknown key '{key}'{where}",
                    f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}",
                )
        for key in needed:
            if key not in self.values:
                self.fail(None, f"missing key '{key}'{where}", f"add {key} = ...")

    def table(self, key: str) -> "TomlTable":
        """The inner table ``key``; empty if the key is absent."""
        return self._inner(key, self.values.get(key, {}), (key,))

    def tables(self) -> dict[str, "TomlTable"]:
        """All entries by name; each must be a table."""
        return {key: self.table(key) for key in self.values}

    def array(self, key: str) -> list["TomlTable"]:
        """The tables of ``[[key]]``; empty if the key is absent."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            self.fail(key, f"{key} must be an array of tables, not {entries!r}", f"write [[{key}]]")
        return [self._inner(key, entry, (key, index)) for index, entry in enumerate(entries)]

    def _inner(self, key: str, values: object, path: TablePath) -> "TomlTable":
        if not isinstance(values, dict):
            header = ".".join([*map(str, self.path), key])
            self.fail(
                key, f"{key} must be a table, not {values!r}", f"write [{header}] above its keys"
            )
        return TomlTable(self.file, self.text, (*self.path, *path), values)

    def parsed(
        self, key: str, parse: Callable[[Any], float], may_be_zero: bool = False
    ) -> float | None:
        """A quantity in SI units; None if the key is absent."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(
                key,
                f"{key} must be a number or a string, not {value!r}",
                "write a number, or a string with a unit",
            )
        try:
            quantity = parse(value)
        except PacelineError as error:
            self.fail(key, f"{key}: {error.message}", error.hint)
        except OverflowError:
            self.fail(key, f"{key} is too large", "give a number below 1e300")
        except ValueError:
            self.fail(
                key, f"{key} must be a number, not {value!r}", "write a number without a unit"
            )
        if not math.isfinite(quantity) or quantity < 0 or (quantity == 0 and not may_be_zero):
            least = "of at least 0" if may_be_zero else "greater than 0"
            self.fail(key, f"{key} is out of range: {value!r}", f"give a finite number {least}")
        return quantity

    def quantities(
        self, parse: Callable[[Any], float], may_be_zero: bool = False
    ) -> dict[str, float]:
        """All values of the table as quantities in SI units."""
        found = {key: self.parsed(key, parse, may_be_zero) for key in self.values}
        return {key: quantity for key, quantity in found.items() if quantity is not None}

    def text_of(self, key: str, default: str = "", allowed: Sequence[str] = ()) -> str:
        """A string; one of ``allowed`` if given."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            self.fail(key, f"{key} must be a string, not {value!r}", 'write it in "quotes"')
        if allowed and value not in allowed:
            self.fail(key, f"invalid {key} '{value}'", f"choose one of {', '.join(allowed)}")
        return value

    def count(self, key: str, default: int | None = None) -> int | None:
        """An integer of at least 1."""
        value = self.values.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
            message = f"{key} must be an integer between 1 and {MOST:,}, not {value!r}"
            self.fail(key, message, f"write {key} = 4")
        return value

    def flag(self, key: str) -> bool:
        """A boolean; false if the key is absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"{key} must be a boolean, not {value!r}", "write true or false")
        return value

    def names(self, key: str) -> list[str]:
        """A list of strings; empty if the key is absent."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(
                key, f"{key} must be a list of strings, not {value!r}", 'write ["one", "two"]'
            )
        return value

    def numbers(self, key: str) -> list[float]:
        """A list of finite numbers; empty if the key is absent."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
            self.fail(key, f"{key} must be a list of numbers", "write [1.0, 2.5]")
        if not all(math.isfinite(_as_float(item)) for item in value):
            self.fail(key, f"{key} contains a number that is not finite", "write [1.0, 2.5]")
        return [float(item) for item in value]


def _as_float(number: float) -> float:
    """The number as a float; infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def parse_toml(text: str, file: str) -> TomlTable:
    """The root table of a text; ``file`` names it in error messages."""
    hint = 'write one KEY = VALUE per line, with strings in "quotes"'
    try:
        return TomlTable(file, text, (), tomllib.loads(text))
    except RecursionError:
        raise InputError(f"{file} is not valid TOML: nested too deeply", hint) from None
    except ValueError as error:
        raise InputError(f"{file} is not valid TOML: {error}", hint) from None


def read_toml(path: Path) -> TomlTable:
    """The root table of a user's file."""
    text = read_text(path, LARGEST_BYTES, "TOML file")
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:  # tomllib takes quadratic time for long dotted keys
            raise InputError(
                f"{path}, line {number}: the line has {len(line):,} characters "
                f"(maximum {LONGEST_LINE:,})",
                "write shorter lines",
            )
    return parse_toml(text, str(path))


def shipped_toml(*parts: str) -> TomlTable:
    """The root table of a packaged file: ``shipped_toml("data", "traces", "x.toml")``."""
    text = resources.files("paceline").joinpath(*parts).read_text(encoding="utf-8")
    return parse_toml(text, parts[-1])


def line_of(text: str, table: Sequence[str | int], key: str | None = None) -> int | None:
    """Line (from 1) of ``key`` in ``[table]``, or of the table's header; None if not found.

    Finds keys written under their table's header, inside an inline table, or as a header.
    """
    path = tuple(table)
    lines = list(_located_lines(text))
    if key is not None:
        pattern = re.compile(_KEY.format(re.escape(key)))
        for depth in range(len(path), -1, -1):
            for number, line, header, is_header in lines:
                if header == path[:depth] and not is_header and pattern.search(line):
                    return number
    wanted = path if key is None else (*path, key)
    for number, _, header, is_header in lines:
        if is_header and header[: len(wanted)] == wanted:
            return number
    return None


def _located_lines(text: str) -> Iterator[tuple[int, str, TablePath, bool]]:
    """For each line: number, text without comment, table, whether it is the header."""
    table: TablePath = ()
    entries: dict[TablePath, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _HEADER.match(line)
        if match is not None:
            table = ()
            parts = ["".join(part) for part in _HEADER_PART.findall(match["path"])]
            for part in parts[:-1]:
                table = _with_entry((*table, part), entries)
            table = (*table, parts[-1])
            if match["array"]:
                entries[table] = entries.get(table, -1) + 1
                table = _with_entry(table, entries)
        yield number, line.split("#")[0], table, match is not None


def _with_entry(table: TablePath, entries: Mapping[TablePath, int]) -> TablePath:
    """The path of a table; of an array of tables, that of its last entry so far."""
    return (*table, entries[table]) if table in entries else table
