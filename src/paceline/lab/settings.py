"""Settings of a lab (hosts, link, delay, speed), their limits and warnings."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.units import (
    format_seconds,
    parse_bandwidth,
    parse_seconds,
    plural,
    read_integer,
    read_number,
)

DEFAULT_NAME = "lab"
MOST_HOSTS = 64
SHORTEST_DELAY_SECONDS = 50e-6
"""Waking a process takes longer than a shorter delay."""
LONGEST_DELAY_SECONDS = 1.0
SLOWEST_LINK, FASTEST_LINK = 125e3, 1.25e9
"""Bytes per second: 1 Mbit/s to 10 Gbit/s, of which one machine reached 80 %."""
CORE_BYTES_PER_SECOND = 0.625e9
"""Limit of all links together per core: measured as 4 hosts at 2.5 Gbit/s on 2 cores."""
LEAST_SPEED, MOST_SPEED = 0.05, 64.0

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True)
class LabSettings:
    """``hosts`` with links of ``link`` bytes per second; None: unshaped.

    ``delay`` is the additional one-way delay between hosts in seconds.
    ``speed`` is the CPU limit of each host in cores; None: no limit.
    """

    hosts: int
    link: float | None = None
    delay: float = 0.0
    speed: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= MOST_HOSTS:
            raise InputError(
                f"--hosts must be between 1 and {MOST_HOSTS} (got {self.hosts})",
                "for example --hosts 4",
            )
        if self.link is not None and not SLOWEST_LINK <= self.link <= FASTEST_LINK:
            raise InputError(
                f"--link must be between 1 Mbit/s and 10 Gbit/s (got {describe_link(self.link)})",
                "emulate a faster link in slow motion with "
                "'paceline measure --emulate DEVICE --time-scale FACTOR'",
            )
        if self.delay and not SHORTEST_DELAY_SECONDS <= self.delay <= LONGEST_DELAY_SECONDS:
            raise InputError(
                f"--delay must be between {format_seconds(SHORTEST_DELAY_SECONDS)} and 1 s "
                f"(got {format_seconds(self.delay)})",
                "omit it for no delay",
            )
        if self.speed is not None and not LEAST_SPEED <= self.speed <= MOST_SPEED:
            raise InputError(
                f"--speed must be between {LEAST_SPEED:g} and {MOST_SPEED:g} cores "
                f"(got {self.speed:g})",
                "omit it for no limit",
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "LabSettings":
        """Parse settings with units: ``{"hosts": 4, "link": "1gbit", "delay": "200us"}``."""
        known: dict[str, Any] = {
            "hosts": _integer,
            "link": lambda text: None if text in (None, "", "none") else parse_bandwidth(text),
            "delay": lambda text: parse_seconds(text or 0.0),
            "speed": lambda text: None if text in (None, "", "all") else _number(text),
        }
        read = {}
        for key, value in values.items():
            reader = look_up("setting of a lab", key, known, f"one of {', '.join(known)}")
            read[key] = reader(value)
        return cls(**read)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def warnings(self, cores: int) -> tuple[str, ...]:
        """Return warnings about measurements in such a lab on a machine with ``cores`` cores."""
        found = []
        carried = self.hosts * (self.link or 0.0)
        if self.link is None:
            found.append("links are not shaped: their bandwidth depends on the CPU")
        elif self.hosts > 1 and carried > CORE_BYTES_PER_SECOND * cores:
            slower = CORE_BYTES_PER_SECOND * cores / self.hosts
            found.append(
                f"{self.hosts} links of {describe_link(self.link)} exceed the capacity of "
                f"{plural(cores, 'core')}: use at most {describe_link(slower)}"
            )
        if self.speed is not None and self.speed * self.hosts > cores:
            found.append(
                f"{plural(self.hosts, 'host')} with --speed {self.speed:g} share "
                f"{plural(cores, 'core')}: a host reaches its speed only while others are idle"
            )
        return tuple(found)

    @property
    def description(self) -> str:
        """``4 hosts, 1 Gbit/s, delay 200 us``."""
        return f"{self.hosts} host{'s' * (self.hosts > 1)}, {self.describe_link}"

    @property
    def describe_link(self) -> str:
        """``1 Gbit/s, delay 200 us``: the settings without the number of hosts."""
        parts = ["unshaped links" if self.link is None else describe_link(self.link)]
        if self.delay:
            parts.append(f"delay {format_seconds(self.delay)}")
        if self.speed is not None:
            parts.append(f"speed {self.speed:g}")
        return ", ".join(parts)


def validated_name(name: str) -> str:
    """Return ``name`` if it is valid in names of namespaces and groups; otherwise raise."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"invalid lab name '{name}'", "use up to 20 lower-case letters, digits and hyphens"
        )
    return name


def describe_link(rate: float) -> str:
    """Format bytes per second in bits: ``1 Gbit/s``."""
    bits = 8.0 * rate
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bits >= scale:
            return f"{bits / scale:.4g} {prefix}bit/s"
    return f"{bits:.4g} bit/s"


def _integer(value: Any) -> int:
    try:
        return read_integer(str(value))
    except (TypeError, ValueError):
        raise InputError(
            f"--hosts must be an integer (got '{value}')", "for example --hosts 4"
        ) from None


def _number(value: Any) -> float:
    try:
        found = read_number(str(value))
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise InputError(
            f"--speed must be a number of cores (got '{value}')", "for example --speed 0.5"
        )
    return found
