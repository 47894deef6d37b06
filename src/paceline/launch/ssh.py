"""Starts ranks on other hosts over ssh."""

import shutil
import sys
from collections.abc import Sequence

from paceline.errors import InputError
from paceline.launch.file_transfer import Sender, movable
from paceline.launch.hosts import HostsLauncher
from paceline.launch.launch_files import RendezvousAddress
from paceline.launch.launcher import Detection, LaunchExit, LaunchRequest
from paceline.launch.onhost.agent import PYTHON
from paceline.launch.remote_shell import OPTIONS, over_ssh, ssh_failure_cause

COPIES = ("nothing", "launch", "environment")


class SshLauncher(HostsLauncher):
    """Logs in to each host and runs an agent there; hosts only need Python and the framework.

    The hosts must see the directory of the launch and the interpreter of the framework, or the
    option ``copy`` copies them.
    """

    name = "ssh"
    options = {
        **OPTIONS,
        "interface": "network interface of the ranks",
        "rank_python": "path of the framework's Python on the hosts [default: same path as here]",
        "copy": "files to copy to the hosts: nothing, launch, or environment "
        "(the launch and the framework's virtual environment) [nothing]",
        "directory": "directory on the hosts for copied launches [/tmp]",
    }
    sender: Sender | None = None

    def detect(self) -> Detection:
        found = shutil.which("ssh")
        remedy = "" if found else "install an OpenSSH client"
        return Detection(found is not None, found or "", remedy)

    def validate(self, nodes: int, processes: int) -> None:
        if self._copies not in COPIES:
            raise InputError(
                f"invalid value '{self._copies}' of copy", f"choose one of {', '.join(COPIES)}"
            )
        super().validate(nodes, processes)

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        if self._copies != COPIES[0] and self.sender is None:
            raise InputError(
                "--dry-run does not support the launcher option copy",
                "omit copy, and copy the directory that --dry-run writes yourself",
            )
        return super().prepare(request)

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the commands to their end; with ``copy``, copy files before and fetch them after."""
        if self._copies == COPIES[0]:
            return super().launch(request)
        python = self.settings.options.get("python", sys.executable)
        self.sender = Sender(self.host_names(request), self.settings.options, python)
        try:
            if self._copies == COPIES[2]:
                self.sender.send_environment(request.command(0)[0])
            return super().launch(movable(request))
        finally:
            self.sender.remove()
            self.sender = None

    def rendezvous_address(self, request: LaunchRequest) -> RendezvousAddress:
        """Query the first host if there is no shared directory for rank 0 to publish it."""
        return (
            super().rendezvous_address(request)
            if not self.sender
            else self.sender.rendezvous_address()
        )

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """Return one agent per node, with the directory of the launch on its host."""
        if self.sender is None:
            return super().commands(request, agent)
        self.sender.send(request)
        local, remote = str(request.directory), self.sender.remote_directory(request)
        return super().commands(request, [word.replace(local, remote) for word in agent])

    def collect(self, request: LaunchRequest) -> None:
        if self.sender is not None:
            self.sender.fetch(request)

    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        own = self.settings.options.get("rank_python")
        named = ["env", f"{PYTHON}={own}"] if own else []
        return over_ssh(host, self.settings.options, [*named, *command])

    def failure_cause(self, request: LaunchRequest, command: int, log: str) -> str:
        return ssh_failure_cause(log, self.host_names(request)[command])

    @property
    def _copies(self) -> str:
        return self.settings.options.get("copy", COPIES[0])
