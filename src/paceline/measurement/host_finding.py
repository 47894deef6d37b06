"""The result of one check of hosts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostFinding:
    """Result of one check of the hosts, with a ``remedy`` if it failed."""

    name: str
    works: bool
    detail: str
    remedy: str = ""
