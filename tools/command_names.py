"""Write tests/cli/commands.txt: every command with its arguments and options.

Run it after an intended change of the command line: python tools/command_names.py
"""

from collections.abc import Iterator
from pathlib import Path

import click

from paceline.cli.main import COMMANDS
from paceline.cli.next_steps import command_named

FILE = Path(__file__).parents[1] / "tests" / "cli" / "commands.txt"


def command_lines() -> list[str]:
    """One line per command: its name, arguments and options in alphabetical order."""
    return [line for name in sorted(COMMANDS) for line in _lines(name, command_named(name))]


def _lines(name: str, command: click.Command) -> Iterator[str]:
    arguments = [str(p.name).upper() for p in command.params if isinstance(p, click.Argument)]
    options = [
        "|".join((*parameter.opts, *parameter.secondary_opts))
        for parameter in command.params
        if isinstance(parameter, click.Option)
    ]
    yield " ".join([name, *arguments, *sorted(options)])
    if isinstance(command, click.Group):
        for inner in sorted(command.commands):
            yield from _lines(f"{name} {inner}", command.commands[inner])


if __name__ == "__main__":
    FILE.write_text("\n".join(command_lines()) + "\n", encoding="utf-8")
