"""Base of launchers that start one agent on each named host."""

from abc import abstractmethod
from collections.abc import Sequence

from paceline.launch.agents import AgentLauncher
from paceline.launch.launch_files import RendezvousAddress
from paceline.launch.launcher import LaunchRequest


class HostsLauncher(AgentLauncher):
    """A launcher that runs one agent on each of its hosts, in order."""

    @abstractmethod
    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """Return a command of this machine that runs ``command`` on ``host``.

        It must forward standard input: the agent ends when that closes.
        """

    def address(self, host: str) -> str:
        """Return the address of ``host``; if empty, the agent of rank 0 chooses its own."""
        return ""

    def host_names(self, request: LaunchRequest) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts()[: request.nodes])

    def rendezvous_address(self, request: LaunchRequest) -> RendezvousAddress:
        address = self.address(self.host_names(request)[0])
        return RendezvousAddress(
            address, request.port, interface=self.settings.options.get("interface", "")
        )

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        return [
            self.on_host(host, self.node_command(request, node, agent))
            for node, host in enumerate(self.host_names(request))
        ]

    def node_command(self, request: LaunchRequest, node: int, agent: Sequence[str]) -> list[str]:
        python = self.settings.options.get("python")
        return [python or agent[0], *agent[1:], "--node", str(node)]
