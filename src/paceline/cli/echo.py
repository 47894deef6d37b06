"""Output of commands, with control characters escaped.

Names, logs and error messages come from users' files: a terminal must not interpret them.
"""

import re

import click

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Control characters, line separators and marks of bidirectional text."""


def echo(text: object = "", err: bool = False) -> None:
    """Print a line, on standard error with ``err``."""
    click.echo(escape_controls(str(text)), err=err)


def escape_controls(text: str) -> str:
    """``text`` with control characters escaped, for example as ``\\x1b``."""
    return _CONTROLS.sub(_escape, text)


def escape_json(text: str) -> str:
    """JSON text with control characters as ``\\uXXXX``."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
