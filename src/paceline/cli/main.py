"""The ``paceline`` command: a group that imports each command only when it is called."""

import errno
import gc
import io
import os
import signal
import sys
import warnings
from contextlib import suppress

import click

from paceline import __version__
from paceline.cli.next_steps import command_named
from paceline.cli.say import say
from paceline.cli.slips import explained, warn_of_repeated
from paceline.errors import PacelineError, PacelineWarning
from paceline.interrupts import raise_when_asked_to_end
from paceline.naming import nearest

COMMANDS = {
    "advise": "Find the best plans for a workload on a cluster, and why others are worse.",
    "calibrate": "Fit this machine from its own launches; suggest the most informative next run.",
    "check": "Say whether one study is slower than another, or whether it is noise.",
    "compare": "Train one network under several frameworks and rank them.",
    "constants": "Show the numbers of the predictor, their source, and what they move.",
    "demo": "Measure, predict and compare on this machine, and write a report.",
    "diff": "Say how two launches, studies or predictions differ: settings, then time.",
    "doctor": "Say what works on this machine and what to install for the rest.",
    "explain": "Say where the time of a measured step goes, from ideal to real.",
    "explore": "Serve a page on which predictions are turned over by hand and eye.",
    "export": "Write launches as tidy CSV or Parquet tables.",
    "frameworks": "List frameworks; install, verify or remove their environments.",
    "hardware": "Show what is known of devices, links and clusters, and from where.",
    "import": "Turn another program's log or trace into launches.",
    "inspect": "Show the layers of a model with their parameters, FLOP and memory.",
    "lab": "Make a cluster of hosts with shaped links on this machine, and end it.",
    "list": "List recorded launches.",
    "measure": "Train for some steps, several times, and record how fast it went.",
    "models": "List the networks that are built in.",
    "predict": "Predict step time, throughput and memory of a plan on a cluster.",
    "probe": "Measure this machine: arithmetic, memory, collectives, co-location.",
    "published": "Show the published measurements that predictions are validated on.",
    "recipes": "Say how to run another training program so that its log can be compared.",
    "report": "Write one self-contained HTML page about what was measured.",
    "reproduce": "Set what five published studies measured beside what is predicted.",
    "rerun": "Measure once more what a study or launch measured.",
    "run": "Run a training command of your own, unchanged, and record its steps.",
    "selfcheck": "Measure one job twice, blind, and say how often equals are called different.",
    "show": "Show one launch with everything that was recorded about it.",
    "studies": "List studies; rename, delete, annotate them, merge stores.",
    "study": "Check or run a study that a file describes: factors, design, stopping rule.",
    "sweep": "Compare data and model parallelism along five axes, crossovers solved.",
    "trace": "Say where the time of a trace goes, who is slow, and what repairs are worth.",
    "validate": "Score predictions on published measurements, beside null models.",
    "whatif": "Say what faster resources or another plan would gain.",
    "worker": "Run ranks of a prepared launch under srun, mpirun or torchrun.",
}
"""Name and one-line help of each command; ``paceline.cli.commands.<name>`` holds ``command``.

The module of a command whose name is a keyword of Python has an underscore after it.
"""


PURPOSES = {
    "Measure": (
        *("demo", "measure", "compare", "study", "rerun", "run", "worker", "probe", "selfcheck"),
    ),
    "Predict": ("predict", "explore", "advise", "sweep", "whatif", "inspect"),
    "Explain": (
        "explain",
        "trace",
        "report",
        "check",
        "diff",
        "calibrate",
        "validate",
        "reproduce",
    ),
    "Data": ("studies", "list", "show", "export", "import", "recipes", "published"),
    "Set up": ("doctor", "lab", "frameworks", "models", "hardware", "constants"),
}
"""What commands are for; one that is in no list comes last."""


class LazyGroup(click.Group):
    """Lists commands from `COMMANDS` and imports a command's module when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's object, imported now; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        return command_named(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Click's own, with the nearest commands named when there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS)
            raise PacelineError(
                f"no command named '{args[0]}'." + (f" Near: {', '.join(near)}" if near else ""),
                "'paceline --help' lists all",
            )
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            warn_of_repeated(command, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for, without importing any of them."""
        named = {name for names in PURPOSES.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        for purpose, names in {**PURPOSES, "Further": others}.items():
            if names:
                with formatter.section(purpose):
                    formatter.write_dl([(f"{name:11}", COMMANDS[name]) for name in names])


_OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Predictions make many objects and no cycles: looking for cycles took a fifth of the time."""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: paceline demo",
)
@click.version_option(__version__, prog_name="paceline")
@click.option(
    "--tables",
    type=click.Choice(["text", "markdown", "latex"]),
    default="text",
    help="How tables are printed, before the command: paceline --tables latex studies.",
)
def cli(tables: str) -> None:
    """Measure, model and explain distributed deep-learning training."""


def main() -> None:
    """Run the command line; a user's mistake ends with one line, a hint and exit code 2."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    raise_when_asked_to_end()
    warnings.showwarning = _show_warning
    output = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale may lack characters of ours
            stream.reconfigure(errors="replace")
    try:
        cli(standalone_mode=False)
        sys.stdout.flush()
    except PacelineError as error:
        _fail(error.message, error.hint)
    except click.ClickException as error:
        if error.format_message().startswith("Usage:"):  # no command was named: help
            say(error.format_message(), err=True)
            sys.exit(2)
        _fail(*explained(error))
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ or error  # click wraps what it catches
        say(f"\n{str(cause) or 'interrupted'}; what was finished is kept", err=True)
        sys.exit(128 + getattr(cause, "number", signal.SIGINT))
    except SystemExit as end:
        if sys.stdout is not output:  # click met a reader that had gone away
            os._exit(128 + signal.SIGPIPE)
        try:
            sys.stdout.flush()
        except OSError:  # a disk that is full must not hide how a command ended
            os._exit(end.code if isinstance(end.code, int) else 1)
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename:
            raise
        with suppress(OSError):  # nor can this be, where both go to the same disk
            say(f"error: cannot write: {error.strerror}", err=True)
        os._exit(1)  # what is still in a buffer cannot be written either


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, PacelineWarning):
        say(f"warning: {message}", err=True)


def _fail(message: str, hint: str) -> None:
    say(f"error: {message}", err=True)
    if hint:
        say(f"hint: {hint}", err=True)
    sys.exit(2)
