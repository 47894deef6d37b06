"""Ranks on machines that ssh reaches."""

import shutil
from collections.abc import Sequence

from paceline.launch.hosts import HostsLauncher
from paceline.launch.launcher import Detection, LaunchRequest
from paceline.launch.remote_shell import OPTIONS, over_ssh, remote_trouble


class SshLauncher(HostsLauncher):
    """Logs in to each of the hosts and runs an agent there; nothing but Python need be installed.

    The hosts must see the directory of the launch, and the interpreter of the framework.
    """

    name = "ssh"
    options = {**OPTIONS, "interface": "network interface that ranks meet and talk over"}

    def detect(self) -> Detection:
        """Whether an ssh client is here."""
        found = shutil.which("ssh")
        remedy = "" if found else "install an OpenSSH client"
        return Detection(found is not None, found or "", remedy)

    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """The command over ssh."""
        return over_ssh(host, self.settings.options, command)

    def trouble(self, request: LaunchRequest, command: int, log: str) -> str:
        """What ssh says of the host of that node."""
        return remote_trouble(log, self.host_names(request)[command])
