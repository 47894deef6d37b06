"""Starts ranks with mpiexec of Open MPI 4 and 5, MPICH or its derivatives."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import EnvironmentUnusableError
from paceline.launch.external import EngineLauncher
from paceline.launch.launcher import Detection, LaunchRequest, shell_words
from paceline.launch.local import is_this_machine
from paceline.launch.onhost.addresses import address_towards
from paceline.launch.remote_shell import OPTIONS, ssh_command, ssh_failure_cause

PROGRAM = "mpiexec"
REMEDY = "install MPI; environments of frameworks that need MPI include it"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
REMOTE_SHELL = "remote-shell"
_MESSAGES = (
    (r"There are not enough slots available", "MPI has fewer slots than ranks"),
    (r"(?:unable to|could not) (?:find|launch)[^\n]*executable", "MPI cannot run the agent"),
    (r"HYDU_sock_get_iface_ip[^\n]*interface (?P<what>\S+)", "no interface {what}"),
)


class MpiexecLauncher(EngineLauncher):
    """Starts ranks with the mpiexec next to the rank's interpreter, else that on PATH."""

    name = "mpiexec"
    options = {
        **OPTIONS,
        "mpiexec": "path of the program [default: next to the interpreter, else on PATH]",
        "interface": "network interface of MPI and of the ranks",
        "arguments": "additional arguments of mpiexec, quoted as in a shell",
    }

    def detect(self) -> Detection:
        found = shutil.which(PROGRAM)
        return Detection(found is not None, found or "", "" if found else REMEDY)

    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """Return ``mpiexec -n N`` with the options of that MPI for remote hosts."""
        program = self._program(request)
        command = [program, "-n", str(request.world_size)]
        family = mpi_family(program)
        more = shell_words("arguments", self.settings.options.get("arguments", ""))
        if family.startswith("Open MPI"):
            command = ["env", *(f"{name}={value}" for name, value in AS_ROOT.items()), *command]
            command += ["--bind-to", "none"]  # the agent pins its rank
        hosts = self.settings.hosts[: request.nodes]
        interface = self.settings.options.get("interface")
        if all(is_this_machine(host) for host in hosts) and not interface:
            here = {"Open MPI 4": ["--oversubscribe"], "Open MPI 5": ["--map-by", ":OVERSUBSCRIBE"]}
            return [*command, *here.get(family, []), *more]
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
        return [*command, *between, *more]

    def failure_cause(self, request: LaunchRequest, command: int, log: str) -> str:
        for pattern, cause in _MESSAGES:
            found = re.search(pattern, log)
            if found:
                return cause.format(what=found.groupdict().get("what", ""))
        return ssh_failure_cause(log)

    def _program(self, request: LaunchRequest) -> str:
        neighbour = Path(request.command(0)[0]).parent / PROGRAM
        wanted = self.settings.options.get("mpiexec")
        found = shutil.which(wanted or (str(neighbour) if neighbour.exists() else PROGRAM))
        if found is None:
            raise EnvironmentUnusableError(
                f"the launcher 'mpiexec' did not find the program {wanted or PROGRAM}",
                REMEDY,
            )
        return found

    def _write_shell(self, directory: Path) -> Path:
        """Write a program that is called like ssh and adds the user's options."""
        path = directory / REMOTE_SHELL
        ssh = shlex.join(ssh_command("HOST", self.settings.options)[:-2])
        path.write_text(f'#!/bin/sh\nexec {ssh} "$@"\n', encoding="utf-8")
        path.chmod(0o700)
        return path


def mpi_family(program: str) -> str:
    """Return ``Open MPI 4``, ``Open MPI 5`` or ``MPICH``, from ``--version``."""
    try:
        output = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False,
            env={**os.environ, **AS_ROOT},
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return "MPICH"
    version = re.search(r"\((?:Open MPI|OpenRTE)\) (\d+)|(prte)", output)
    if version is None:
        return "MPICH"
    return "Open MPI 4" if version[1] and int(version[1]) < 5 else "Open MPI 5"


def _our_address(hosts: Sequence[str]) -> list[str]:
    """Set the address for MPICH's daemons: the local host name may resolve to loopback there."""
    try:
        return ["-localhost", address_towards(hosts[0])]
    except OSError:  # an unknown host; ssh reports it later
        return []


def _each(flag: str, names: Sequence[str], value: str | None) -> list[str]:
    return [word for name in names for word in (flag, name, value)] if value else []
