"""``paceline lab``: virtual clusters on this machine."""

import os
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line
from paceline.cli.output import emit_json, json_option, show, warn

if TYPE_CHECKING:
    from paceline.lab import Lab

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
@click.option("--hosts", type=int, required=True, help="Number of hosts.")
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
    from paceline.lab import LabSettings, lab_up

    made = lab_up(LabSettings.of({k: v for k, v in wanted.items() if v is not None}), name)
    if as_json:
        emit_json("lab", 1, {"labs": [_document(made)]})
        return
    echo(f"Lab {made.name}: {made.settings.description}")
    warn(f"warning: {text}" for text in _lab_warnings(made))
    topology = f"{min(2, made.settings.hosts)}x1"
    launcher = "lab" if name == "lab" else f"lab --launcher-option name={name}"
    next_line(
        f"paceline measure --launcher {launcher} --model resnet20 --batch 32 -j {topology}",
        "paceline lab status",
        "paceline lab down" if name == "lab" else f"paceline lab down --name {name}",
    )


@command.command()
@json_option
def status(as_json: bool) -> None:
    """List running labs with their settings and faults."""
    from paceline.lab import known_labs
    from paceline.render.table import Column, Table

    labs = known_labs()
    if as_json:
        emit_json("lab", 1, {"labs": [_document(lab) for lab in labs]})
        return
    if not labs:
        echo("No lab is running.")
        next_line("paceline lab up --hosts 4 --link 1gbit")
        return
    titles = ("lab", "settings", "delay by", "processes", "state")
    rows = tuple(
        (
            lab.name,
            lab.settings.description,
            lab.record.delay_by or "none",
            float(lab.processes()),
            "; ".join(lab.faults()) or "up",
        )
        for lab in labs
    )
    show([Table(tuple(map(Column, titles)), rows)])
    for lab in labs:
        warn(f"warning: {lab.name}: {text}" for text in _lab_warnings(lab))
    next_line("paceline lab down --all" if len(labs) > 1 else "paceline lab down")


@command.command()
@name_option
@click.option("--all", "everything", is_flag=True, help="Tear down all labs.")
@json_option
def down(name: str, everything: bool, as_json: bool) -> None:
    """Tear down a lab: processes, namespaces, queues and control groups."""
    from paceline.lab import lab_down
    from paceline.lab.lab_record import recorded_names

    names = recorded_names() if everything else [name]
    ended = [each for each in names if lab_down(each)]
    if as_json:
        emit_json("lab_down", 1, {"ended": ended})
        return
    echo(f"Removed: {', '.join(ended)}" if ended else "No lab to remove.")
    next_line("paceline lab up --hosts 4 --link 1gbit")


def _lab_warnings(lab: "Lab") -> tuple[str, ...]:
    return lab.settings.warnings(os.cpu_count() or 1)


def _document(lab: "Lab") -> dict[str, Any]:
    settings = lab.settings
    return {
        "name": lab.name,
        "hosts": [{"name": host.name, "address": host.address} for host in lab.hosts],
        "link_bytes_per_second": settings.link,
        "delay_seconds": settings.delay,
        "speed_cores": settings.speed,
        "delayed_by": lab.record.delay_by,
        "made_at": lab.record.made_at,
        "faults": list(lab.faults()),
        "doubts": list(_lab_warnings(lab)),
    }
