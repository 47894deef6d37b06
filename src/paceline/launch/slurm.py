"""Starts ranks with Slurm: one batch job per launch, or a step of the current allocation."""

import json
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch.agents import AgentLauncher
from paceline.launch.launch_files import RendezvousAddress, agent_command
from paceline.launch.launch_script import PreparedLaunch, topology_of
from paceline.launch.launcher import Detection, LaunchExit, LaunchHost, LaunchRequest, shell_words
from paceline.launch.onhost.agent import PYTHON
from paceline.launch.remote_shell import ssh_failure_cause
from paceline.launch.slurm_commands import (
    LIMITS,
    REMEDY,
    RESULT,
    SCRIPT,
    SlurmError,
    run_slurm,
    slurm_failure_cause,
)
from paceline.units import parse_seconds, plural

DIRECTIVES = {
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "reservation": "reservation",
    "exclude": "exclude",
    "gpus": "gpus-per-node",
    "memory": "mem",
    "signal": "signal",
}
"""Options that become #SBATCH directives."""

STEP_OPTIONS = {"container": "container-image", "mounts": "container-mounts"}
"""Options of srun; containers need the Pyxis plug-in."""

UNUSABLE_STATES = ("down", "drain", "drng", "fail", "maint", "unk", "inval", "pow", "reboot")
"""Beginnings of sinfo's compact states (%t) of nodes that start no jobs."""

ARRAY_LAUNCH = "/array-launch"
DEFAULT_QUEUE = "24h"


