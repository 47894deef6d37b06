"""The one reader of TOML: every value checked, every mistake told with its file and line.

`read_toml` (a user's file), `shipped_toml` (one of the package) and `parse_toml` (a text) give the
root `TomlTable`; a table gives its values by what they have to be, and its inner tables::

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
"""The largest count that can be meant: nodes, devices."""

TablePath = tuple[str | int, ...]
_HEADER = re.compile(r"^\s*(?P<array>\[)?\[\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_HEADER_PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'\s]+))\s*""")
_KEY = r"""(?:^|[\s{{,.])["']?{}["']?\s*="""


@dataclass(frozen=True)
class TomlTable:
    """One table of a TOML file, with what is needed to point at a mistake in it.

    ``path`` are the keys that lead to it from the root, with a number after the name of an array
    of tables. Where a key is absent, methods return what their docstring says; name the keys that
    must be there in `check_keys`.
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
        """The table as its header has it: ``[device.my_gpu]``."""
        return f"[{'.'.join(map(str, self.path))}]" if self.path else self.file

    def fail(self, key: str | None, message: str, hint: str) -> NoReturn:
        """Raise an error that names the file and the line of ``key`` (None: of the table)."""
        line = line_of(self.text, self.path, key)
        where = f"{self.file}, line {line}" if line else self.file
        raise InputError(f"{where}: {message}", hint)

    @contextmanager
    def locating(self, key: str | None) -> Iterator[None]:
        """Give an error raised inside the place of ``key``, unless it has one of this file."""
        try:
            yield
        except PacelineError as error:
            if error.message.startswith(self.file):
                raise
            self.fail(key, error.message, error.hint)

    def check_keys(self, known: Sequence[str], needed: Sequence[str] = ()) -> None:
        """Refuse a key that is not ``known``, naming the nearest, and a ``needed`` one left out."""
        for key in self.values:
            if key not in known:
                near = nearest(key, known, 1)
                self.fail(
                    key,
                    f"unknown key '{key}' in {self.title}",
                    f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}",
                )
        for key in needed:
            if key not in self.values:
                self.fail(None, f"{self.title} has no {key}", f"add {key} = ...")

    def table(self, key: str) -> "TomlTable":
        """The inner table ``key``; an empty one where the key is absent."""
        return self._inner(key, self.values.get(key, {}), (key,))

    def tables(self) -> dict[str, "TomlTable"]:
        """Every entry by name; all of them have to be tables."""
        return {key: self.table(key) for key in self.values}

    def array(self, key: str) -> list["TomlTable"]:
        """The tables written as ``[[key]]``; none where the key is absent."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            self.fail(key, f"{key} is {entries!r}, not a list of tables", f"write [[{key}]]")
        return [self._inner(key, entry, (key, index)) for index, entry in enumerate(entries)]

    def _inner(self, key: str, values: object, path: TablePath) -> "TomlTable":
        if not isinstance(values, dict):
            header = ".".join([*map(str, self.path), key])
            self.fail(key, f"{key} is {values!r}, not a table", f"write [{header}] above its keys")
        return TomlTable(self.file, self.text, (*self.path, *path), values)

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
        except OverflowError:
            self.fail(key, f"{key} is too large a number", "give a number that can be meant")
        except ValueError:
            self.fail(key, f"{key} is {value!r}, not a number", "write a number without a unit")
        if not math.isfinite(quantity) or quantity < 0 or (quantity == 0 and not may_be_zero):
            self.fail(key, f"{key} of {value!r} is impossible", "give a number above zero")
        return quantity

    def quantities(
        self, parse: Callable[[Any], float], may_be_zero: bool = False
    ) -> dict[str, float]:
        """Every value of the table, all of them quantities, in SI units."""
        found = {key: self.parsed(key, parse, may_be_zero) for key in self.values}
        return {key: quantity for key, quantity in found.items() if quantity is not None}

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
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
            hint = f"give a whole number of at least 1, at most {MOST:,}"
            self.fail(key, f"{key} is {value!r}", hint)
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where the key is absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"{key} is {value!r}", "write true or false")
        return value

    def names(self, key: str) -> list[str]:
        """A list of texts; empty where the key is absent."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, f"{key} is {value!r}, not a list of texts", 'write ["one", "two"]')
        return value

    def numbers(self, key: str) -> list[float]:
        """A list of finite numbers; empty where the key is absent."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
            self.fail(key, f"{key} is not a list of numbers", "write [1.0, 2.5]")
        if not all(math.isfinite(_as_float(item)) for item in value):
            self.fail(key, f"{key} has a number that is not finite", "write [1.0, 2.5]")
        return [float(item) for item in value]


def _as_float(number: float) -> float:
    """The number in floating point, infinite where it is too large for that."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def parse_toml(text: str, file: str) -> TomlTable:
    """The root table of a text; ``file`` is its name in messages."""
    hint = 'one KEY = VALUE per line, text in "quotes"'
    try:
        return TomlTable(file, text, (), tomllib.loads(text))
    except RecursionError:
        raise InputError(f"{file} is not TOML: it is nested too deeply", hint) from None
    except ValueError as error:
        raise InputError(f"{file} is not TOML: {error}", hint) from None


def read_toml(path: Path) -> TomlTable:
    """The root table of a user's file."""
    text = read_text(path, LARGEST_BYTES, "TOML file")
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:  # long dotted keys take a time that grows with their square
            raise InputError(
                f"{path}, line {number}: it has {len(line):,} characters", "write shorter lines"
            )
    return parse_toml(text, str(path))


def shipped_toml(*parts: str) -> TomlTable:
    """The root table of a file of the package: ``shipped_toml("data", "traces", "x.toml")``."""
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
    """Number, content without comment, table, and whether it is that table's header, by line."""
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
    """The table, or the last entry of it so far where it is an array of tables."""
    return (*table, entries[table]) if table in entries else table
