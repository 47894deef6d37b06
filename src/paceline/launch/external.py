"""Base of launchers that run one external program, such as mpiexec, for all ranks."""

from abc import abstractmethod
from collections.abc import Sequence

from paceline.launch.agents import AgentLauncher
from paceline.launch.launcher import LaunchRequest


class EngineLauncher(AgentLauncher):
    """A launcher whose ranks are started by another program, which sets the rank of each process.

    `paceline.launch.onhost.placement` lists the environment variables.
    """

    @abstractmethod
    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """Return the command prefix that runs a command once per rank or node."""

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """Return the one command of the external program."""
        return [[*self.engine(request), *agent]]
