"""Ranks on named machines, one agent on each."""

from abc import abstractmethod
from collections.abc import Sequence

from paceline.launch.agents import AgentLauncher
from paceline.launch.documents import MeetingPlace
from paceline.launch.launcher import LaunchRequest


class HostsLauncher(AgentLauncher):
    """A launcher that runs one agent on each of the machines it knows, in their order."""

    @abstractmethod
    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """A command of this machine that runs ``command`` on ``host``.

        Standard input must be passed on: the agent ends when it closes.
        """

    def address(self, host: str) -> str:
        """The address by which others reach ``host``; empty: rank 0's agent finds its own."""
        return ""

    def host_names(self, request: LaunchRequest) -> tuple[str, ...]:
        """The first of the hosts."""
        return tuple(host.name for host in self.hosts()[: request.nodes])

    def meeting_place(self, request: LaunchRequest) -> MeetingPlace:
        """At the address of the first host."""
        address = self.address(self.host_names(request)[0])
        return MeetingPlace(
            address, request.port, interface=self.settings.options.get("interface", "")
        )

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """One agent per node."""
        return [
            self.on_host(host, self.node_command(request, node, agent))
            for node, host in enumerate(self.host_names(request))
        ]

    def node_command(self, request: LaunchRequest, node: int, agent: Sequence[str]) -> list[str]:
        """What runs on the machine of a node: its agent."""
        python = self.settings.options.get("python")
        return [python or agent[0], *agent[1:], "--node", str(node)]
