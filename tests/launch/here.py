"""A launcher with two hosts that are both this machine, for tests of the shared code."""

from paceline.launch import Detection, LaunchHost
from paceline.launch.hosts import HostsLauncher


class HereLauncher(HostsLauncher):
    name = "here"

    def detect(self):
        return Detection(True, "here")

    def hosts(self):
        return tuple(LaunchHost(name, 2) for name in self.settings.hosts or ("one", "two"))

    def on_host(self, host, command):
        return list(command)

    def address(self, host):
        return "127.0.0.1"
