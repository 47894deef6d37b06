"""Link: what bytes travel on between devices, between nodes or from host to device."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.errors import InputError
from paceline.hardware.provenance import Provenance, UnknownQuantityError

SCOPES = ("intra", "inter", "host")
"""Inside a node, between nodes, between host memory and device."""

SHARES = ("device", "nic", "node")
"""What one bandwidth figure belongs to: each device, each network card, the whole node."""

TECHNOLOGIES = ("nvlink", "xgmi", "pcie", "memory", "infiniband", "ethernet", "omni-path", "other")
"""Families that communication libraries treat alike."""


@dataclass(frozen=True)
class Link:
    """A kind of connection: bytes/s in one direction, and seconds to the first byte.

    ``per`` says what the bandwidth belongs to. ``latency_seconds`` is that of the wire and the
    adapter; what software adds belongs to the communication library. ``transport`` is ``rdma``
    or ``tcp`` between nodes. ``collective_bandwidth`` is the best bus bandwidth that a
    library was measured to reach on it, ``sums_in_switch`` whether its switch can add vectors
    up on the way. None is unknown.
    """

    name: str
    scope: str
    bandwidth: float | None
    per: str = "device"
    latency_seconds: float | None = None
    technology: str = "other"
    transport: str = ""
    collective_bandwidth: float | None = None
    sums_in_switch: bool = False
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        reached, line_rate = self.collective_bandwidth, self.bandwidth
        if reached is not None and line_rate is not None and reached > line_rate:
            raise InputError(
                f"{self.name}: collective_bandwidth is above bandwidth",
                "utilisation above 100 % is impossible: one of the two is wrong",
            )

    @property
    def known_bandwidth(self) -> float:
        """Bandwidth in bytes/s one way, or an error on how to measure it."""
        if self.bandwidth is None:
            raise UnknownQuantityError(
                f"the bandwidth of link {self.name} is not known",
                f"'paceline probe' measures a link; then state [link.{self.name}] "
                'bandwidth = "10gbit" in a TOML of yours',
            )
        return self.bandwidth
