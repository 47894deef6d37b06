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
from paceline.cli.echo import echo
from paceline.cli.next_steps import command_named
from paceline.cli.suggestions import explain_usage_error, refuse_empty, warn_of_repeated
from paceline.errors import PacelineError, PacelineWarning, UnknownNameError
from paceline.interrupts import install_signal_handlers
from paceline.naming import unknown_name

MOST_PROBLEMS = 20
"""Errors of one file that are printed."""

COMMANDS = {
    "advise": "Search for the fastest plans for a workload on a cluster.",
    "calibrate": "Benchmark this machine; fit predictions to its launches.",
    "catalog": "List models, hardware, constants and published rows.",
    "compare": "Compare two studies, launches or predictions; find regressions.",
    "demo": "Measure, predict and compare on this machine; write a report.",
    "doctor": "Check this machine, its noise, or a set of hosts.",
    "explain": "Break a measured step down by cause.",
    "explore": "Explore predictions in a browser.",
    "frameworks": "Install, verify or remove the environments of frameworks.",
    "import": "Import logs and traces of other programs as launches.",
    "inspect": "Show the layers of a model with parameters, FLOPs and memory.",
    "lab": "Create or tear down a virtual cluster with shaped links.",
    "measure": "Measure training throughput; rank frameworks.",
    "predict": "Predict step time, throughput and memory of a plan.",
    "report": "Write a self-contained HTML report of a study.",
    "reproduce": "Compare predictions with five published studies.",
    "run": "Run your own training command and record its steps.",
    "study": "Run study files; list, show, rerun and export studies.",
    "sweep": "Compare data and model parallelism along one or two axes.",
    "trace": "Break a trace down by phase; find stragglers.",
    "validate": "Score predictions against published measurements.",
    "whatif": "Estimate the gain from faster resources or another plan.",
    "worker": "Run ranks of a prepared launch under srun, mpirun or torchrun.",
}
"""Name and one-line help of each command; ``paceline.cli.commands.<name>`` holds ``command``.

The module of a command named after a Python keyword ends in an underscore (``import_``).
"""

SECTIONS = {
    "Predict": ("predict", "advise", "sweep", "whatif", "explore", "inspect"),
    "Measure": ("demo", "measure", "study", "run", "import", "worker"),
    "Explain": ("explain", "compare", "trace", "report"),
    "Accuracy": ("calibrate", "validate", "reproduce"),
    "Set up": ("doctor", "catalog", "frameworks", "lab"),
}
"""Sections of the command list in help; commands of no section come last."""

RENAMED = {
    "check": "compare A B --check",
    "constants": "catalog constants",
    "diff": "compare A B",
    "export": "study export",
    "hardware": "catalog devices (or links, clusters, libraries, frameworks)",
    "list": "study list --launches, or study show STUDY",
    "models": "catalog models",
    "probe": "calibrate --probe",
    "published": "catalog publications",
    "recipes": "catalog recipes",
    "rerun": "study rerun",
    "selfcheck": "doctor --noise",
    "show": "study show",
    "studies": "study list (or rename, delete, annotate, merge)",
}
"""Commands of version 0.1 and their present names."""


class LazyGroup(click.Group):
    """A group that lists `COMMANDS` and imports the module of a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if it does not exist."""
        if cmd_name not in COMMANDS:
            return None
        return command_named(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, with suggestions for an unknown command."""
        if args and args[0] in RENAMED:
            raise UnknownNameError(f"'paceline {args[0]}' is now: paceline {RENAMED[args[0]]}")
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown_name("command", args[0], COMMANDS, "run 'paceline --help' for a list")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_empty(command, rest)
            warn_of_repeated(command, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands by section, without importing them."""
        named = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        for title, names in {**SECTIONS, "Other": others}.items():
            if names:
                with formatter.section(title):
                    formatter.write_dl([(f"{name:11}", COMMANDS[name]) for name in names])


PATH_ERRORS = {
    *(errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
    *(errno.EROFS, errno.ETXTBSY, errno.ESTALE, errno.ENXIO, errno.EFBIG),
}
"""Errors of a path that the user chose, for files that are used without `user_files`."""
_LIMITS = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close programs: the machine has too many open files",
    errno.EAGAIN: "raise the limit of processes (ulimit -u)",
    errno.ENOMEM: "free memory, or raise its limit (ulimit -v)",
}
LONGEST_NAME = 200
"""Characters of a file name in an error message."""
_OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Predictions allocate many objects without cycles: garbage collection took 20 % of the time."""


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
    help="Format of tables. Give it before the command: paceline --tables latex study list.",
)
def cli(tables: str) -> None:
    """Measure, model and explain distributed deep-learning training."""


def main() -> None:
    """Run the command line; on a user error print a message and a hint, and exit with code 2."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _open_closed_streams()
    install_signal_handlers()
    warnings.showwarning = _show_warning
    output = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # for locales without UTF-8
            stream.reconfigure(errors="replace")
    try:
        cli(standalone_mode=False)
        sys.stdout.flush()
    except PacelineError as error:
        _fail(*error.problems)
    except click.ClickException as error:
        if error.format_message().startswith("Usage:"):  # no command given: click raises its help
            echo(error.format_message(), err=True)
            sys.exit(2)
        _fail(explain_usage_error(error))
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ or error  # click wraps the interrupt
        echo(f"\n{str(cause) or 'interrupted'}; results so far are kept", err=True)
        sys.exit(128 + getattr(cause, "number", signal.SIGINT))
    except SystemExit as end:
        if sys.stdout is not output:  # click replaced it after a broken pipe
            os._exit(128 + signal.SIGPIPE)
        try:
            sys.stdout.flush()
        except OSError:  # a full disk must not hide the exit code
            os._exit(end.code if isinstance(end.code, int) else 1)
        raise
    except OSError as error:
        if error.errno in PATH_ERRORS and error.filename:
            name = os.fsdecode(error.filename)
            shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
            _fail((f"cannot use {shown}: {error.strerror}", "choose another file or directory"))
        if error.errno in _LIMITS:
            _fail((f"cannot continue: {error.strerror}", _LIMITS[error.errno]))
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename:
            raise
        with suppress(OSError):  # standard error may be on the same full disk
            echo(f"error: cannot write: {error.strerror}", err=True)
        os._exit(1)  # buffered output cannot be written either


def _open_closed_streams() -> None:
    """Open standard streams that were closed (``>&-``) on /dev/null.

    Python sets them to None, and the next file opened, such as the store, would get their file
    descriptor: output of a library or a child process would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(
                os.devnull, os.O_RDWR
            )  # the lowest free descriptor: that of the stream
            os.set_inheritable(handle, True)  # for children too
            setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8"))


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, PacelineWarning):
        echo(f"warning: {message}", err=True)


def _fail(*problems: tuple[str, str]) -> None:
    """Print errors with their hints and exit."""
    for message, hint in problems[:MOST_PROBLEMS]:
        echo(f"error: {message}", err=True)
        if hint:
            echo(f"hint: {hint}", err=True)
    if len(problems) > MOST_PROBLEMS:
        echo(f"error: {len(problems) - MOST_PROBLEMS} further errors", err=True)
    sys.exit(2)
