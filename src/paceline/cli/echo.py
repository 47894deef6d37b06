"""Output of commands, with control characters escaped.

Names, logs and error messages come from users' files: a terminal must not interpret them.
"""

import re

import click

from paceline.json_text import CONTROLS


def echo(text: object = "", err: bool = False) -> None:
    """Print a line, on standard error with ``err``."""
    click.echo(escape_controls(str(text)), err=err)


def escape_controls(text: str) -> str:
    """``text`` with control characters escaped, for example as ``\\x1b``."""
    return CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
