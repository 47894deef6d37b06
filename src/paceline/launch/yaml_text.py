"""Values as YAML: mappings, lists, numbers and texts, which is all that our files have."""

import json
import re
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def as_yaml(value: Any, indent: int = 0) -> str:
    """``value`` as lines of block YAML; what is empty is written as in JSON."""
    space = " " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{space}{_text(key)}:{_below(item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{space}-{_item(item, indent)}" for item in value)
    return f"{space}{_scalar(value)}\n"


def _below(value: Any, indent: int) -> str:
    """What stands after a key: on its line, or on lines of its own."""
    if isinstance(value, str) and "\n" in value:
        return _block(value, indent + 2)
    if isinstance(value, dict | list) and value:
        return "\n" + as_yaml(value, indent + 2)
    return f" {_scalar(value)}\n"


def _item(value: Any, indent: int) -> str:
    """What stands after a dash."""
    if isinstance(value, str) and "\n" in value:
        return _block(value, indent + 2)
    if isinstance(value, dict | list) and value:
        return " " + as_yaml(value, indent + 2)[indent + 2 :]
    return f" {_scalar(value)}\n"


def _block(text: str, indent: int) -> str:
    """A text of several lines as it is; one that ends otherwise than in one newline is quoted."""
    if not text.endswith("\n") or text.endswith("\n\n") or text.startswith((" ", "\n")):
        return f" {json.dumps(text)}\n"
    lines = "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in text.splitlines())
    return f" |\n{lines}"


def _scalar(value: Any) -> str:
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """A text as it is where YAML can read it as nothing else, else quoted as in JSON."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text)
