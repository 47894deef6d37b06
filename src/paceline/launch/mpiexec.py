"""Ranks that MPI starts: Open MPI 4 and 5, MPICH and what descends from it."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import EnvironmentUnusableError
from paceline.launch.engine import EngineLauncher
from paceline.launch.launcher import Detection, LaunchRequest
from paceline.launch.local import is_this_machine
from paceline.launch.onhost.addresses import address_towards
from paceline.launch.remote_shell import OPTIONS, remote_trouble, ssh_words

PROGRAM = "mpiexec"
REMEDY = "install MPI; environments of frameworks that need it bring one of their own"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
REMOTE_SHELL = "remote-shell"
_MESSAGES = (
    (r"There are not enough slots available", "MPI counts fewer slots than ranks"),
    (r"(?:unable to|could not) (?:find|launch)[^\n]*executable", "MPI cannot run the agent"),
    (r"HYDU_sock_get_iface_ip[^\n]*interface (?P<what>\S+)", "no interface {what}"),
)


class MpiexecLauncher(EngineLauncher):
    """Starts ranks with the mpiexec beside the rank's interpreter, else with that of the path."""

    name = "mpiexec"
    options = {
        **OPTIONS,
        "mpiexec": "path of the program [default: beside the interpreter, else on the path]",
        "interface": "network interface that MPI and ranks use",
        "arguments": "more words for mpiexec, as in a shell",
    }

    def detect(self) -> Detection:
        """Whether an mpiexec is on the path."""
        found = shutil.which(PROGRAM)
        return Detection(found is not None, found or "", "" if found else REMEDY)

    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """``mpiexec -n N``, and where there are other machines, in the words of that MPI."""
        program = self._program(request)
        words = [program, "-n", str(request.world_size)]
        family, more = mpi_family(program), shlex.split(self.settings.options.get("arguments", ""))
        if family.startswith("Open MPI"):
            words = ["env", *(f"{name}={value}" for name, value in AS_ROOT.items()), *words]
            words += ["--bind-to", "none"]
        hosts = self.settings.hosts[: request.nodes]
        interface = self.settings.options.get("interface")
        if all(is_this_machine(host) for host in hosts) and not interface:
            here = {"Open MPI 4": ["--oversubscribe"], "Open MPI 5": ["--map-by", ":OVERSUBSCRIBE"]}
            return [*words, *here.get(family, []), *more]
        shell = str(self._write_shell(request.directory))
        each = request.processes
        slots = ",".join(f"{host}:{each}" for host in hosts)
        between = {
            "Open MPI 4": [
                *("--host", slots, "--map-by", f"ppr:{each}:node", "--oversubscribe"),
                *("--mca", "plm_rsh_agent", shell),
                *_each("--mca", ("btl_tcp_if_include", "oob_tcp_if_include"), interface),
            ],
            "Open MPI 5": [
                *("--host", slots, "--map-by", f"ppr:{each}:node:OVERSUBSCRIBE"),
                *("--prtemca", "plm_ssh_agent", shell),
                *_each("--mca", ("btl_tcp_if_include",), interface),
                *_each("--prtemca", ("prte_if_include",), interface),
            ],
        }.get(family) or [
            *("-hosts", ",".join(hosts), "-ppn", str(each), "-launcher", "ssh"),
            *("-launcher-exec", shell, *_our_address(hosts)),
            *(("-iface", interface) if interface else ()),
        ]
        return [*words, *between, *more]

    def trouble(self, request: LaunchRequest, command: int, log: str) -> str:
        """What MPI or the ssh below it says of a host."""
        for pattern, words in _MESSAGES:
            found = re.search(pattern, log)
            if found:
                return words.format(what=found.groupdict().get("what", ""))
        return remote_trouble(log)

    def _program(self, request: LaunchRequest) -> str:
        beside = Path(request.command(0)[0]).parent / PROGRAM
        wanted = self.settings.options.get("mpiexec")
        found = shutil.which(wanted or (str(beside) if beside.exists() else PROGRAM))
        if found is None:
            raise EnvironmentUnusableError(
                f"the launcher 'mpiexec' needs the program {wanted or PROGRAM}, which is not here",
                REMEDY,
            )
        return found

    def _write_shell(self, directory: Path) -> Path:
        """A program that takes a host and a command as ssh does, with the user's options."""
        path = directory / REMOTE_SHELL
        words = shlex.join(ssh_words("HOST", self.settings.options)[:-2])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        path.chmod(0o700)
        return path


def mpi_family(program: str) -> str:
    """``Open MPI 4``, ``Open MPI 5`` or ``MPICH``, by what the program says of itself."""
    try:
        told = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False,
            env={**os.environ, **AS_ROOT},
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return "MPICH"
    version = re.search(r"\((?:Open MPI|OpenRTE)\) (\d+)|(prte)", told)
    if version is None:
        return "MPICH"
    return "Open MPI 4" if version[1] and int(version[1]) < 5 else "Open MPI 5"


def _our_address(hosts: Sequence[str]) -> list[str]:
    """Where the daemons of MPICH find us: our name may mean loopback there."""
    try:
        return ["-localhost", address_towards(hosts[0])]
    except OSError:  # a host that nobody knows, which is told when it is reached for
        return []


def _each(flag: str, names: Sequence[str], value: str | None) -> list[str]:
    return [word for name in names for word in (flag, name, value)] if value else []
