"""TOML files with the lines of their keys, for `paceline.typed_toml`.

`read_toml` (a user's file), `shipped_toml` (a file of the package) and `parse_toml` (a text) return
the root `TomlTable`.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.user_files import read_text

LARGEST_BYTES = 4_000_000
LONGEST_LINE = 10_000
PACKAGE = Path(__file__).parent
TablePath = tuple[str | int, ...]
_HEADER = re.compile(r"^\s*(?P<array>\[)?\[\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_HEADER_PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'\s]+))\s*""")
_KEY = r"""(?:^|[\s{{,.])["']?{}["']?\s*="""


@dataclass(frozen=True)
class TomlTable:
    """One table of a TOML file with its location for error messages.

    ``path`` has the keys from the root, with an index after the name of an array of tables.
    """

    file: str
    text: str
    path: TablePath
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The last key of its path: ``my_gpu`` of ``[device.my_gpu]``."""
        return str(self.path[-1])

    def table(self, key: str) -> "TomlTable":
        """The inner table ``key``; empty if the key is absent."""
        values, path = self.values.get(key, {}), (*self.path, key)
        if not isinstance(values, dict):
            line = line_of(self.text, self.path, key)
            where = f"{self.file}, line {line}" if line else self.file
            raise InputError(
                f"{where}: {key} must be a table, not {values!r:.60}",
                f"write [{'.'.join(map(str, path))}] above its keys",
            )
        return TomlTable(self.file, self.text, path, values)

    def tables(self) -> dict[str, "TomlTable"]:
        """All entries by name; each must be a table."""
        return {key: self.table(key) for key in self.values}


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
    """The root table of a packaged file: ``shipped_toml("data", "traces", "x.toml")``.

    tomllib is written in Python, so the values of the file are cached as JSON beside the bytecode
    of the package, under the same rules: nothing is written if that folder is read-only or
    Python runs with ``-B``.
    """
    text = PACKAGE.joinpath(*parts).read_text(encoding="utf-8")
    cache = Path(cache_from_source(str(PACKAGE / "-".join(parts)))).with_suffix(".json")
    with suppress(OSError, ValueError, LookupError, TypeError):
        cached = json.loads(cache.read_text(encoding="utf-8"))
        if cached["text"] == text:
            return TomlTable(parts[-1], text, (), cached["values"])
    root = parse_toml(text, parts[-1])
    if not sys.dont_write_bytecode:
        # Processes that start together each write a file of their own, then rename it.
        own = cache.with_suffix(f".{os.getpid()}")
        with suppress(OSError, TypeError):
            cache.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(json.dumps({"text": text, "values": root.values}), encoding="utf-8")
            own.replace(cache)
    return root


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
