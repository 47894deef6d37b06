"""Default links by device generation and form factor, for clusters that do not state them.

Socketed devices (SXM, OAM) come in servers that connect them by the links of their generation,
with about one NIC per device since 2020; PCIe cards come in workstations and plain servers. These
are priors: predictions that use one say so in a note, and their interval is wider by the variation
among such networks (`DefaultLink.spread`).
"""

from dataclasses import dataclass

from paceline.hardware import catalogue
from paceline.hardware.cluster import Cluster, fewest_domains
from paceline.hardware.device import Device
from paceline.hardware.link import Link

_INNER_SPREAD = 0.3
_OUTER_SPREAD = 0.7
_SOCKETED = (
    *("sxm", "gb200", "gb300", "gh200", "mi250", "mi300", "mi325", "mi355"),
    *("gaudi", "tpu", "trainium"),
)
_INNER_OF_SOCKETED = (
    (2024, "nvlink5"),
    (2022, "nvlink4"),
    (2020, "nvlink3"),
    (2017, "nvlink2_mesh"),
    (0, "nvlink1"),
)
_INNER_OF_FAMILIES = {
    "mi355": "xgmi_mi355x",
    "mi3": "xgmi_mi300x",
    "mi2": "xgmi_mi300x",
    "h800": "nvlink4_h800",
    "a800": "nvlink3_a800",
    "gaudi3": "gaudi3_mesh",
    "gaudi2": "gaudi2_mesh",
    "tpu_v6e": "ici_tpu_v6e",
    "tpu_v5p": "ici_tpu_v5p",
    "tpu_v5e": "ici_tpu_v5e",
    "tpu_v4": "ici_tpu_v4",
    "trainium1": "neuronlink2",
    "trainium2": "neuronlink3",
    "trainium3": "neuronlink4",
}
_INNER_OF_CARDS = ((2024, "pcie5_x16"), (2020, "pcie4_x16"), (0, "pcie3_x16"))
# Year, network and NICs per device of NVIDIA's servers: DGX H100 has 8 NDR and DGX A100 8 HDR
# adapters for 8 GPUs, DGX-1 4 EDR adapters for 8.
_OUTER_OF_SOCKETED = (
    (2022, "ib_ndr_400g", 1.0),
    (2020, "ib_hdr_200g", 1.0),
    (2017, "ib_edr_100g", 0.5),
    (0, "ib_edr_100g", 0.25),
)
_OUTER_OF_CARDS = ((2020, "ib_edr_100g", 0.0), (2017, "eth_25g", 0.0), (0, "eth_10g", 0.0))


@dataclass(frozen=True)
class NvlinkDomain:
    """An NVLink domain: its devices, and those of one of its machines."""

    devices: int
    machine: int


_DOMAINS = {"gb200": NvlinkDomain(72, 4), "gb300": NvlinkDomain(72, 4)}
"""NVLink domains over several machines by device (NVIDIA datasheets of GB200 and GB300 NVL72)."""


_SUPERCHIPS = ("gh200", "gb200", "gb300")
"""Devices whose package joins them to the memory of a Grace CPU (NVIDIA datasheets)."""


@dataclass(frozen=True)
class DefaultLink:
    """An assumed link.

    ``nics`` is the number of NICs per node, ``spread`` the standard deviation of the log
    bandwidth among such machines.
    """

    link: Link
    nics: int
    spread: float


def nvlink_domain(device: Device) -> NvlinkDomain | None:
    """The NVLink domain of a device; None if its links do not leave a machine."""
    return next((domain for mark, domain in _DOMAINS.items() if mark in device.name), None)


def host_link(device: Device) -> Link | None:
    """The link to the host's memory that is part of a device's package."""
    is_superchip = any(mark in device.name for mark in _SUPERCHIPS)
    return catalogue.link("c2c_grace") if is_superchip else None


def default_inner_link(device: Device) -> DefaultLink:
    for mark, own in _INNER_OF_FAMILIES.items():
        if mark in device.name:
            return DefaultLink(catalogue.link(own), 1, _INNER_SPREAD)
    table = _INNER_OF_SOCKETED if _is_socketed(device) else _INNER_OF_CARDS
    name = next(name for since, name in table if _year(device) >= since)
    return DefaultLink(catalogue.link(name), 1, _INNER_SPREAD)


def default_outer_link(device: Device, devices_per_node: int) -> DefaultLink:
    table = _OUTER_OF_SOCKETED if _is_socketed(device) else _OUTER_OF_CARDS
    name, per_device = next((name, each) for since, name, each in table if _year(device) >= since)
    nics = max(1, round(per_device * devices_per_node))
    return DefaultLink(catalogue.link(name), nics, _OUTER_SPREAD)


def with_default_links(
    device: Device,
    nodes: int,
    devices_per_node: int,
    inner: Link | None = None,
    outer: Link | None = None,
    nics: int | None = None,
) -> Cluster:
    """A cluster of one kind of device, with default links where none is stated.

    Machines whose devices share an NVLink domain (GB200 NVL72) are joined, unless ``outer`` is a
    network: the domain is the node, and the network joins domains. ``assumed`` of
    the cluster names the assumed links; ``bandwidth_spread`` is how much such links vary.
    """
    notes, spread, machine = [], 0.0, None
    joined = nvlink_domain(device)
    is_fabric = outer is None or outer.scope == "intra"
    if joined is not None and is_fabric and nodes > 1 and devices_per_node <= joined.machine:
        machine, devices = devices_per_node, nodes * devices_per_node
        nodes = fewest_domains(nodes, devices_per_node, joined.devices)
        devices_per_node, outer, nics = devices // nodes, None, None
        notes.append(f"assumes NVLink domains of {devices_per_node} devices (--link)")
    if devices_per_node > 1 and inner is None:
        usual = default_inner_link(device)
        inner, spread = usual.link, usual.spread if nodes == 1 else 0.0
        notes.append(f"assumes {inner.name} inside a node (not stated)")
    if nodes > 1 and outer is None:
        usual = default_outer_link(device, devices_per_node)
        outer, nics, spread = usual.link, nics or usual.nics, usual.spread
        notes.append(
            f"assumes {nics} x {outer.name} per node (network not stated); set another with --link"
        )
    return Cluster(
        device.name,
        device,
        devices_per_node,
        nodes,
        inner if devices_per_node > 1 else None,
        outer,
        host=host_link(device),
        nics_per_node=nics or 1,
        bandwidth_spread=spread,
        assumed="; ".join(notes),
        machine=machine,
    )


def _is_socketed(device: Device) -> bool:
    return any(mark in device.name for mark in _SOCKETED)


def _year(device: Device) -> int:
    return device.year or 2018
