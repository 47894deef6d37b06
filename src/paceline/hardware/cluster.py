"""Cluster: equal nodes of equal devices and the links that join them."""

import dataclasses
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import SourcedEntry
from paceline.units import plural


@dataclass(frozen=True, repr=False)
class Cluster(SourcedEntry):
    """``nodes`` nodes of ``devices_per_node`` devices. None means unknown or absent.

        ``intra`` joins the devices of a node, ``inter`` the nodes, ``host`` a device to the memory
        of its host. ``oversubscription`` is the total NIC bandwidth over the bandwidth of the
    network core (1: full bisection). ``bandwidth_spread`` is the standard deviation of the log
    bandwidth of assumed links. ``machine``: devices of one machine, if ``intra`` spans several of
    them (an NVLink domain of GB200 NVL72 is a node of 18 machines). ``assumed`` says which links
    were not stated.
    """

    name: str
    device: Device
    devices_per_node: int
    nodes: int = 1
    intra: Link | None = None
    inter: Link | None = None
    host: Link | None = None
    nics_per_node: int = 1
    oversubscription: float = 1.0
    bandwidth_spread: float = 0.0
    price_per_device_hour: float | None = None
    machine: int | None = None
    assumed: str = ""

    def __post_init__(self) -> None:
        for key in ("devices_per_node", "nodes", "nics_per_node", "machine"):
            if getattr(self, key) is not None and getattr(self, key) < 1:
                raise InputError(
                    f"{self.name}: {key} must be at least 1 (got {getattr(self, key)})",
                    "give a positive integer",
                )
        if self.oversubscription < 1:
            raise InputError(
                f"{self.name}: oversubscription must be at least 1 (got {self.oversubscription})",
                "use 1 for full bisection bandwidth, 2 for half",
            )
        if self.nodes > 1:
            self.require_network()
        if self.devices_per_node > 1:
            self.require_intra()

    def __repr__(self) -> str:
        links = [link.name for link in (self.intra, self.inter) if link is not None]
        shape = f"{self.nodes}x{self.devices_per_node} {self.device.name}"
        return f"<Cluster {self.name}: {', '.join([shape, *links])}>"

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    def with_nodes(self, nodes: int) -> "Cluster":
        """The same cluster with another number of nodes."""
        return dataclasses.replace(self, nodes=nodes)

    def with_devices(self, devices: int) -> "Cluster":
        """A cluster of ``devices`` devices: whole nodes, or part of one node."""
        if 1 <= devices <= self.devices_per_node:
            return self.shaped(1, devices)
        if devices < 1 or devices % self.devices_per_node:
            raise InputError(
                f"{plural(devices, 'device')} cannot fill nodes of {self.devices_per_node} "
                f"({self.name})",
                f"use a multiple of {self.devices_per_node}, or -j NODESxDEVICES",
            )
        return self.with_nodes(devices // self.devices_per_node)

    def shaped(self, nodes: int, devices_per_node: int) -> "Cluster":
        """``nodes`` nodes of which ``devices_per_node`` devices are used (``-j 4x8``).

        NICs that serve only unused devices are not used either. Nodes of at most one ``machine``
        are machines: they are joined in as few domains of equal size as possible.
        """
        if self.machine and nodes > 1 and devices_per_node <= self.machine:
            devices = nodes * devices_per_node
            nodes = fewest_domains(nodes, devices_per_node, self.devices_per_node)
            devices_per_node = devices // nodes
        if not 1 <= devices_per_node <= self.devices_per_node:
            raise InputError(
                f"a node of {self.name} has {plural(self.devices_per_node, 'device')} "
                f"(requested {devices_per_node})",
                f"use -j NODESx1 to NODESx{self.devices_per_node}",
            )
        nics_per_device = max(1, self.nics_per_node // self.devices_per_node)
        nics = min(self.nics_per_node, nics_per_device * devices_per_node)
        return dataclasses.replace(
            self, nodes=nodes, devices_per_node=devices_per_node, nics_per_node=nics
        )

    def on_machines(self) -> str:
        """What a node is, if not a machine: ``64 devices of 16 machines``; else empty."""
        if self.machine is None or self.devices_per_node <= self.machine:
            return ""
        count = -(-self.devices_per_node // self.machine)
        return f"{self.devices_per_node} devices of {count} machines"

    def require_network(self) -> Link:
        """The link between nodes; an error if there is none."""
        if self.inter is None:
            raise InputError(
                f"{self.name} has no network between nodes",
                "add one: --link eth_10g ('paceline catalog links' lists all)",
            )
        return self.inter

    def require_intra(self) -> Link:
        """The link between the devices of a node; an error if there is none."""
        if self.intra is None:
            raise InputError(
                f"{self.name} has {self.devices_per_node} devices per node but no link between "
                "them",
                "add one: intra = \"pcie4_x16\" ('paceline catalog links' lists all)",
            )
        return self.intra


def fewest_domains(nodes: int, devices_per_node: int, largest: int) -> int:
    """Number of equal domains of at most ``largest`` devices that ``nodes`` machines fill."""
    fewest = -(-nodes * devices_per_node // largest)
    return next(count for count in range(fewest, nodes + 1) if nodes % count == 0)
