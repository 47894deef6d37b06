"""``paceline lab``: virtual clusters on this machine."""

from typing import Any

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line
from paceline.cli.options import IntegerRange
from paceline.cli.output import emit, emit_json, json_option

EXAMPLE = """
\b
Examples:
  paceline lab up --hosts 4 --link 1gbit --delay 200us
  paceline lab status
  paceline measure --launcher lab --model resnet20 --batch 32 -j 2x1
  paceline lab down
"""

name_option = click.option(
    "--name", metavar="NAME", default="lab", show_default=True, help="Name of the lab."
)


@click.group(epilog=EXAMPLE)
def command() -> None:
    """Create or tear down a virtual cluster: network namespaces with shaped links between them.

    A lab needs Linux and root. It does not change the interfaces of the machine, has no external
    network, and is removed by 'lab down' or a reboot.
    """


@command.command()
@click.option("--hosts", type=IntegerRange(), required=True, help="Number of hosts.")
@click.option(
    "--link",
    metavar="BANDWIDTH",
    help="Bandwidth of the link of each host, such as 1gbit [default: unlimited].",
)
@click.option(
    "--delay",
    metavar="DURATION",
    help="One-way delay between hosts, such as 200us [default: none].",
)
@click.option(
    "--speed",
    metavar="CORES",
    help="CPU time of each host in cores, such as 0.5 [default: unlimited].",
)
@name_option
@json_option
def up(name: str, as_json: bool, **wanted: Any) -> None:
    """Create a lab; an existing lab of the same name is torn down first."""
    from paceline.lab.api import create_lab

    made = create_lab(name=name, **wanted)
    topology = f"{min(2, wanted['hosts'])}x1"
    launcher = "lab" if name == "lab" else f"lab --launcher-option name={name}"
    emit(
        made,
        as_json,
        f"paceline measure --launcher {launcher} --model resnet20 --batch 32 -j {topology}",
        "paceline lab status",
        "paceline lab down" if name == "lab" else f"paceline lab down --name {name}",
    )


@command.command()
@json_option
def status(as_json: bool) -> None:
    """List running labs with their settings and faults."""
    from paceline.lab.api import labs

    found = labs()
    down = "paceline lab down --all" if len(found.labs) > 1 else "paceline lab down"
    emit(found, as_json, down if found.labs else "paceline lab up --hosts 4 --link 1gbit")


@command.command()
@name_option
@click.option("--all", "everything", is_flag=True, help="Tear down all labs.")
@json_option
def down(name: str, everything: bool, as_json: bool) -> None:
    """Tear down a lab: processes, namespaces, queues and control groups."""
    from paceline.lab.api import remove_lab

    ended = remove_lab(None if everything else name)
    if as_json:
        emit_json("lab_down", 1, {"ended": ended})
        return
    echo(f"Removed: {', '.join(ended)}" if ended else "No lab to remove.")
    next_line("paceline lab up --hosts 4 --link 1gbit")
