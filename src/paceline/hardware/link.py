"""Link: a connection between devices, between nodes or from host to device."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, Key, quantity
from paceline.hardware.provenance import SourcedEntry, UnknownQuantityError
from paceline.units import parse_bandwidth, parse_seconds

SCOPES = ("intra", "inter", "host")
"""Inside a node, between nodes, between host memory and device."""

SHARES = ("device", "nic", "node")
"""The unit that a bandwidth applies to: each device, each NIC, or the whole node."""

TECHNOLOGIES = ("nvlink", "xgmi", "pcie", "memory", "infiniband", "ethernet", "omni-path", "other")
"""Link families; communication libraries treat each family the same way."""


@dataclass(frozen=True)
class Link(SourcedEntry):
    """Bandwidth in bytes/s (one direction) and latency in seconds of a kind of connection.

    ``per`` is the unit that the bandwidth applies to. ``latency_seconds`` is that of wire and
    adapter; software latency belongs to the communication library. ``transport`` between nodes
    is ``rdma`` or ``tcp``. ``collective_bandwidth`` is the best measured bus bandwidth of a
    collective, ``sums_in_switch`` whether the switch reduces in the network (e.g. NVLink SHARP).
    None is unknown.
    """

    CHECKED_KEY: ClassVar[str] = "collective_bandwidth"

    name: Annotated[str, NOT_IN_FILE]
    scope: Annotated[str, Key(choices=SCOPES)]
    bandwidth: Annotated[float | None, quantity(parse_bandwidth)] = None
    per: Annotated[str, Key(choices=SHARES)] = "device"
    latency_seconds: Annotated[
        float | None, quantity(parse_seconds, "latency", may_be_zero=True)
    ] = None
    technology: Annotated[str, Key(choices=TECHNOLOGIES)] = "other"
    transport: Annotated[str, Key(choices=("", "rdma", "tcp"))] = ""
    collective_bandwidth: Annotated[float | None, quantity(parse_bandwidth)] = None
    sums_in_switch: bool = False

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
                f"measure it with 'paceline calibrate', then set [link.{self.name}] "
                'bandwidth = "10gbit" in a TOML file',
            )
        return self.bandwidth
