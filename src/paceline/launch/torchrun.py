"""Starts ranks with torchrun, one on each host: this machine, or others over ssh."""

import secrets
from collections.abc import Sequence

from paceline.errors import InputError
from paceline.launch.hosts import HostsLauncher
from paceline.launch.launcher import Detection, LaunchRequest
from paceline.launch.local import is_this_machine
from paceline.launch.onhost.addresses import LOOPBACK
from paceline.launch.ports import free_port
from paceline.launch.remote_shell import OPTIONS, over_ssh, ssh_failure_cause

RENDEZVOUS = ("static", "c10d")
REMOTE_PORTS = (20_000, 30_000)
"""Range of ports on other hosts, below the ephemeral ports of Linux."""


class TorchrunLauncher(HostsLauncher):
    """Starts ``python -m torch.distributed.run`` of the framework's interpreter on each host.

    With the rendezvous ``static`` nodes are numbered in the order of the hosts, with ``c10d`` in
    the order of arrival.
    """

    name = "torchrun"
    options = {
        **OPTIONS,
        "interface": "network interface of the ranks",
        "rendezvous": "static or c10d [default: static]",
    }

    def detect(self) -> Detection:
        """Report that it works where the framework's environment has PyTorch."""
        return Detection(True, "in environments with PyTorch")

    def validate(self, nodes: int, processes: int) -> None:
        if self._rendezvous() not in RENDEZVOUS:
            raise InputError(
                f"unknown rendezvous '{self._rendezvous()}' of torchrun",
                f"choose one of {', '.join(RENDEZVOUS)}",
            )
        super().validate(nodes, processes)

    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """Return the command unchanged for this machine, else over ssh."""
        if is_this_machine(host) and "ssh_port" not in self.settings.options:
            return list(command)
        return over_ssh(host, self.settings.options, command)

    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """Return one torchrun per node, with the rendezvous on the first host."""
        hosts = self.host_names(request)
        here = all(is_this_machine(host) for host in hosts)
        first, last = REMOTE_PORTS
        port = free_port() if here else first + secrets.randbelow(last - first)
        self._endpoint = (LOOPBACK if here else hosts[0], port)
        self._id = secrets.token_hex(4)
        return super().commands(request, agent)

    def node_command(self, request: LaunchRequest, node: int, agent: Sequence[str]) -> list[str]:
        """Return an agent that runs torchrun, which runs one agent per rank."""
        address, port = self._endpoint
        where = (
            [
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                f"{address}:{port}",
                "--rdzv-id",
                self._id,
            ]
            if self._rendezvous() == "c10d"
            else ["--node-rank", str(node), "--master-addr", address, "--master-port", str(port)]
        )
        torchrun = [
            *(request.command(0)[0], "-m", "torch.distributed.run"),
            *("--nnodes", str(request.nodes), "--nproc-per-node", str(request.processes)),
            *where,
            "--no-python",
        ]
        named = ["env", f"PACELINE_HOST={self.host_names(request)[node]}"]
        python = self.settings.options.get("python", agent[0])
        rank = [python, *agent[1:]]
        return [*rank, "--watch-input", *named, *torchrun, *rank]

    def failure_cause(self, request: LaunchRequest, command: int, log: str) -> str:
        if "No module named" in log and "torch" in log:
            program = request.command(0)[0]
            return f"torchrun needs PyTorch, which {program} does not have (use another launcher)"
        return ssh_failure_cause(log, self.host_names(request)[command])

    def _rendezvous(self) -> str:
        return self.settings.options.get("rendezvous", RENDEZVOUS[0])