class SlurmLauncher(AgentLauncher):
    """Submits a batch script and polls its job with squeue and scontrol; needs no accounting.

    A launch that lost a node is submitted again without that node. Inside an allocation (from
    salloc, or in a batch script that runs 'paceline measure') launches are job steps. The timeout
    of a launch starts when its job starts to run.
    """

    name = "slurm"
    takes_hosts = False
    options = {
        **{name: f"as in sbatch --{flag}" for name, flag in DIRECTIVES.items()},
        **{name: f"as in srun --{flag} (needs Pyxis)" for name, flag in STEP_OPTIONS.items()},
        "exclusive": "yes: no other jobs on the nodes",
        "modules": "environment modules to load, separated by blanks",
        "python": "path of Python in the container [python3]",
        "interface": "network interface of the ranks",
        "queue": f"maximum time in the queue [{DEFAULT_QUEUE}]",
        "requeue": "how often to resubmit a launch that lost a node [1]",
        "sbatch": "additional arguments of sbatch, quoted as in a shell",
        "srun": "additional arguments of srun, quoted as in a shell",
    }

    def detect(self) -> Detection:
        missing = [name for name in ("sbatch", "srun", "squeue") if shutil.which(name) is None]
        if missing:
            return Detection(False, "", f"{missing[0]} is not installed; {REMEDY}")
        try:
            run_slurm("sinfo", "-h", "-o", "%P")
        except SlurmError as error:
            return Detection(False, "", f"{error}; {REMEDY}")
        return Detection(True, plural(len(self.hosts()), "node"))

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Return the usable nodes of the allocation, the partition or the cluster.

        Nodes that are down, drained or do not respond (``*``) are left out.
        """
        where = ["-p", self._partition] if self._partition else []
        if inside_allocation():
            where = ["-n", os.environ["SLURM_JOB_NODELIST"]]
        output = run_slurm("sinfo", "-h", "-N", *where, "-o", "%N %c %t")
        nodes: dict[str, int | None] = {}
        for line in output.splitlines():
            name, cores, state = (*line.split(), "", "", "")[:3]
            if name and not (state.endswith("*") or state.startswith(UNUSABLE_STATES)):
                nodes[name] = int(cores) if re.fullmatch("[0-9]{1,6}", cores) else None
        return tuple(LaunchHost(name, cores) for name, cores in nodes.items())

    def validate(self, nodes: int, processes: int) -> None:
        found = self.detect()
        if not found.works:
            raise EnvironmentUnusableError("the launcher 'slurm' is not available", found.remedy)
        known = sorted({name.rstrip("*") for name in run_slurm("sinfo", "-h", "-o", "%P").split()})
        wanted = self._partition
        if wanted and not set(wanted.split(",")) <= set(known):
            raise InputError(
                f"Slurm has no partition '{wanted}'", f"choose one of {', '.join(known)}"
            )
        self._queue_seconds()
        self._requeues()
        if nodes > len(self.hosts()):
            where = f"partition '{wanted}'" if wanted else "this Slurm cluster"
            raise InputError(
                f"cannot start {nodes} nodes: {where} has {len(self.hosts())}",
                "use fewer nodes (-j) or another partition",
            )

    def rendezvous_address(self, request: LaunchRequest) -> RendezvousAddress:
        """Leave the address to rank 0: the nodes are not known yet."""
        return RendezvousAddress(
            port=request.port, interface=self.settings.options.get("interface", "")
        )

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """Return a job step, or the command that submits the script and polls its job."""
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
        }
        (request.directory / LIMITS).write_text(json.dumps(limits), encoding="utf-8")
        return [[sys.executable, "-P", "-m", "paceline.launch.slurm_job", str(request.directory)]]

    def step(self, request: LaunchRequest, agent: Sequence[str]) -> list[str]:
        """Return the srun of one agent per rank; a failing rank ends the others."""
        chosen = self.settings.options
        return [
            *("srun", f"--nodes={request.nodes}", f"--ntasks={request.world_size}"),
            *(f"--ntasks-per-node={request.processes}", "--distribution=block"),
            *("--cpu-bind=none", "--kill-on-bad-exit=1", "--unbuffered"),
            *self._step_options(request.directory),
            *shell_words("srun", chosen.get("srun", "")),
            *self._in_container(agent),
        ]

    def _in_container(self, agent: Sequence[str]) -> list[str]:
        """Return the agent with the Python of the container, if any."""
        chosen = self.settings.options
        if "container" not in chosen:
            return list(agent)
        python = chosen.get("python", "python3")
        return ["env", f"{PYTHON}={python}", python, *agent[1:]]

    def _step_options(self, directory: Path) -> list[str]:
        """Return options of srun; a container sees the directory of the launch."""
        chosen = _chosen(STEP_OPTIONS, self.settings.options)
        if "container-image" in chosen:
            mounts = [chosen.get("container-mounts", ""), f"{directory}:{directory}"]
            chosen["container-mounts"] = ",".join(filter(None, mounts))
        return [f"--{flag}={value}" for flag, value in chosen.items()]

    def script(self, request: LaunchRequest, lines: str, array: str = "") -> str:
        """Return the batch script of a launch, or of an ``array`` of prepared launches."""
        chosen = self.settings.options
        minutes = max(1, math.ceil((request.timeout_seconds + 60) / 60))
        directives = {
            "job-name": "paceline",
            "nodes": str(request.nodes),
            "ntasks-per-node": str(request.processes),
            "cpus-per-task": str(request.cores_per_rank or 1),
            "time": str(minutes),
            "output": f"{request.directory}/".replace("%", "%%") + "slurm-%j.out",
            **({"array": array} if array else {}),
            **_chosen(DIRECTIVES, chosen),
        }
        head = [f"#SBATCH --{name}={_quoted(value)}" for name, value in directives.items()]
        if chosen.get("exclusive", "no") != "no":
            head.append("#SBATCH --exclusive")
        head += ["#SBATCH --requeue", *_as_directives(chosen.get("sbatch", ""))]
        modules = chosen.get("modules", "").split()
        if not modules:
            return "\n".join(("#!/bin/sh", *head, lines, ""))
        # Only login shells define `module` on most clusters.
        return "\n".join(("#!/bin/bash -l", *head, f"module load {shlex.join(modules)}", lines, ""))

    def write_study(self, directory: Path, launches: Sequence[PreparedLaunch]) -> list[Path]:
        """Write one array per topology, and a script that submits them in the order of the study.

        Each submission is a part of an array that waits for the one before: launches of different
        topologies never run at the same time.
        """
        paths = [write_submission(directory, launches)]
        for topology in dict.fromkeys(topology_of(launch) for launch in launches):
            own = [launch for launch in launches if topology_of(launch) == topology]
            numbers = ",".join(str(launch.number) for launch in own)
            request = replace(own[0].request, directory=directory)
            step = shlex.join(self.step(request, agent_command(Path(ARRAY_LAUNCH))))
            lines = [
                'launch=$(printf launch-%04d "$SLURM_ARRAY_TASK_ID")',
                f"exec {step.replace(ARRAY_LAUNCH, shlex.quote(str(directory)) + '/$launch')}",
            ]
            path = directory / f"array-{topology}.sbatch"
            text = self.script(request, "\n".join(lines), f"{numbers}%1")
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths

    def is_settled(self) -> bool:
        """Return False for batch jobs: one may be resubmitted, so only its end counts."""
        return inside_allocation()

    def longest_seconds(self, request: LaunchRequest) -> float:
        """Return an upper bound: `slurm_job` enforces the timeout from the start of a job."""
        if inside_allocation():
            return request.timeout_seconds
        starts = self._requeues() + 1
        return starts * (self._queue_seconds() + request.timeout_seconds) + 60

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run a launch; a job that somebody cancels ends the study, as Ctrl-C does."""
        exited = super().launch(request)
        if _result(request.directory).get("cancelled"):
            raise KeyboardInterrupt(exited.reason or "the Slurm job was cancelled")
        return exited

    def end_reason(self, request: LaunchRequest) -> str:
        return str(_result(request.directory).get("reason", ""))

    def restarts(self, request: LaunchRequest) -> int:
        """Return the number of restarts after a lost node, by Slurm or by `slurm_job`."""
        return int(_result(request.directory).get("restarts", 0))

    def failure_cause(self, request: LaunchRequest, command: int, log: str) -> str:
        outputs = [output.read_text(errors="replace") for output in _outputs(request.directory)]
        text = "\n".join([log, *outputs])
        return slurm_failure_cause(text) or ssh_failure_cause(text)

    @property
    def _partition(self) -> str:
        """The partition of the options, else sbatch's own default for this user."""
        return self.settings.options.get("partition") or os.environ.get("SBATCH_PARTITION", "")

    def _queue_seconds(self) -> float:
        return parse_seconds(self.settings.options.get("queue", DEFAULT_QUEUE))

    def _requeues(self) -> int:
        text = self.settings.options.get("requeue", "1")
        if not re.fullmatch("[0-9]{1,6}", text):
            raise InputError(
                f"requeue must be an integer (got '{text:.40}')", "for example requeue=1"
            )
        return int(text)


