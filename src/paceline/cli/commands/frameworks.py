"""``paceline frameworks``: frameworks and their environments."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.output import emit_json, json_option, next_line, show

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
    """List frameworks; install, verify or remove their environments.

    Each framework has its own virtual environment in $PACELINE_ENVIRONMENTS or the user's data
    directory; the current environment is not changed.
    """
    if context.invoked_subcommand is not None:
        return
    from paceline.frameworks.states import framework_states

    states = framework_states()
    if as_json:
        emit_json("frameworks", 2, {"frameworks": [asdict(one) for one in states]})
        return
    _print_states(states)
    missing = [one.name for one in states if one.state == "not installed"]
    verb = f"install {missing[0]}" if missing else "verify torch-ddp"
    next_line(f"paceline frameworks {verb}", "paceline compare --help")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--python",
    metavar="INTERPRETER",
    help="Python of the new environment [default: the one that runs Paceline].",
)
def install(names: tuple[str, ...], python: str | None) -> None:
    """Create the virtual environment of each framework from its pinned requirements.

    An interrupted installation continues where it stopped.
    """
    from paceline.cli.progress import study_progress
    from paceline.frameworks.environments.environment_state import (
        environment_state,
        environments_root,
    )
    from paceline.frameworks.environments.install import install
    from paceline.frameworks.framework_registry import environments_of

    for spec in environments_of(names):
        with study_progress(spec.name) as progress:
            install(spec, progress.stage, python)
        made = environment_state(spec)
        echo(f"{spec.name}: {made.state}, {_gigabytes(made.size_bytes)} in {made.directory}")
    echo(f"Environments are in {environments_root()}")
    next_line(f"paceline frameworks verify {' '.join(names)}")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--all-networks", is_flag=True, help="Also build every network that the framework supports."
)
@click.option(
    "--logs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the output of the workers in this directory.",
)
@json_option
def verify(names: tuple[str, ...], all_networks: bool, logs: Path | None, as_json: bool) -> None:
    """Run the contract tests of each framework: equal training, correct behaviour."""
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
        next_line(f"paceline measure --framework {','.join(names)}")
    if failed:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Delete the environment of each framework."""
    from paceline.frameworks.environments.install import remove
    from paceline.frameworks.framework_registry import environments_of

    for spec in environments_of(names):
        there = remove(spec)
        echo(f"{spec.name}: {'removed' if there else 'was not installed'}")
    next_line("paceline frameworks")


@command.command()
@click.argument("name")
@click.option("--interpreter", metavar="PATH", help="Python interpreter with the framework.")
@click.option("--image", metavar="IMAGE", help="Container image with the framework.")
@click.option("--own", is_flag=True, help="Use Paceline's environment again.")
def use(name: str, interpreter: str | None, image: str | None, own: bool) -> None:
    """Run a framework in your own interpreter or container image."""
    from paceline.errors import InputError
    from paceline.frameworks.command import run_in
    from paceline.frameworks.environments.choice import EnvironmentChoice
    from paceline.frameworks.framework_registry import framework

    if own == bool(interpreter or image):
        raise InputError(
            "expected one of --interpreter, --image and --own",
            f"example: paceline frameworks use {name} --interpreter ~/env/bin/python",
        )
    run_in(framework(name), None if own else EnvironmentChoice(interpreter, image))
    environment = interpreter or image or "Paceline's environment"
    echo(f"{name} runs in {environment}")
    next_line(f"paceline frameworks verify {name}")


def _print_states(states: "list[FrameworkState]") -> None:
    from paceline.render.table import Column, Table

    table = Table(
        columns=(Column("framework"), Column("environment"), Column("state"), Column("size")),
        rows=tuple(
            (one.name, one.environment or "-", one.state, _gigabytes(one.size_bytes))
            for one in states
        ),
        note="Install an environment with 'paceline frameworks install NAME'.",
    )
    show([table])


def _print_result(name: str, result: "Result") -> None:
    verdict = {True: "passed", False: "FAILED", None: "not applicable"}[result.passed]
    echo(f"{name}: {result.check}: {verdict} ({result.message})")


def _gigabytes(size_bytes: float | None) -> str:
    return "-" if size_bytes is None else f"{size_bytes / 1e9:.2f} GB"
