"""Starts ranks on the hosts of a lab: an existing one, or one created for each launch."""

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
from paceline.lab.lab_cluster import INTERFACE, address_of
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
from paceline.launch.onhost.rendezvous import INTERFACE_VARIABLES
from paceline.launch.ports import free_port
from paceline.launch.processes import Process, run_to_end
from paceline.units import plural

SHAPE = ("link", "delay", "speed")
"""Options that create a lab for each launch."""


class LabLauncher(Launcher):
    """Starts the processes of each node on a host of a lab, an isolated network.

    With the option link, delay or speed each launch has its own lab, so that these can be factors
    of a study; otherwise the launcher uses the lab of 'paceline lab up'.
    """

    name = "lab"
    takes_hosts = False
    options = {
        "name": "existing lab [lab]",
        "link": "bandwidth of each host's link, for example 1gbit; creates a lab for each launch",
        "delay": "one-way delay between hosts, for example 200us; creates a lab for each launch",
        "speed": "CPU limit of each host in cores, for example 0.5; creates a lab for each launch",
    }

    def detect(self) -> Detection:
        missing = missing_for_lab()
        return Detection(not missing, "" if missing else "network namespaces", missing)

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Return the hosts of the lab by address; they share the cores of this machine."""
        if self._per_launch:
            count = MOST_HOSTS
        elif self.detect().works:
            count = lab_named(self._name).settings.hosts
        else:
            count = 1
        return tuple(LaunchHost(address_of(n), own_cores()) for n in range(1, count + 1))

    def validate(self, nodes: int, processes: int) -> None:
        found = self.detect()
        if not found.works:
            raise EnvironmentUnusableError(
                "the launcher 'lab' is not available on this machine", found.remedy
            )
        if self._per_launch:
            self._lab_settings(nodes)
            return
        lab = lab_named(self._name)
        lab.check()
        if nodes > lab.settings.hosts:
            raise InputError(
                f"{nodes} nodes exceed the {plural(lab.settings.hosts, 'host')} "
                f"of the lab '{lab.name}'",
                f"create a larger lab with '{lab.command(nodes)}'",
            )

    def facts(self) -> dict[str, str]:
        settings = self._lab_settings(1) if self._per_launch else lab_named(self._name).settings
        return {"lab": settings.describe_link}

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Reject: a lab exists on this machine only and is created for each launch."""
        raise InputError(
            "--dry-run does not support the launcher 'lab'",
            "omit --dry-run or choose another --launcher",
        )

    def launch(self, request: LaunchRequest) -> LaunchExit:
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

            def find_unanswered(processes: Sequence[Process]) -> None:
                for rank, process in enumerate(processes):
                    if found := unanswered(process.pid):
                        silent.setdefault(hosts[rank // request.processes], []).extend(found)

            ended = run_to_end(
                starts,
                request.logs,
                request.timeout_seconds,
                request.peer_grace_seconds,
                request.on_event,
                on_failure=find_unanswered,
            )
            ranks = (
                replace(rank, host=hosts[rank.rank // request.processes]) for rank in ended.ranks
            )
            return replace(ended, ranks=tuple(ranks), unanswered=silent)

    @property
    def _name(self) -> str:
        return self.settings.options.get("name", DEFAULT_NAME)

    @property
    def _per_launch(self) -> bool:
        return any(option in self.settings.options for option in SHAPE)

    def _lab_settings(self, nodes: int) -> LabSettings:
        chosen = self.settings.options
        if "name" in chosen:
            raise InputError(
                f"the option name={chosen['name']} excludes link, delay and speed",
                "set the name of an existing lab, or the settings of a lab for each launch",
            )
        return LabSettings.of({"hosts": nodes, **chosen})

    @contextmanager
    def _lab(self, nodes: int) -> Iterator[Lab]:
        if self._per_launch:
            with lab_for_launch(self._lab_settings(nodes)) as made:
                yield made
        else:
            with lab_users(self._name) as found:
                yield found
