"""Cluster: equal nodes of equal devices and the links that join them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.errors import InputError
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import Provenance


@dataclass(frozen=True, repr=False)
class Cluster:
    """``nodes`` nodes of ``devices_per_node`` devices. None is unknown, or there is none.

    ``intra`` joins the devices of a node, ``inter`` the nodes, ``host`` a device to the memory
    of its host. ``oversubscription`` is the factor by which the nodes' cards together exceed
    the core of the network (1: full bisection). ``bandwidth_spread`` is the standard deviation
    of the logarithm of the bandwidth of links that are assumed, not stated.
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
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for key in ("devices_per_node", "nodes", "nics_per_node"):
            if getattr(self, key) < 1:
                raise InputError(f"{self.name}: {key} must be at least 1", "count from one")
        if self.oversubscription < 1:
            raise InputError(
                f"{self.name}: an oversubscription of {self.oversubscription} is impossible",
                "1 is a network at full bisection; 2 is half of it",
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
        """Devices of the whole cluster."""
        return self.nodes * self.devices_per_node

    def with_nodes(self, nodes: int) -> "Cluster":
        """The same kind of nodes, another number of them."""
        return dataclasses.replace(self, nodes=nodes)

    def with_devices(self, devices: int) -> "Cluster":
        """The part of such a cluster that holds ``devices``: whole nodes, or part of one."""
        if 1 <= devices <= self.devices_per_node:
            return self.shaped(1, devices)
        if devices < 1 or devices % self.devices_per_node:
            raise InputError(
                f"{devices} devices are not whole nodes of {self.devices_per_node} ({self.name})",
                f"take a multiple of {self.devices_per_node}, or -j NODESxDEVICES",
            )
        return self.with_nodes(devices // self.devices_per_node)

    def shaped(self, nodes: int, devices_per_node: int) -> "Cluster":
        """``nodes`` nodes of which ``devices_per_node`` devices are used (``-j 4x8``).

        Network cards that serve only devices left idle go with them.
        """
        if not 1 <= devices_per_node <= self.devices_per_node:
            raise InputError(
                f"a node of {self.name} has {self.devices_per_node} devices, "
                f"not {devices_per_node}",
                f"take -j NODESx1 up to NODESx{self.devices_per_node}",
            )
        cards_per_device = max(1, self.nics_per_node // self.devices_per_node)
        cards = min(self.nics_per_node, cards_per_device * devices_per_node)
        return dataclasses.replace(
            self, nodes=nodes, devices_per_node=devices_per_node, nics_per_node=cards
        )

    def require_network(self) -> Link:
        """The link between nodes, or an error that says how to name one."""
        if self.inter is None:
            raise InputError(
                f"{self.name} has no network between nodes, so it cannot be {self.nodes} nodes",
                "name one: --link eth_10g ('paceline hardware links' lists all)",
            )
        return self.inter

    def require_intra(self) -> Link:
        """The link between the devices of a node, or an error that says how to name one."""
        if self.intra is None:
            raise InputError(
                f"{self.name} has {self.devices_per_node} devices per node and no link between "
                "them",
                "name one: intra = \"pcie4_x16\" ('paceline hardware links' lists all)",
            )
        return self.intra
