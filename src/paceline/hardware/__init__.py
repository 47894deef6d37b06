"""Devices, links and clusters, each number with its source."""

from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import Confidence, Provenance, UnknownQuantityError

__all__ = [
    "Cluster",
    "Confidence",
    "Device",
    "Link",
    "Provenance",
    "UnknownQuantityError",
]
