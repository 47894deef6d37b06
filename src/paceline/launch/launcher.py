"""The interface of launchers, which start, watch and end the ranks of a launch."""

import os
import platform
import re
import shlex
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.naming import look_up

if TYPE_CHECKING:
    from paceline.launch.launch_script import PreparedLaunch

# Labels of a name have 1 to 63 characters: the resolver raises for others.
_HOST = re.compile(r"(?!.*(?:\.\.|[^.:]{64}))[A-Za-z0-9_\[][A-Za-z0-9_.:@%\[\]-]{0,252}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
PEER_GRACE_SECONDS = 10.0


def refuse_control_characters(what: str, *texts: str) -> None:
    """Raise if one of ``texts`` has a line break or another control character.

    `LaunchSettings` and `LaunchRequest` check all text that launchers write into scripts, YAML
    and remote commands: a line break in a ``#SBATCH`` line would start a command of the job.
    """
    for text in texts:
        if _CONTROL.search(text):
            raise InputError(f"{what} contains a control character: {text!r}", "remove it")


def shell_words(what: str, text: str) -> list[str]:
    """The arguments in an option that is quoted as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{what}: {text!r}: {str(error).lower()}", "close the quotes") from None


@dataclass(frozen=True)
class Detection:
    """Whether a launcher ``works`` here, what was ``found``, and otherwise the ``remedy``."""

    works: bool
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class LaunchHost:
    """A host of ranks; ``cores`` is None where unknown."""

    name: str
    cores: int | None = None


@dataclass(frozen=True)
class LaunchSettings:
    """The user's settings of a launcher: names of hosts and options."""

    hosts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_control_characters("a host name", *self.hosts)
        for name, value in self.options.items():
            refuse_control_characters(f"launcher option {name!r}", name, value)


@dataclass(frozen=True)
class RankEvent:
    """A rank was started (``code`` is None) or ended, ``seconds`` after the launch began."""

    rank: int
    seconds: float
    code: int | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """``nodes`` x ``processes`` ranks to start, numbered node by node.

    ``command`` returns the command of each rank, ``variables`` its additional environment.
    Files of the launch are in ``directory``. ``port`` is that of the rendezvous,
    a free one when None. After one rank failed the others have ``peer_grace_seconds`` to end.
    Each rank is pinned to ``cores_per_rank`` cores, to its share of all when None.
    """

    command: Callable[[int], Sequence[str]]
    directory: Path
    timeout_seconds: float
    nodes: int = 1
    processes: int = 1
    variables: Callable[[int], Mapping[str, str]] = lambda rank: {}
    port: int | None = None
    cores_per_rank: int | None = None
    peer_grace_seconds: float = PEER_GRACE_SECONDS
    on_event: Callable[[RankEvent], None] = lambda event: None

    def __post_init__(self) -> None:
        refuse_control_characters("the directory of the launch", str(self.directory))
        refuse_control_characters("the program of the launch", *self.command(0)[:1])
        for rank in range(self.world_size):
            for name, value in self.variables(rank).items():
                refuse_control_characters(f"environment variable {name!r}", name, value)

    @property
    def world_size(self) -> int:
        return self.nodes * self.processes

    @property
    def logs(self) -> list[Path]:
        return [self.directory / f"rank-{rank}.log" for rank in range(self.world_size)]

    def rank_variables(self, rank: int, address: str, port: int) -> dict[str, str]:
        return {
            **self.variables(rank),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self.processes),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.processes),
            "MASTER_ADDR": address,
            "MASTER_PORT": str(port),
        }


@dataclass(frozen=True)
class RankExit:
    """How the process of a rank ended: exit code (negative: signal) and log.

    ``host`` is empty where unknown. The clock of the host plus ``clock_offset_seconds`` is the
    clock of rank 0's host, within ``clock_error_seconds``.
    """

    rank: int
    code: int | None
    log: Path
    host: str = ""
    clock_offset_seconds: float = 0.0
    clock_error_seconds: float = 0.0


