"""Prepared launches (``--dry-run``): scripts that a user, Slurm or a cloud runs later."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.launch.launcher import LaunchRequest
from paceline.launch.onhost.agent import PYTHON


@dataclass(frozen=True)
class PreparedLaunch:
    """One launch of a prepared study, and the commands that start it."""

    number: int
    request: LaunchRequest
    commands: tuple[tuple[str, ...], ...]

    @property
    def directory(self) -> Path:
        return self.request.directory


def launch_name(number: int) -> str:
    return f"launch-{number:04d}"


def start_lines(launches: Sequence[PreparedLaunch]) -> str:
    """Return a shell script that runs launches in order, the commands of each in parallel."""
    lines = [
        "#!/bin/sh",
        "# Runs all launches of the study; read the results with 'paceline measure --collect'.",
    ]
    for launch in launches:
        lines.append(f"# {launch.directory.name}: {topology_of(launch)}")
        if len(launch.commands) == 1:
            lines.append(shlex.join(launch.commands[0]))
        else:
            lines += [f"{shlex.join(command)} &" for command in launch.commands]
            lines.append("wait")
    return "\n".join((*lines, ""))


def node_lines(rank: str, nodes: str) -> str:
    """Return shell lines that run all launches in order on one node of a cluster.

    ``rank`` and ``nodes`` name the variables with the number of this node and of all nodes.
    """
    return (
        f'export RANK="${rank}" WORLD_SIZE="${nodes}"\n'
        'for launch in "$STUDY"/launch-*; do\n'
        f'  "${{{PYTHON}:-python3}}" -I -S "$launch/agent" "$launch"\n'
        "done\n"
    )


def topology_of(launch: PreparedLaunch) -> str:
    return f"{launch.request.nodes}x{launch.request.processes}"
