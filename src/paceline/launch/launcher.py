"""What a launcher is: it starts the ranks of a launch, watches them, and ends every one."""

import os
import platform
import re
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
    from paceline.launch.prepared import PreparedLaunch

_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@%\[\]-]{0,252}")
PEER_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Detection:
    """Whether something can be used here: what was ``found``, and what would change it."""

    works: bool
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class LaunchHost:
    """A machine that ranks can be started on; its ``cores`` are None where nobody told."""

    name: str
    cores: int | None = None


@dataclass(frozen=True)
class LaunchSettings:
    """What a user chose of a launcher: machines by name, and options of that launcher."""

    hosts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RankEvent:
    """A rank was started (``code`` is None) or ended, ``seconds`` after the launch began."""

    rank: int
    seconds: float
    code: int | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """``nodes`` x ``processes`` ranks to start, numbered node by node.

    ``command`` gives the words of each rank, ``variables`` what is added to its environment
    beside what says who it is. Files of the launch go to ``directory``. Ranks meet at ``port``,
    a free one when None. After one failed the others have ``peer_grace_seconds`` to notice.
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

    @property
    def world_size(self) -> int:
        """All ranks."""
        return self.nodes * self.processes

    @property
    def logs(self) -> list[Path]:
        """Where each rank's output goes."""
        return [self.directory / f"rank-{rank}.log" for rank in range(self.world_size)]

    def rank_variables(self, rank: int, address: str, port: int) -> dict[str, str]:
        """What a rank finds in its environment beside the launcher's own."""
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
    """How one rank's process ended: its code (negative: the signal), and where its log is.

    ``host`` is where it ran, empty where that is not known. Adding ``clock_offset_seconds`` to the
    clock there gives that of rank 0's machine, give or take ``clock_error_seconds``.
    """

    rank: int
    code: int | None
    log: Path
    host: str = ""
    clock_offset_seconds: float = 0.0
    clock_error_seconds: float = 0.0


@dataclass(frozen=True)
class LaunchExit:
    """How a whole launch ended; ``reason`` is empty when every rank ended well.

    ``first_failed`` is the rank that ended badly before any other did, if one did. ``restarts``
    counts how often it was begun again, after the loss of a machine. ``unanswered`` are peers, as
    ``address:port``, that did not answer the ranks that were left, by the host of the rank.
    """

    ranks: tuple[RankExit, ...]
    reason: str
    seconds: float
    first_failed: int | None = None
    restarts: int = 0
    unanswered: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Launcher(ABC):
    """One way to start ranks. ``paceline.testing.launcher_suite`` checks what it owes.

    Third parties register an instance under the entry point group ``paceline.launchers``.
    """

    settings: LaunchSettings = LaunchSettings()
    """What the user chose; `configured` gives a launcher with it."""

    options: Mapping[str, str] = {}
    """What ``--launcher-option NAME=VALUE`` may set, and what each means."""

    takes_hosts: bool = True
    """Whether the user names the machines, rather than the engine."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What a user types."""

    @abstractmethod
    def detect(self) -> Detection:
        """Whether it can launch from here."""

    def configured(self, settings: LaunchSettings) -> "Launcher":
        """This launcher with what a user chose, checked to be what it has."""
        for name in settings.options:
            known = ", ".join(self.options) or "none"
            look_up(f"option of the launcher '{self.name}'", name, self.options, f"it has {known}")
        if settings.hosts and not self.takes_hosts:
            raise InputError(
                f"the launcher '{self.name}' chooses the hosts itself", "leave --hosts out"
            )
        for host in settings.hosts:
            if not _HOST.fullmatch(host):  # it becomes a word of a command
                raise InputError(f"'{host}' is no name of a host", "write --hosts gpu1,gpu2")
        chosen = copy(self)
        chosen.settings = settings
        return chosen

    def hosts(self) -> tuple[LaunchHost, ...]:
        """The machines that ranks can be started on: those named, else this one."""
        if self.settings.hosts:
            return tuple(LaunchHost(name) for name in self.settings.hosts)
        return (LaunchHost(platform.node(), own_cores()),)

    def validate(self, nodes: int, processes: int) -> None:
        """Raise, with what to do, if so many ranks cannot be started; nothing starts before."""
        known = len(self.hosts())
        if nodes > known:
            raise InputError(
                f"{nodes} nodes cannot be started from here: the launcher '{self.name}' "
                f"knows {known}",
                "name that many with --hosts a,b; or "
                f"measure {known} node{'s' * (known > 1)} (-j {known}xN) and let "
                "'paceline predict' say what more would give",
            )

    def facts(self) -> dict[str, str]:
        """What the record of a launch should say of where it runs, beside the hosts."""
        return {}

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Write every file of a launch and start nothing; the commands that would start it."""
        from paceline.launch.documents import MeetingPlace, write_launch

        agent = write_launch(request, MeetingPlace(), self.settings.hosts[: request.nodes])
        return [
            ["env", f"RANK={node}", f"WORLD_SIZE={request.nodes}", *agent]
            for node in range(request.nodes)
        ]

    def write_study(self, directory: Path, launches: "Sequence[PreparedLaunch]") -> list[Path]:
        """Write the scripts that start prepared launches; by default one, with every command."""
        from paceline.launch.prepared import start_lines

        path = directory / "launches.sh"
        path.write_text(start_lines(launches), encoding="utf-8")
        path.chmod(0o755)
        return [path]

    @abstractmethod
    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run every rank of ``request`` to its end; nothing of it is left when this returns.

        Each rank has RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its
        environment and its output in its log. When a rank fails, the time is up or an interrupt
        comes, all processes that were started are ended, also those that ranks started.
        """


def usable_cores() -> list[int]:
    """Cores that this process may use; none where the system cannot pin."""
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


def own_cores() -> int:
    """How many cores this process may use."""
    return len(usable_cores()) or os.cpu_count() or 1


def exit_path(directory: Path, rank: int) -> Path:
    """Where the agent of a rank leaves word of how it ended."""
    return directory / f"rank-{rank}.exit"


def describe_exit(rank: int, code: int | None) -> str:
    """One phrase for a rank that did not end well: its code, or the signal."""
    if code is None:
        return f"rank {rank} did not end"
    if code >= 0:
        return f"rank {rank} ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"rank {rank} was killed by {name}"
