"""``paceline frameworks``: frameworks and their environments."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.output import emit, json_option, next_line

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
    from paceline.frameworks.api import installed_frameworks

    found = installed_frameworks()
    verb = f"install {found.missing[0]}" if found.missing else "verify torch-ddp"
    emit(found, as_json, f"paceline frameworks {verb}", "paceline measure --help")


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
    from paceline.frameworks.api import install_frameworks
    from paceline.frameworks.environments.environment_state import environments_root

    with study_progress("install") as progress:
        install_frameworks(names, python=python, on_stage=progress.stage, on_line=echo)
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
    from paceline.frameworks.api import verify_frameworks

    with study_progress("verify") as progress:
        found = verify_frameworks(
            names,
            all_networks=all_networks,
            logs=logs,
            on_stage=progress.stage,
            on_line=(lambda line: None) if as_json else echo,
        )
    if as_json:
        emit(found, as_json)
    elif found.passed:
        next_line(f"paceline measure --framework {','.join(names)}")
    if not found.passed:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Delete the environment of each framework."""
    from paceline.frameworks.api import remove_frameworks

    for name, installed in remove_frameworks(names).items():
        echo(f"{name}: {'removed' if installed else 'was not installed'}")
    next_line("paceline frameworks")


@command.command()
@click.argument("name")
@click.option("--interpreter", metavar="PATH", help="Python interpreter with the framework.")
@click.option("--image", metavar="IMAGE", help="Container image with the framework.")
@click.option("--own", is_flag=True, help="Use Paceline's environment again.")
def use(name: str, interpreter: str | None, image: str | None, own: bool) -> None:
    """Run a framework in your own interpreter or container image."""
    from paceline.errors import InputError
    from paceline.frameworks.api import use_framework

    if own == bool(interpreter or image):
        raise InputError(
            "expected one of --interpreter, --image and --own",
            f"example: paceline frameworks use {name} --interpreter ~/env/bin/python",
        )
    use_framework(name, interpreter=interpreter, image=image)
    environment = interpreter or image or "Paceline's environment"
    echo(f"{name} runs in {environment}")
    next_line(f"paceline frameworks verify {name}")
