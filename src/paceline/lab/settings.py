"""What a lab is to be: hosts, links, delay, speed; and what of it can be trusted here."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.units import format_seconds, parse_bandwidth, parse_seconds

DEFAULT_NAME = "lab"
MOST_HOSTS = 64
SHORTEST_DELAY_SECONDS = 50e-6
"""A shorter one is less than what a machine needs to wake a process."""
LONGEST_DELAY_SECONDS = 1.0
SLOWEST_LINK, FASTEST_LINK = 125e3, 1.25e9
"""Bytes per second: 1 Mbit/s, and the 10 Gbit/s of which one machine still moved four fifths."""
CORE_BYTES_PER_SECOND = 0.625e9
"""What all links together may carry per core: 4 hosts of 2.5 Gbit/s kept their rate on 2 cores."""
LEAST_SPEED, MOST_SPEED = 0.05, 64.0

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True)
class LabSettings:
    """``hosts`` on links of ``link`` bytes per second; None is as fast as the machine can.

    ``delay`` is seconds from one host to another, one way, beside what the machine itself needs.
    ``speed`` is how many cores' time each host may use; None for all there is.
    """

    hosts: int
    link: float | None = None
    delay: float = 0.0
    speed: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= MOST_HOSTS:
            raise InputError(
                f"a lab of {self.hosts} hosts cannot be made", f"give --hosts 2 to {MOST_HOSTS}"
            )
        if self.link is not None and not SLOWEST_LINK <= self.link <= FASTEST_LINK:
            raise InputError(
                f"a link of {link_words(self.link)} is outside what one machine can shape",
                "give --link 1mbit to 10gbit; a faster one is emulated in proportion, see "
                "--time-scale of 'paceline measure'",
            )
        if self.delay and not SHORTEST_DELAY_SECONDS <= self.delay <= LONGEST_DELAY_SECONDS:
            raise InputError(
                f"a delay of {format_seconds(self.delay)} cannot be kept",
                f"give --delay {format_seconds(SHORTEST_DELAY_SECONDS).replace(' ', '')} to 1s, "
                "or leave it out",
            )
        if self.speed is not None and not LEAST_SPEED <= self.speed <= MOST_SPEED:
            raise InputError(
                f"a host with {self.speed:g} cores' time cannot be made",
                f"give --speed {LEAST_SPEED:g} to {MOST_SPEED:g}",
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "LabSettings":
        """Settings as people write them: ``{"hosts": 4, "link": "1gbit", "delay": "200us"}``."""
        known: dict[str, Any] = {
            "hosts": _whole,
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
        """The settings in SI units."""
        return asdict(self)

    def doubts(self, cores: int) -> tuple[str, ...]:
        """What of measurements in such a lab cannot be trusted on a machine of so many cores."""
        found = []
        carried = self.hosts * (self.link or 0.0)
        if self.link is None:
            found.append("links are not shaped: they are as fast as the cores that move the bytes")
        elif self.hosts > 1 and carried > CORE_BYTES_PER_SECOND * cores:
            slower = CORE_BYTES_PER_SECOND * cores / self.hosts
            found.append(
                f"{self.hosts} links of {link_words(self.link)} are more than {cores} cores can "
                f"move: trust it up to {link_words(slower)}"
            )
        if self.speed is not None and self.speed * self.hosts > cores:
            found.append(
                f"{self.hosts} hosts of {self.speed:g} cores' time share {cores} cores: "
                "a host has its speed only while others wait"
            )
        return tuple(found)

    @property
    def words(self) -> str:
        """``4 hosts, 1 Gbit/s, delay 200 us``."""
        return f"{self.hosts} host{'s' * (self.hosts > 1)}, {self.link_words}"

    @property
    def link_words(self) -> str:
        """``1 Gbit/s, delay 200 us``: all but the number of hosts."""
        parts = ["unshaped links" if self.link is None else link_words(self.link)]
        if self.delay:
            parts.append(f"delay {format_seconds(self.delay)}")
        if self.speed is not None:
            parts.append(f"speed {self.speed:g}")
        return ", ".join(parts)


def checked_name(name: str) -> str:
    """A name that namespaces and groups can be called after."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"'{name}' cannot name a lab", "take up to 20 small letters, digits and hyphens"
        )
    return name


def link_words(rate: float) -> str:
    """``1 Gbit/s``: how networks are spoken of, from bytes per second."""
    bits = 8.0 * rate
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bits >= scale:
            return f"{bits / scale:.4g} {prefix}bit/s"
    return f"{bits:.4g} bit/s"


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"'{value}' is not a number of hosts", "write --hosts 4") from None


def _number(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise InputError(f"'{value}' is not a number of cores", "write --speed 0.5")
    return found
