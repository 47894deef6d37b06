"""Ranks on named machines, one agent on each, reached by words before a command."""

import shlex
from abc import abstractmethod
from collections.abc import Sequence

from paceline.launch.agents import AgentLauncher
from paceline.launch.documents import MeetingPlace
from paceline.launch.launcher import LaunchRequest


class HostsLauncher(AgentLauncher):
    """A launcher that runs one agent on each of the machines it knows, in their order."""

    @abstractmethod
    def reach(self, host: str) -> Sequence[str]:
        """The words before a command that run it on ``host``; none where that is this machine.

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
        return MeetingPlace(self.address(self.host_names(request)[0]), request.port)

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """One agent per node."""
        return [
            [*self.reach(host), *self.agent(request, node, agent)]
            for node, host in enumerate(self.host_names(request))
        ]

    def agent(self, request: LaunchRequest, node: int, agent: Sequence[str]) -> list[str]:
        """The words that run the agent of a node there."""
        return [*agent, "--node", str(node)]


def as_shell_word(words: Sequence[str]) -> str:
    """A command as the one word that a remote shell reads back into the same words."""
    return shlex.join(words)
