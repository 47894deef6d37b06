"""Ranks that Slurm starts: as a batch job of each launch, or as a step of our allocation."""

import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch.agents import AgentLauncher
from paceline.launch.documents import MeetingPlace, agent_words
from paceline.launch.launcher import Detection, LaunchHost, LaunchRequest
from paceline.launch.prepared import PreparedLaunch, place_of
from paceline.launch.remote_shell import remote_trouble
from paceline.launch.slurm_commands import (
    LIMITS,
    RESULT,
    SCRIPT,
    SlurmError,
    slurm_trouble,
    told_by,
)
from paceline.units import parse_seconds

DIRECTIVES = {
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "reservation": "reservation",
    "exclude": "exclude",
    "gpus": "gpus-per-node",
}
"""Options that become directives of the script."""

STEP_OPTIONS = {"container": "container-image", "mounts": "container-mounts"}
"""Options of srun; containers are those of Pyxis."""

ARRAY_LAUNCH = "/array-launch"
DEFAULT_QUEUE = "24h"
REMEDY = "log in to a machine of the cluster; 'script/slurm-up' of the sources makes a private one"


class SlurmLauncher(AgentLauncher):
    """Submits a script and follows its job with squeue and scontrol; needs no accounting.

    A launch that lost a node is submitted again without that node. Inside an allocation (of
    salloc, or of a batch script that runs 'paceline measure') launches are steps of it. The time
    of a launch counts from when its job begins to run.
    """

    name = "slurm"
    takes_hosts = False
    options = {
        **{name: f"as in sbatch --{flag}" for name, flag in DIRECTIVES.items()},
        **{name: f"as in srun --{flag}, of Pyxis" for name, flag in STEP_OPTIONS.items()},
        "interface": "network interface that ranks meet and talk over",
        "queue": f"longest time in the queue [{DEFAULT_QUEUE}]",
        "requeue": "how often a launch that lost a node is submitted again [1]",
        "sbatch": "more words for sbatch, as in a shell",
        "srun": "more words for srun, as in a shell",
    }

    def detect(self) -> Detection:
        """Whether Slurm's commands are here and its controller answers."""
        missing = [name for name in ("sbatch", "srun", "squeue") if shutil.which(name) is None]
        if missing:
            return Detection(False, "", f"there is no {missing[0]} here: {REMEDY}")
        try:
            told_by("sinfo", "-h", "-o", "%P")
        except SlurmError as error:
            return Detection(False, "", f"{error}; {REMEDY}")
        return Detection(True, f"{len(self.hosts())} nodes")

    def hosts(self) -> tuple[LaunchHost, ...]:
        """The nodes of the allocation, of the partition, or of the whole cluster."""
        where = ["-p", self.settings.options["partition"]] if self._has("partition") else []
        if inside_allocation():
            where = ["-n", os.environ["SLURM_JOB_NODELIST"]]
        told = told_by("sinfo", "-h", "-N", *where, "-o", "%N %c")
        nodes = dict(line.split()[:2] for line in told.splitlines() if line.strip())
        return tuple(LaunchHost(name, int(cores)) for name, cores in nodes.items())

    def validate(self, nodes: int, processes: int) -> None:
        """There must be a Slurm, the partition, and so many nodes in it."""
        found = self.detect()
        if not found.works:
            raise EnvironmentUnusableError("the launcher 'slurm' cannot be used", found.remedy)
        known = sorted({name.rstrip("*") for name in told_by("sinfo", "-h", "-o", "%P").split()})
        wanted = self.settings.options.get("partition")
        if wanted is not None and not set(wanted.split(",")) <= set(known):
            raise InputError(f"Slurm has no partition '{wanted}'", f"it has {', '.join(known)}")
        self._queue_seconds()
        self._requeues()
        if nodes > len(self.hosts()):
            place = f"partition '{wanted}'" if wanted else "Slurm here"
            raise InputError(
                f"{nodes} nodes are wanted, and {place} has {len(self.hosts())}",
                "ask for fewer (-j), or name another partition",
            )

    def meeting_place(self, request: LaunchRequest) -> MeetingPlace:
        """Rank 0 finds it: nobody knows the nodes yet."""
        return MeetingPlace(port=request.port, interface=self.settings.options.get("interface", ""))

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """A step of the allocation, or what submits the script and follows its job."""
        step = self.step(request, agent)
        if inside_allocation():
            return [step]
        path = request.directory / SCRIPT
        path.write_text(self.script(request, f"exec {shlex.join(step)}"), encoding="utf-8")
        limits = {
            "queue_seconds": self._queue_seconds(),
            "timeout_seconds": request.timeout_seconds,
            "requeues": self._requeues(),
            "world_size": request.world_size,
            "sbatch": shlex.split(self.settings.options.get("sbatch", "")),
        }
        (request.directory / LIMITS).write_text(json.dumps(limits), encoding="utf-8")
        return [[sys.executable, "-P", "-m", "paceline.launch.slurm_job", str(request.directory)]]

    def step(self, request: LaunchRequest, agent: Sequence[str]) -> list[str]:
        """The srun of one agent per rank; one that fails ends the others."""
        chosen = self.settings.options
        return [
            *("srun", f"--nodes={request.nodes}", f"--ntasks={request.world_size}"),
            *(f"--ntasks-per-node={request.processes}", "--distribution=block"),
            *("--cpu-bind=none", "--kill-on-bad-exit=1", "--unbuffered"),
            *(f"--{flag}={chosen[name]}" for name, flag in STEP_OPTIONS.items() if name in chosen),
            *shlex.split(chosen.get("srun", "")),
            *agent,
        ]

    def script(self, request: LaunchRequest, lines: str, array: str = "") -> str:
        """The batch script of a launch, or of an ``array`` of prepared launches."""
        minutes = max(1, math.ceil((request.timeout_seconds + 60) / 60))
        directives = {
            "job-name": "paceline",
            "nodes": str(request.nodes),
            "ntasks-per-node": str(request.processes),
            "cpus-per-task": str(request.cores_per_rank or 1),
            "time": str(minutes),
            "output": str(request.directory / "slurm-%j.out"),
            **({"array": array} if array else {}),
            **_chosen(DIRECTIVES, self.settings.options),
        }
        head = [f"#SBATCH --{name}={value}" for name, value in directives.items()]
        return "\n".join(("#!/bin/sh", *head, "#SBATCH --requeue", lines, ""))

    def write_study(self, directory: Path, launches: Sequence[PreparedLaunch]) -> list[Path]:
        """One array per place: its launches run one after another, in the order of the study."""
        paths = []
        for place in dict.fromkeys(place_of(launch) for launch in launches):
            own = [one for one in launches if place_of(one) == place]
            numbers = ",".join(str(one.number) for one in own)
            request = replace(own[0].request, directory=directory)
            step = shlex.join(self.step(request, agent_words(Path(ARRAY_LAUNCH))))
            lines = [
                'launch=$(printf launch-%04d "$SLURM_ARRAY_TASK_ID")',
                f"exec {step.replace(ARRAY_LAUNCH, shlex.quote(str(directory)) + '/$launch')}",
            ]
            path = directory / f"array-{place}.sbatch"
            text = self.script(request, "\n".join(lines), f"{numbers}%1")
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths

    def is_settled(self) -> bool:
        """A job may be submitted again, so that only its end counts."""
        return inside_allocation()

    def longest_seconds(self, request: LaunchRequest) -> float:
        """The follower counts the time itself, from when a job runs."""
        if inside_allocation():
            return request.timeout_seconds
        starts = self._requeues() + 1
        return starts * (self._queue_seconds() + request.timeout_seconds) + 60

    def verdict(self, request: LaunchRequest) -> str:
        """What the follower of the job found."""
        return str(_result(request.directory).get("reason", ""))

    def restarts(self, request: LaunchRequest) -> int:
        """Jobs that lost a node, queued again by Slurm or by the follower."""
        return int(_result(request.directory).get("restarts", 0))

    def trouble(self, request: LaunchRequest, command: int, log: str) -> str:
        """What srun says, here or in the output of the job."""
        outputs = [one.read_text(errors="replace") for one in _outputs(request.directory)]
        told = "\n".join([log, *outputs])
        return slurm_trouble(told) or remote_trouble(told)

    def _has(self, name: str) -> bool:
        return name in self.settings.options

    def _queue_seconds(self) -> float:
        return parse_seconds(self.settings.options.get("queue", DEFAULT_QUEUE))

    def _requeues(self) -> int:
        text = self.settings.options.get("requeue", "1")
        if not text.isdigit():
            raise InputError(f"requeue is '{text}', which is no number", "write requeue=1")
        return int(text)


def inside_allocation() -> bool:
    """Whether we run in an allocation of Slurm."""
    return "SLURM_JOB_ID" in os.environ and "SLURM_JOB_NODELIST" in os.environ


def _chosen(names: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    return {flag: options[name] for name, flag in names.items() if name in options}


def _result(directory: Path) -> dict[str, Any]:
    """What the follower left; nothing inside an allocation."""
    path = directory / RESULT
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _outputs(directory: Path) -> list[Path]:
    return sorted(directory.glob("slurm-*.out"))
