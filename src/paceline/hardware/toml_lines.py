"""Where a key stands in a TOML text: the standard parser keeps no line numbers."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.errors import InputError

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = r"""(?:^|[\s{{,])["']?{}["']?\s*="""


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The document, or an error that names the file, the line and what is wrong with it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{name} is not TOML: {error}", 'one KEY = VALUE per line, text in "quotes"'
        ) from None


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Text and document of a file, or an error that names it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"cannot read {path}: {reason}", "give the path of a TOML file") from None
    return text, parse_toml(text, str(path))


def line_of(text: str, table: Sequence[str], key: str | None = None) -> int | None:
    """Line (from 1) of ``key`` in ``[table]``, or of the table's header; None if not found.

    Finds keys written under their table's header, inside an inline table, or as a header.
    """
    lines = text.splitlines()
    path = list(table)
    wanted = path if key is None else [*path, key]
    for depth in range(len(path), -1, -1):
        found = _assignment(lines, path[:depth], key) if key is not None else None
        if found is not None:
            return found
    for number, line in enumerate(lines, start=1):
        header = _header_path(line)
        if header is not None and header[: len(wanted)] == wanted:
            return number
    return None


def _assignment(lines: Sequence[str], table: list[str], key: str) -> int | None:
    """Line of ``key = ...`` below the header of ``table`` (above all headers for the root)."""
    pattern = re.compile(_KEY.format(re.escape(key)))
    inside = not table
    for number, line in enumerate(lines, start=1):
        header = _header_path(line)
        if header is not None:
            inside = header == table
        elif inside and pattern.search(line.split("#")[0]):
            return number
    return None


def _header_path(line: str) -> list[str] | None:
    match = _HEADER.match(line)
    if match is None or "=" in line.split("[")[0]:
        return None
    return [part.strip().strip("\"'") for part in _split_dotted(match["path"])]


def _split_dotted(path: str) -> list[str]:
    return re.findall(r"""(?:"[^"]*"|'[^']*'|[^."']+)""", path)
