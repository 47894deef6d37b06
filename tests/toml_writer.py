"""Writer of TOML, which the standard library can only read."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A document of strings, numbers, booleans, lists and tables as TOML."""
    tables = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(document[key])}" for key in document if key not in tables]
    if path and (lines or not tables):
        lines = [f"[{'.'.join(map(_key, path))}]", *lines]
    parts = ["\n".join(lines)] if lines else []
    parts += [toml_text(table, (*path, key)).rstrip() for key, table in tables.items()]
    return "\n\n".join(parts) + "\n"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _string(text: str) -> str:
    """A basic string: the escapes of JSON, and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
