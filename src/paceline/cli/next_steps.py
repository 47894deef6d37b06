"""What to type next: the job that the user described, in the words of another command."""

import importlib
import keyword
import shlex
import textwrap
from collections.abc import Container
from typing import Any

import click
from click.core import ParameterSource

from paceline.cli.say import say

SEPARATOR = "  ·  "
WIDTH = 100
_HEAD, _INDENT = "Next: ", " " * 6


def next_line(*commands: str) -> None:
    """Say what to type next: on one line, or a command below the other where they are long."""
    line = _HEAD + SEPARATOR.join(commands)
    if len(line) > WIDTH:
        line = _HEAD + f"\n{_INDENT}".join(_continued(command) for command in commands)
    say(line)


def _continued(command: str) -> str:
    """A long command as lines that a shell reads as one; what is quoted is not divided."""
    if "'" in command:
        return command
    room = WIDTH - len(_INDENT) - len(" \\")
    parts = textwrap.wrap(
        command, room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return f" \\\n{_INDENT}".join(parts)


def command_named(name: str) -> click.Command:
    """The command called ``name``, imported now."""
    module = f"{name}_" if keyword.iskeyword(name) else name
    command = importlib.import_module(f"paceline.cli.commands.{module}").command
    assert isinstance(command, click.Command)
    return command


def same_job(name: str, *, drop: Container[str] = (), **changes: Any) -> str:
    """``paceline NAME`` with the options that the user gave and NAME has as well.

    Options are matched by parameter name (an argument may become an option and the other way
    round). ``changes`` are set whatever the user gave; those in ``drop``, and what NAME takes
    anyway, are left out. The line runs as it stands: values are quoted for a shell.
    """
    context = click.get_current_context()
    given = {
        parameter: value
        for parameter, value in context.params.items()
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
        and parameter not in drop
    }
    values = {**given, **changes}
    words = ["paceline", name]
    for parameter in command_named(name).params:
        value = values.get(parameter.name or "")
        if value is not None and value != parameter.default:
            words += _words(parameter, value)
    return shlex.join(words)


def with_store(command: str) -> str:
    """A command on the store that the user named, where one was named."""
    path = click.get_current_context().params.get("store_path")
    return command if path is None else f"{command} --store {shlex.quote(str(path))}"


def command_line(*words: str) -> str:
    """``paceline`` and these words, quoted for a shell, on the store that the user named."""
    return with_store(shlex.join(["paceline", *words]))


def _words(parameter: click.Parameter, value: Any) -> list[str]:
    """One parameter as words of a command line."""
    values = list(value) if isinstance(value, tuple | list) else [value]
    if isinstance(parameter, click.Argument):
        return [str(one) for one in values]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        chosen = value is True if parameter.is_bool_flag else value == parameter.flag_value
        return [parameter.opts[0]] if chosen else []
    return [word for one in values for word in (parameter.opts[0], str(one))]