def inside_allocation() -> bool:
    return "SLURM_JOB_ID" in os.environ and "SLURM_JOB_NODELIST" in os.environ


def _chosen(names: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    return {flag: options[name] for name, flag in names.items() if name in options}


def write_submission(directory: Path, launches: Sequence[PreparedLaunch]) -> Path:
    """Write ``submit.sh``: runs of launches with one topology, each after the one before."""
    lines = ["#!/bin/sh", "# Submits the launches in the order of the study.", "set -e", "wait="]
    for topology, run in groupby(launches, topology_of):
        numbers = ",".join(str(launch.number) for launch in run)
        script = shlex.quote(str(directory / f"array-{topology}.sbatch"))
        lines += [
            f"job=$(sbatch --parsable $wait --array={numbers}%1 {script})",
            'wait="--dependency=afterany:${job%%;*}"',
        ]
    path = directory / "submit.sh"
    path.write_text("\n".join((*lines, 'echo "last job: ${job%%;*}"', "")), encoding="utf-8")
    path.chmod(0o755)
    return path


def _as_directives(text: str) -> list[str]:
    """Return additional arguments of sbatch as directives, one for each option."""
    options: list[list[str]] = []
    for word in shell_words("sbatch", text):
        if word.startswith("-") or not options:
            name, equals, value = word.partition("=")
            options.append([f"{name}={_quoted(value)}" if equals else name])
        else:
            options[-1].append(_quoted(word))
    return [f"#SBATCH {' '.join(words)}" for words in options]


def _quoted(value: str) -> str:
    """Quote the value of a directive for sbatch, where only a backslash escapes.

    sbatch ends a value at a blank outside quotes, even after a backslash, and at a ``#``.
    """
    if not re.search(r"""[\s"'#\\]""", value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _result(directory: Path) -> dict[str, Any]:
    path = directory / RESULT
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _outputs(directory: Path) -> list[Path]:
    return sorted(directory.glob("slurm-*.out"))
