"""Ranks that an engine starts, such as mpiexec: one process of ours stands for all of them."""

from abc import abstractmethod
from collections.abc import Sequence

from paceline.launch.agents import AgentLauncher
from paceline.launch.launcher import LaunchRequest


class EngineLauncher(AgentLauncher):
    """A launcher whose ranks are started by another program, which says who each process is.

    `paceline.launch.onhost.placement` knows in which variables.
    """

    @abstractmethod
    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """The words before a command that make the engine run it once per rank or node."""

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """The engine's own."""
        return [[*self.engine(request), *agent]]
