"""``paceline frameworks``: what can be run, and the environments it runs in."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.measurement.environments import EnvironmentState
    from paceline.measurement.frameworks import Framework
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
    rows = framework_rows()
    if as_json:
        emit_json("frameworks", 1, {"frameworks": rows})
        return
    _print_rows(rows)
    missing = [row["name"] for row in rows if row["state"] == "not installed"]
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
    from paceline.measurement.environments import RECIPES, environment_state, environments_root
    from paceline.measurement.environments import install as install_environment

    for environment in _environments(names):
        recipe = RECIPES[environment]
        with study_progress(environment) as progress:
            install_environment(recipe, progress.stage, python)
        made = environment_state(recipe)
        click.echo(
            f"{environment}: {made.state}, {_gigabytes(made.size_bytes)} in {made.directory}"
        )
    click.echo(f"Environments are in {environments_root()}")
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
    from paceline.measurement.environments import record_verification
    from paceline.measurement.frameworks import framework, runs_in_our_environment
    from paceline.testing.adapter_suite import CHECKS, QUICK, run_suite

    checks = CHECKS if all_networks else QUICK
    results: dict[str, list[Result]] = {}
    for name in names:
        wanted = framework(name)
        results[name] = []
        with study_progress(name) as progress:
            waiting = list(checks)
            progress.stage(f"{name}: {waiting[0]}")
            for result in run_suite(name, checks, logs):
                results[name].append(result)
                waiting = waiting[1:]
                progress.stage(f"{name}: {waiting[0] if waiting else 'done'}")
                if not as_json:
                    _print_result(name, result)
        if runs_in_our_environment(wanted):
            passed = all(result.passed is not False for result in results[name])
            record_verification(wanted.environment, name, passed)
    failed = [name for name, found in results.items() if any(r.passed is False for r in found)]
    if as_json:
        emit_json("contract", 1, {"frameworks": [_verified(n, r) for n, r in results.items()]})
    elif not failed:
        next_line(f"paceline compare --frameworks {','.join(names)}")
    if failed:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Delete the environment of each framework."""
    from paceline.measurement.environments import RECIPES
    from paceline.measurement.environments import remove as remove_environment

    for environment in _environments(names):
        there = remove_environment(RECIPES[environment])
        click.echo(f"{environment}: {'removed' if there else 'was not installed'}")
    next_line("paceline frameworks")


@command.command()
@click.argument("name")
@click.option("--interpreter", help="A Python that has the framework.")
@click.option("--image", help="A container image with a Python that has the framework.")
@click.option("--own", is_flag=True, help="Go back to Paceline's environment.")
def use(name: str, interpreter: str | None, image: str | None, own: bool) -> None:
    """Run a framework in an interpreter or a container image of your own."""
    from paceline.errors import InputError
    from paceline.measurement.environments import Choice, choose, forget
    from paceline.measurement.frameworks import check_runnable, framework

    wanted = framework(name)
    if own == bool(interpreter or image):
        raise InputError("give one of --interpreter, --image and --own", "see --help")
    if own:
        forget(wanted.environment)
    else:
        choose(wanted.environment, Choice(interpreter, image))
        try:
            check_runnable(wanted)
        except Exception:
            forget(wanted.environment)
            raise
    click.echo(f"{name} runs in {interpreter or image or 'the environment of Paceline'}")
    next_line(f"paceline frameworks verify {name}")


def framework_rows() -> list[dict[str, Any]]:
    """Every framework with the environment it would run in now."""
    from paceline.measurement.environments import RECIPES, environment_state
    from paceline.measurement.frameworks import FRAMEWORKS

    rows = []
    for wanted in FRAMEWORKS.values():
        if not wanted.environment:
            continue
        found = environment_state(RECIPES[wanted.environment])
        verified = found.verified.get(wanted.name)
        state, place = _state_and_place(wanted, found)
        rows.append(
            {
                "name": wanted.name,
                "environment": wanted.environment,
                "state": state,
                "size_bytes": found.size_bytes,
                "python": found.python,
                "verified_at": verified.at if verified else None,
                "place": place,
            }
        )
    return rows


def _state_and_place(wanted: "Framework", found: "EnvironmentState") -> tuple[str, str]:
    """What a framework runs in now, in a few words, and where that is."""
    import sys

    from paceline.errors import PacelineError
    from paceline.measurement.environments import chosen
    from paceline.measurement.frameworks import interpreter, runs_in_our_environment

    choice = chosen(wanted.environment)
    if choice is not None and choice.image:
        return "image of your own", choice.image
    try:
        if not runs_in_our_environment(wanted):
            place = interpreter(wanted)
            ours = place == sys.executable
            return "in Paceline's Python" if ours else "your own Python", place
    except PacelineError:
        return str(found.state), ""
    return str(found.state_of(wanted.name)), str(found.directory)


def _environments(names: tuple[str, ...]) -> list[str]:
    """The environments of frameworks, each once, in the order they were named."""
    from paceline.measurement.environments import RECIPES
    from paceline.measurement.frameworks import framework

    found = [name if name in RECIPES else framework(name).environment for name in names]
    return list(dict.fromkeys(found))


def _print_rows(rows: list[dict[str, Any]]) -> None:
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table

    table = Table(
        columns=(Column("framework"), Column("environment"), Column("state"), Column("size")),
        rows=tuple(
            (row["name"], row["environment"], row["state"], _gigabytes(row["size_bytes"]))
            for row in rows
        ),
        note="Environments are made by 'paceline frameworks install NAME'.",
    )
    print_table(table)


def _print_result(name: str, result: "Result") -> None:
    word = {True: "passed", False: "FAILED", None: "does not apply"}[result.passed]
    click.echo(f"{name}: {result.check}: {word} ({result.words})")


def _verified(name: str, results: "list[Result]") -> dict[str, Any]:
    return {
        "name": name,
        "checks": [
            {"check": r.check, "passed": r.passed, "words": r.words, "seconds": r.seconds}
            for r in results
        ],
    }


def _gigabytes(size_bytes: float | None) -> str:
    return "-" if size_bytes is None else f"{size_bytes / 1e9:.2f} GB"
