"""Link: a connection between devices, between nodes or from host to device."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.errors import InputError
from paceline.hardware.provenance import Provenance, UnknownQuantityError

SCOPES = ("intra", "inter", "host")
"""Inside a node, between nodes, between host memory and device."""

SHARES = ("device", "nic", "node")
"""The unit that a bandwidth applies to: each device, each NIC, or the whole node."""

TECHNOLOGIES = ("nvlink", "xgmi", "pcie", "memory", "infiniband", "ethernet", "omni-path", "other")
"""Link families; communication libraries treat each family the same way."""


@dataclass(frozen=True)
class Link:
    """Bandwidth in bytes/s (one direction) and latency in seconds of a kind of connection.

        ``per`` is the unit that the bandwidth applies to. ``latency_seconds`` is that of wire and
    adapter; software latency belongs to the communication library. ``transport`` between nodes
    is ``rdma`` or ``tcp``. ``collective_bandwidth`` is the best measured bus bandwidth of a
    collective, ``sums_in_switch`` whether the switch reduces in the network (e.g. NVLink SHARP).
    None is unknown.
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
                f"{self.name}: collective_bandwidth exceeds bandwidth",
                "correct one of the two: utilisation cannot exceed 100 %",
            )

    @property
    def known_bandwidth(self) -> float:
        """Bandwidth in bytes/s, one direction; an error if it is unknown."""
        if self.bandwidth is None:
            raise UnknownQuantityError(
                f"the bandwidth of link {self.name} is unknown",
                f"measure it with 'paceline probe', then set [link.{self.name}] "
                'bandwidth = "10gbit" in a TOML file',
            )
        return self.bandwidth
