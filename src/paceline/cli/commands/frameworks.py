"""``paceline frameworks``: what can be run, and the environments it runs in."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.output import emit_json, json_option, next_line, show
from paceline.cli.say import say

if TYPE_CHECKING:
    from paceline.frameworks.states import FrameworkState
    from paceline.testing.contract import Result

EXAMPLE = """
\b
Examples:
  paceline frameworks
  paceline frameworks install jax mxnet
  paceline frameworks verify jax
  paceline frameworks use tensorflow --interpreter ~/tf/bin/python
  paceline frameworks remove jax
"""


@click.group(epilog=EXAMPLE, invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List frameworks with their environments, and install, verify or remove those.

    Each framework has a virtual environment of its own, below $PACELINE_ENVIRONMENTS or your data
    directory; your own environment is never touched.
    """
    if context.invoked_subcommand is not None:
        return
    from paceline.frameworks.states import framework_states

    states = framework_states()
    if as_json:
        emit_json("frameworks", 1, {"frameworks": [asdict(one) for one in states]})
        return
    _print_states(states)
    missing = [one.name for one in states if one.state == "not installed"]
    verb = f"install {missing[0]}" if missing else "verify torch-ddp"
    next_line(f"paceline frameworks {verb}", "paceline compare --help")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--python", help="Interpreter to make the environment with [default: Paceline's].")
def install(names: tuple[str, ...], python: str | None) -> None:
    """Make the virtual environment of each framework from its pinned requirements.

    What a broken-off installation had finished is kept; nothing uses it before it is whole.
    """
    from paceline.cli.progress import study_progress
    from paceline.frameworks.environments.install import install
    from paceline.frameworks.environments.place import environment_state, environments_root
    from paceline.frameworks.registry import environments_of

    for spec in environments_of(names):
        with study_progress(spec.name) as progress:
            install(spec, progress.stage, python)
        made = environment_state(spec)
        say(f"{spec.name}: {made.state}, {_gigabytes(made.size_bytes)} in {made.directory}")
    say(f"Environments are in {environments_root()}")
    next_line(f"paceline frameworks verify {' '.join(names)}")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--all-networks", is_flag=True, help="Also build every network that it claims.")
@click.option(
    "--logs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep what the workers print there.",
)
@json_option
def verify(names: tuple[str, ...], all_networks: bool, logs: Path | None, as_json: bool) -> None:
    """Run the contract on each framework: the same training, and well-behaved."""
    from paceline.cli.progress import study_progress
    from paceline.testing.adapter_suite import CHECKS, QUICK
    from paceline.testing.adapter_suite import verify as verified

    checks = CHECKS if all_networks else QUICK
    results: dict[str, list[Result]] = {name: [] for name in names}
    for name, found in results.items():
        with study_progress(name) as progress:
            waiting = [*checks, "done"]
            progress.stage(f"{name}: {waiting[0]}")
            for result in verified(name, checks, logs):
                found.append(result)
                progress.stage(f"{name}: {waiting[len(found)]}")
                if not as_json:
                    _print_result(name, result)
    failed = any(result.passed is False for found in results.values() for result in found)
    if as_json:
        rows = [{"name": name, "checks": list(map(asdict, r))} for name, r in results.items()]
        emit_json("contract", 1, {"frameworks": rows})
    elif not failed:
        next_line(f"paceline compare --frameworks {','.join(names)}")
    if failed:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Delete the environment of each framework."""
    from paceline.frameworks.environments.install import remove
    from paceline.frameworks.registry import environments_of

    for spec in environments_of(names):
        there = remove(spec)
        say(f"{spec.name}: {'removed' if there else 'was not installed'}")
    next_line("paceline frameworks")


@command.command()
@click.argument("name")
@click.option("--interpreter", help="A Python that has the framework.")
@click.option("--image", help="A container image with a Python that has the framework.")
@click.option("--own", is_flag=True, help="Go back to Paceline's environment.")
def use(name: str, interpreter: str | None, image: str | None, own: bool) -> None:
    """Run a framework in an interpreter or a container image of your own."""
    from paceline.errors import InputError
    from paceline.frameworks.command import run_in
    from paceline.frameworks.environments.choice import EnvironmentChoice
    from paceline.frameworks.registry import framework

    if own == bool(interpreter or image):
        raise InputError("give one of --interpreter, --image and --own", "see --help")
    run_in(framework(name), None if own else EnvironmentChoice(interpreter, image))
    say(f"{name} runs in {interpreter or image or 'the environment of Paceline'}")
    next_line(f"paceline frameworks verify {name}")


def _print_states(states: "list[FrameworkState]") -> None:
    from paceline.report.table import Column, Table

    table = Table(
        columns=(Column("framework"), Column("environment"), Column("state"), Column("size")),
        rows=tuple(
            (one.name, one.environment or "-", one.state, _gigabytes(one.size_bytes))
            for one in states
        ),
        note="Environments are made by 'paceline frameworks install NAME'.",
    )
    show([table])


def _print_result(name: str, result: "Result") -> None:
    word = {True: "passed", False: "FAILED", None: "does not apply"}[result.passed]
    say(f"{name}: {result.check}: {word} ({result.words})")


def _gigabytes(size_bytes: float | None) -> str:
    return "-" if size_bytes is None else f"{size_bytes / 1e9:.2f} GB"
