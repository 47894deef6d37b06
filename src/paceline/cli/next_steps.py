"""'Next:' lines: the options that the user gave, as a command line for another command."""

import importlib
import keyword
import shlex
import textwrap
from collections.abc import Container
from typing import Any

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.render.terminal import terminal_width

SEPARATOR = "  ·  "
_HEAD, _INDENT = "Next: ", " " * 6


def next_line(*commands: str) -> None:
    """Print suggested commands: on one line, or one per line if they are long.

    With ``--tables latex`` or ``markdown``, standard output contains tables only.
    """
    line = _HEAD + SEPARATOR.join(commands)
    if len(line) > terminal_width():
        line = _HEAD + f"\n{_INDENT}".join(_continued(command) for command in commands)
    markup = click.get_current_context().find_root().params.get("tables", "text")
    echo(line, err=markup != "text")


def _continued(command: str) -> str:
    """Split a long command with backslashes; quoted arguments stay whole."""
    if "'" in command:
        return command
    room = terminal_width() - len(_INDENT) - len(" \\")
    parts = textwrap.wrap(
        command, room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return f" \\\n{_INDENT}".join(parts)


def command_named(name: str) -> click.Command:
    """Import and return the command ``name``, such as ``predict`` or ``study show``."""
    first, *rest = name.split()
    module = f"{first}_" if keyword.iskeyword(first) else first
    command = importlib.import_module(f"paceline.cli.commands.{module}").command
    for part in rest:
        command = command.commands[part]
    assert isinstance(command, click.Command)
    return command


def same_job(name: str, *, drop: Container[str] = (), **changes: Any) -> str:
    """``paceline NAME`` with those options of the current command that NAME has too.

    Options are matched by parameter name, so an argument of one command may be an option of the
    other. ``changes`` override the options given; options in ``drop`` and default values are
    left out. Values are quoted for a shell.
    """
    context = click.get_current_context()
    given = {
        parameter: value
        for parameter, value in context.params.items()
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
        and parameter not in drop
    }
    values = {**given, **changes}
    arguments = ["paceline", *name.split()]
    for parameter in command_named(name).params:
        value = _value_of(parameter, values, context.command.params)
        if value is not None and value != parameter.default:
            arguments += _arguments(parameter, value)
    return shlex.join(arguments)


def single_values(index: int) -> dict[str, Any]:
    """One value of each option that has several: the first (0) or the last (-1)."""
    given = click.get_current_context().params
    return {name: value[index] for name, value in given.items() if isinstance(value, list)}


def _value_of(
    parameter: click.Parameter, values: dict[str, Any], own: list[click.Parameter]
) -> Any:
    """The value of the same parameter, or of one that has the same spelling (``-j``)."""
    names = [parameter.name, *(one.name for one in own if set(one.opts) & set(parameter.opts))]
    return next((values[name] for name in names if name in values), None)


def with_store(command: str) -> str:
    """``command`` with the ``--store`` option of the current command, if given."""
    path = click.get_current_context().params.get("store_path")
    return command if path is None else f"{command} --store {shlex.quote(str(path))}"


def command_line(*arguments: str) -> str:
    """``paceline`` with ``arguments``, quoted for a shell, and the ``--store`` option if given."""
    return with_store(shlex.join(["paceline", *arguments]))


def _arguments(parameter: click.Parameter, value: Any) -> list[str]:
    values = list(value) if isinstance(value, tuple | list) else [value]
    if isinstance(parameter, click.Argument):
        return [str(one) for one in values]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        off = parameter.secondary_opts[:1]
        chosen = value is True if parameter.is_bool_flag else value == parameter.flag_value
        return parameter.opts[:1] if chosen else off
    if not parameter.multiple and len(values) > 1:
        values = [",".join(map(str, values))]
    return [part for one in values for part in (parameter.opts[0], str(one))]
