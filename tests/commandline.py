"""The command line in this process: quick, and with the user's errors as exceptions."""

import contextlib
import re
import shlex

import click
from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.cli.next_steps import SEPARATOR

TRAINING = {"measure", "demo", "calibrate", "run", "frameworks", "lab", "explore"}
TRAINING |= {"study run", "study rerun", "doctor --noise"}
"""Commands that start processes, networks or servers; of these, lines are checked for form."""


def run(line):
    """Standard output of a command line, given as text or as words without ``paceline``."""
    words = shlex.split(line)[1:] if isinstance(line, str) else [str(word) for word in line]
    answer = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def is_well_formed(line):
    """Parse a command line that trains, without running it; what is wrong with it raises."""
    _, name, *words = shlex.split(line)
    command = cli.get_command(None, name)
    assert command is not None, f"no command {name}"
    if isinstance(command, click.Group) and words and words[0] in command.commands:
        name = words.pop(0)
        command = command.commands[name]
    with contextlib.suppress(click.exceptions.Exit):  # --help
        command.make_context(name, words)


def try_out(line):
    """Run a printed command line as it stands, or only parse it where it would train."""
    assert line.startswith("paceline "), line
    words = line.split()
    if {words[1], " ".join(words[1:3])} & TRAINING or {"--run", "--try"} & set(words):
        is_well_formed(line)
    else:
        run(line)


def next_commands(output):
    """The command lines of the ``Next:`` part of an output."""
    _, found, text = output.rpartition("Next: ")
    assert found, output
    joined = re.sub(r" \\\n\s*", " ", text.strip())
    return [line.strip() for part in joined.split("\n") for line in part.split(SEPARATOR.strip())]
