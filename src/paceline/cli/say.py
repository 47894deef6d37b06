"""The one way in which commands print: what comes from outside is shown, never obeyed."""

import re

import click

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Characters that a terminal obeys: controls, and those that turn the direction of writing."""


def say(text: object = "", err: bool = False) -> None:
    """Print a line, on standard error with ``err``."""
    click.echo(shown(str(text)), err=err)


def shown(text: str) -> str:
    """``text`` with characters that a terminal would obey written out, as in ``\\x1b``."""
    return _OBEYED.sub(_written_out, text)


def shown_in_json(text: str) -> str:
    """JSON whose strings have those characters escaped as JSON has it."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