@dataclass(frozen=True)
class LaunchExit:
    """How a launch ended; ``reason`` is empty on success.

    ``first_failed`` is the first rank that failed, if any. ``restarts`` counts restarts after the
    loss of a node. ``unanswered`` are peers, as
    ``address:port``, that did not answer the remaining ranks, by the host of the rank.
    """

    ranks: tuple[RankExit, ...]
    reason: str
    seconds: float
    first_failed: int | None = None
    restarts: int = 0
    unanswered: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Launcher(ABC):
    """Starts ranks. ``paceline.testing.launcher_suite`` tests the contract.

    Third parties register an instance under the entry point group ``paceline.launchers``.
    """

    settings: LaunchSettings = LaunchSettings()
    """The user's settings; `configured` returns a launcher with them."""

    options: Mapping[str, str] = {}
    """The names of ``--launcher-option NAME=VALUE`` with their help texts."""

    takes_hosts: bool = True
    """Whether the user names the hosts; otherwise the launcher chooses them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name on the command line."""

    @abstractmethod
    def detect(self) -> Detection:
        """Check whether the launcher works on this machine."""

    def configured(self, settings: LaunchSettings) -> "Launcher":
        """Return this launcher with settings, after checking them."""
        for name in settings.options:
            known = ", ".join(self.options) or "none"
            look_up(
                f"option of the launcher '{self.name}'", name, self.options, f"available: {known}"
            )
        if settings.hosts and not self.takes_hosts:
            raise InputError(f"the launcher '{self.name}' chooses the hosts itself", "omit --hosts")
        for host in settings.hosts:
            if not _HOST.fullmatch(host):  # it becomes an argument of a command
                raise InputError(
                    f"invalid host name '{host}'", "give comma-separated names: --hosts gpu1,gpu2"
                )
        chosen = copy(self)
        chosen.settings = settings
        return chosen

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Return the hosts for ranks: those the user named, else this machine."""
        if self.settings.hosts:
            return tuple(LaunchHost(name) for name in self.settings.hosts)
        return (LaunchHost(platform.node(), own_cores()),)

    def validate(self, nodes: int, processes: int) -> None:
        """Raise, before anything starts, if the launcher cannot start this number of ranks."""
        known = len(self.hosts())
        if nodes > known:
            raise InputError(
                f"cannot start {nodes} nodes: the launcher '{self.name}' "
                f"has {known} host{'s' * (known != 1)}",
                f"name {nodes} hosts with --hosts, or "
                f"measure {known} node{'s' * (known > 1)} (-j {known}xN) and predict more "
                "with 'paceline predict'",
            )

    def facts(self) -> dict[str, str]:
        """Return what the record of a launch keeps about its environment besides the hosts."""
        return {}

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Write the files of a launch without starting it; return the commands that start it."""
        from paceline.launch.launch_files import RendezvousAddress, write_launch

        agent = write_launch(request, RendezvousAddress(), self.settings.hosts[: request.nodes])
        return [
            ["env", f"RANK={node}", f"WORLD_SIZE={request.nodes}", *agent]
            for node in range(request.nodes)
        ]

    def write_study(self, directory: Path, launches: "Sequence[PreparedLaunch]") -> list[Path]:
        """Write the scripts that start prepared launches; by default one script for all."""
        from paceline.launch.launch_script import start_lines

        path = directory / "launches.sh"
        path.write_text(start_lines(launches), encoding="utf-8")
        path.chmod(0o755)
        return [path]

    @abstractmethod
    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run every rank of ``request`` to its end and leave no process behind.

        Each rank has RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its
        environment and its output in its log. When a rank fails, at the timeout and on an
        interrupt, all ranks and their children are ended.
        """


def usable_cores() -> list[int]:
    """Return the cores that this process may use; empty where pinning is not supported."""
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


def own_cores() -> int:
    return len(usable_cores()) or os.cpu_count() or 1


def exit_path(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank}.exit"


def describe_exit(rank: int, code: int | None) -> str:
    if code is None:
        return f"rank {rank} did not end"
    if code >= 0:
        return f"rank {rank} ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"rank {rank} was killed by {name}"
