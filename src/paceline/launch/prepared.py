"""Launches that are written and not started: the files that a user, Slurm or a cloud then runs."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.launch.launcher import LaunchRequest
from paceline.launch.onhost.agent import PYTHON


@dataclass(frozen=True)
class PreparedLaunch:
    """One launch of a prepared study, and the commands of the launcher that would start it."""

    number: int
    request: LaunchRequest
    commands: tuple[tuple[str, ...], ...]

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self.request.directory


def launch_name(number: int) -> str:
    """The folder of a prepared launch in that of its study."""
    return f"launch-{number:04d}"


def start_lines(launches: Sequence[PreparedLaunch]) -> str:
    """A shell script that runs launches one after another, the commands of each together."""
    lines = [
        "#!/bin/sh",
        "# Runs every launch of the study; 'paceline measure --collect' reads it.",
    ]
    for launch in launches:
        lines.append(f"# {launch.directory.name}: {place_of(launch)}")
        if len(launch.commands) == 1:
            lines.append(shlex.join(launch.commands[0]))
        else:
            lines += [f"{shlex.join(words)} &" for words in launch.commands]
            lines.append("wait")
    return "\n".join((*lines, ""))


def node_lines(rank: str, nodes: str) -> str:
    """Shell lines for each node of an engine: all launches in turn, beside the other nodes.

    ``rank`` and ``nodes`` are where the engine says which node this is, of how many.
    """
    return (
        f'export RANK="${rank}" WORLD_SIZE="${nodes}"\n'
        'for launch in "$STUDY"/launch-*; do\n'
        f'  "${{{PYTHON}:-python3}}" -I -S "$launch/agent" "$launch"\n'
        "done\n"
    )


def place_of(launch: PreparedLaunch) -> str:
    """``2x4``."""
    return f"{launch.request.nodes}x{launch.request.processes}"
