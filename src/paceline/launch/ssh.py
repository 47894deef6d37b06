"""Ranks on machines that ssh reaches."""

import shutil
import sys
from collections.abc import Sequence

from paceline.errors import InputError
from paceline.launch.documents import MeetingPlace
from paceline.launch.hosts import HostsLauncher
from paceline.launch.launcher import Detection, LaunchExit, LaunchRequest
from paceline.launch.onhost.agent import PYTHON
from paceline.launch.remote_shell import OPTIONS, over_ssh, remote_trouble
from paceline.launch.sending import Sender, movable

COPIES = ("nothing", "launch", "environment")


class SshLauncher(HostsLauncher):
    """Logs in to each of the hosts and runs an agent there; nothing but Python need be installed.

    The hosts must see the directory of the launch and the interpreter of the framework, or have
    them copied.
    """

    name = "ssh"
    options = {
        **OPTIONS,
        "interface": "network interface that ranks meet and talk over",
        "rank_python": "path of the framework's Python on the hosts [default: the same as here]",
        "copy": "what hosts do not share and is sent there: nothing, launch, or environment "
        "(also the framework's) [nothing]",
        "directory": "where on the hosts launches are sent to [/tmp]",
    }
    sender: Sender | None = None

    def detect(self) -> Detection:
        """Whether an ssh client is here."""
        found = shutil.which("ssh")
        remedy = "" if found else "install an OpenSSH client"
        return Detection(found is not None, found or "", remedy)

    def validate(self, nodes: int, processes: int) -> None:
        """What is to be copied must be one of the choices."""
        if self._copies not in COPIES:
            raise InputError(
                f"copy of '{self._copies}' is impossible", f"choose one of {', '.join(COPIES)}"
            )
        super().validate(nodes, processes)

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Write every file of the launch; the commands that would start it."""
        if self._copies != COPIES[0] and self.sender is None:
            raise InputError(
                "a launch that is copied cannot be written for later",
                "leave copy out, and move the directory that --dry-run writes yourself",
            )
        return super().prepare(request)

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the commands to their end; where nothing is shared, send files before and fetch."""
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

    def meeting_place(self, request: LaunchRequest) -> MeetingPlace:
        """Where the first host says, if nobody can read it in a directory of all."""
        return super().meeting_place(request) if not self.sender else self.sender.meeting_place()

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """One agent per node, in the directory as its host sees it."""
        if self.sender is None:
            return super().commands(request, agent)
        self.sender.send(request)
        here, there = str(request.directory), self.sender.place(request)
        return super().commands(request, [word.replace(here, there) for word in agent])

    def collect(self, request: LaunchRequest) -> None:
        """Fetch what ranks left on hosts that share nothing."""
        if self.sender is not None:
            self.sender.fetch(request)

    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """The command over ssh."""
        own = self.settings.options.get("rank_python")
        named = ["env", f"{PYTHON}={own}"] if own else []
        return over_ssh(host, self.settings.options, [*named, *command])

    def trouble(self, request: LaunchRequest, command: int, log: str) -> str:
        """What ssh says of the host of that node."""
        return remote_trouble(log, self.host_names(request)[command])

    @property
    def _copies(self) -> str:
        return self.settings.options.get("copy", COPIES[0])
