"""Communication libraries: which algorithm they take when, and what a message costs in each.

Profiles are data (``data/collectives/libraries.toml``); a profile lists variants (an algorithm
in one of the library's protocols) and how it chooses among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from paceline import units
from paceline.errors import PacelineError
from paceline.hardware import Device
from paceline.hardware.toml_lines import parse_toml, read_toml
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins
from paceline.predictor.collectives.algorithms import AddedAlgorithm, Counts, algorithms
from paceline.predictor.collectives.group import Group


@dataclass(frozen=True)
class Variant:
    """One algorithm in one protocol of a library.

    ``start_seconds`` is paid once per call, ``hop_seconds`` per message by family of link,
    ``bandwidth_fraction`` is what the protocol leaves of the bandwidth. ``inner_families``
    restricts it to links of these families inside the node; ``one_node`` to groups in one node;
    ``needs_switch`` to switches that sum.
    """

    operation: str
    algorithm: str
    protocol: str = ""
    start_seconds: float = 0.0
    hop_seconds: Mapping[str, float] = field(default_factory=dict)
    bandwidth_fraction: float = 1.0
    inner_families: tuple[str, ...] = ()
    one_node: bool = False
    needs_switch: bool = False

    @property
    def name(self) -> str:
        """Algorithm and protocol."""
        return f"{self.algorithm}/{self.protocol}" if self.protocol else self.algorithm

    def counts(self, group: Group) -> Counts:
        """Messages and volumes of one call."""
        return algorithms()[self.operation][self.algorithm](group)


@dataclass(frozen=True)
class Rule:
    """Take ``algorithm`` for fewer than ``ranks_below`` ranks and ``bytes_below`` bytes."""

    operation: str
    algorithm: str
    ranks_below: float
    bytes_below: float


@dataclass(frozen=True)
class Negotiation:
    """What ranks say to each other before a message, to agree that all of them have it ready.

    ``trees`` gathers and broadcasts of next to nothing follow one another, each with
    ``hop_seconds`` per message by family of link.
    """

    trees: int
    hop_seconds: Mapping[str, float]


@dataclass(frozen=True)
class Library:
    """A communication library.

    Without ``rules`` for an operation it takes the fastest variant, as its own cost model
    would. ``pipelined``: messages are cut so that start-ups hide behind transfers, and a call
    takes the longer of both, not their sum. ``hides_reduction``: sums run beside transfers.
    ``efficiency`` is the fraction of line rate that large messages reach, by family of link;
    with ``uses_collective_bandwidth`` a link's own measured figure goes before it.
    ``message_overhead_seconds`` is what issuing one call costs the process that computes.
    ``interference`` is the fraction by which computation slows down while it communicates.
    ``negotiation`` goes before every call where ranks have to agree on it.
    """

    name: str
    variants: tuple[Variant, ...]
    rules: tuple[Rule, ...]
    efficiency: Mapping[str, float]
    pipelined: bool
    hides_reduction: bool
    uses_collective_bandwidth: bool
    message_overhead_seconds: float
    interference: float
    source: str
    negotiation: Negotiation | None = None


def library(name: str | Library) -> Library:
    """The profile called ``name`` (``nccl``, ``gloo``, ``openmpi``, ...)."""
    if isinstance(name, Library):
        return name
    return look_up(
        "communication library",
        name.strip().lower().replace("_", "-"),
        libraries(),
        f"one of {', '.join(libraries())}",
    )


def library_names() -> list[str]:
    """Every profile."""
    return list(libraries())


def default_library(device: Device) -> Library:
    """What frameworks use when nothing is said: NCCL between accelerators, else gloo."""
    return library("gloo" if device.is_processor else "nccl")


@lru_cache(maxsize=1)
def libraries() -> dict[str, Library]:
    """Every profile by name: ours, and those of the files of installed packages."""
    file = resources.files("paceline") / "data" / "collectives" / "libraries.toml"
    document = parse_toml(file.read_text(encoding="utf-8"), "libraries.toml")
    known = {name: _library(name, document) for name in document}
    for plugin, value in plugins(PluginKind.COLLECTIVE):
        if not isinstance(value, AddedAlgorithm):
            known |= _added(plugin, plugin.path(value), document, known)
    return known


def _added(
    plugin: Plugin, path: Path, shipped: Mapping[str, Any], known: Mapping[str, Library]
) -> dict[str, Library]:
    """The profiles of a plugin's file, which may be ``like`` shipped ones."""
    try:
        _, own = read_toml(path)
        added = {name: _library(name, {**shipped, **own}) for name in own}
        for variant in (variant for one in added.values() for variant in one.variants):
            algorithms()[variant.operation][variant.algorithm]
    except PluginError:
        raise
    except PacelineError as error:
        raise PluginError(plugin, error.message) from error
    except (KeyError, TypeError) as error:
        raise PluginError(plugin, f"{path.name} lacks or does not know {error}") from error
    if taken := sorted(own.keys() & known.keys()):
        raise PluginError(plugin, f"the name '{taken[0]}' is taken")
    return added


def _library(name: str, document: Mapping[str, Any]) -> Library:
    own = document[name]
    base = document[own["like"]] if "like" in own else {}
    values = {**base, **own}
    return Library(
        name=name,
        variants=tuple(
            _variant(operation, entry)
            for entry in values["variant"]
            for operation in entry["operations"]
            if entry["algorithm"] in values.get("algorithms", [entry["algorithm"]])
        ),
        rules=tuple(
            Rule(
                operation=entry["operation"],
                algorithm=entry["algorithm"],
                ranks_below=float(entry.get("ranks_below", "inf")),
                bytes_below=units.parse_bytes(entry["bytes_below"])
                if "bytes_below" in entry
                else float("inf"),
            )
            for entry in values.get("rule", [])
        ),
        efficiency=values["efficiency"],
        pipelined=values.get("pipelined", False),
        hides_reduction=values.get("hides_reduction", False),
        uses_collective_bandwidth=values.get("uses_collective_bandwidth", False),
        message_overhead_seconds=units.parse_seconds(values["message_overhead"]),
        interference=values["interference"],
        source=values["source"],
        negotiation=_negotiation(values.get("negotiation")),
    )


def _negotiation(entry: Mapping[str, Any] | None) -> Negotiation | None:
    return None if entry is None else Negotiation(entry["trees"], _hops(entry))


def _variant(operation: str, entry: Mapping[str, Any]) -> Variant:
    return Variant(
        operation=operation,
        algorithm=entry["algorithm"],
        protocol=entry.get("protocol", ""),
        start_seconds=units.parse_seconds(entry.get("start", 0.0)),
        hop_seconds=_hops(entry),
        bandwidth_fraction=entry.get("bandwidth_fraction", 1.0),
        inner_families=tuple(entry.get("inner_families", ())),
        one_node=entry.get("one_node", False),
        needs_switch=entry.get("needs_switch", False),
    )


def _hops(entry: Mapping[str, Any]) -> dict[str, float]:
    return {family: units.parse_seconds(text) for family, text in entry["hop"].items()}
