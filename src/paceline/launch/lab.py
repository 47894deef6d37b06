"""Ranks on the hosts of a lab: one that is up, or one made for the launch and ended after it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.lab import (
    DEFAULT_NAME,
    Lab,
    LabSettings,
    lab_for_launch,
    lab_named,
    lab_users,
    missing_for_lab,
)
from paceline.lab.cluster import INTERFACE, address_of
from paceline.lab.settings import MOST_HOSTS
from paceline.launch.launcher import (
    Detection,
    Launcher,
    LaunchExit,
    LaunchHost,
    LaunchRequest,
    own_cores,
)
from paceline.launch.local import pinned_cores, start_logged
from paceline.launch.onhost.connections import unanswered
from paceline.launch.onhost.meeting_place import INTERFACE_VARIABLES
from paceline.launch.ports import free_port
from paceline.launch.processes import Process, run_to_end

SHAPE = ("link", "delay", "speed")
"""Options that ask for a lab of their own."""


class LabLauncher(Launcher):
    """Starts the processes of each node on a host of a lab, where they reach only each other.

    With a link, a delay or a speed among the options each launch has a lab of its own, so that
    these can be factors of a study; else it is the lab that 'paceline lab up' made.
    """

    name = "lab"
    takes_hosts = False
    options = {
        "name": "which lab that is up [lab]",
        "link": "rate of each host's link, such as 1gbit, of a lab made for each launch",
        "delay": "from one host to another, one way, such as 200us, likewise",
        "speed": "cores' time of each host, such as 0.5, likewise",
    }

    def detect(self) -> Detection:
        """Whether labs can be made here."""
        missing = missing_for_lab()
        return Detection(not missing, "" if missing else "network namespaces", missing)

    def hosts(self) -> tuple[LaunchHost, ...]:
        """The hosts of the lab by address; they share the cores of this machine."""
        if self._makes_its_own:
            count = MOST_HOSTS
        elif self.detect().works:
            count = lab_named(self._name).settings.hosts
        else:
            count = 1
        return tuple(LaunchHost(address_of(n), own_cores()) for n in range(1, count + 1))

    def validate(self, nodes: int, processes: int) -> None:
        """The lab must be whole, and have a host for each node."""
        found = self.detect()
        if not found.works:
            raise EnvironmentUnusableError("the launcher 'lab' cannot be used here", found.remedy)
        if self._makes_its_own:
            self._wanted(nodes)
            return
        lab = lab_named(self._name)
        lab.check()
        if nodes > lab.settings.hosts:
            raise InputError(
                f"{nodes} nodes are more than the {lab.settings.hosts} hosts of the lab "
                f"'{lab.name}'",
                f"'{lab.command(nodes)}' makes one that has them",
            )

    def facts(self) -> dict[str, str]:
        """The links between hosts, and what limits these."""
        settings = self._wanted(1) if self._makes_its_own else lab_named(self._name).settings
        return {"lab": settings.link_words}

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Nothing can be: a lab is on this machine, made for each launch."""
        raise InputError(
            "launches in a lab cannot be written for later: the lab is made for each",
            "leave --dry-run out, or take another --launcher",
        )

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run each rank in a session of its own, inside the namespace of its host."""
        with self._lab(request.nodes) as lab:
            address, port = lab.hosts[0].address, request.port or free_port()
            cores = pinned_cores(request.world_size, request.cores_per_rank)
            starts = [
                partial(
                    start_logged,
                    [*lab.hosts[rank // request.processes].enter(), *request.command(rank)],
                    {
                        **dict.fromkeys(INTERFACE_VARIABLES, INTERFACE),
                        **request.rank_variables(rank, address, port),
                        "PACELINE_WATCH_STDIN": "1",
                    },
                    log,
                    cores[rank],
                )
                for rank, log in enumerate(request.logs)
            ]
            hosts = [lab.hosts[node].address for node in range(request.nodes)]
            silent: dict[str, list[str]] = {}

            def look(processes: Sequence[Process]) -> None:
                for rank, process in enumerate(processes):
                    if found := unanswered(process.pid):
                        silent.setdefault(hosts[rank // request.processes], []).extend(found)

            ended = run_to_end(
                starts,
                request.logs,
                request.timeout_seconds,
                request.peer_grace_seconds,
                request.on_event,
                on_failure=look,
            )
            ranks = (replace(one, host=hosts[one.rank // request.processes]) for one in ended.ranks)
            return replace(ended, ranks=tuple(ranks), unanswered=silent)

    @property
    def _name(self) -> str:
        return self.settings.options.get("name", DEFAULT_NAME)

    @property
    def _makes_its_own(self) -> bool:
        return any(option in self.settings.options for option in SHAPE)

    def _wanted(self, nodes: int) -> LabSettings:
        chosen = self.settings.options
        if "name" in chosen:
            raise InputError(
                f"the lab '{chosen['name']}' has its own links",
                "give a name, or link, delay and speed of a lab that is made for each launch",
            )
        return LabSettings.of({"hosts": nodes, **chosen})

    @contextmanager
    def _lab(self, nodes: int) -> Iterator[Lab]:
        if self._makes_its_own:
            with lab_for_launch(self._wanted(nodes)) as made:
                yield made
        else:
            with lab_users(self._name) as found:
                yield found
