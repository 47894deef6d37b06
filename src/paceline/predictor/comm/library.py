"""Communication libraries: selection of algorithms and their costs.

Profiles are data (``data/constants/libraries.toml``); a profile lists variants (an algorithm
in one of the library's protocols) and how it chooses among them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline import units
from paceline.constants import built_from_constants, numbers_of
from paceline.errors import PacelineError
from paceline.located_toml import TomlTable, read_toml
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins
from paceline.predictor.comm.collective_algorithms import AddedAlgorithm, Counts, algorithms
from paceline.predictor.comm.rank_group import Group

_NEEDED = ("source", "message_overhead", "interference", "efficiency", "hop", "variant")
_KEYS = (
    *_NEEDED,
    *("like", "rules", "algorithms", "negotiation"),
    *("pipelined", "hides_reduction", "uses_collective_bandwidth"),
)
_NEEDED_OF_VARIANT = ("operations", "algorithm", "hop")
_VARIANT_KEYS = (
    *(*_NEEDED_OF_VARIANT, "protocol", "start", "bandwidth_fraction", "half_ranks", "middle"),
    *("clock_mhz", "inner_families", "one_node", "needs_switch"),
)


@dataclass(frozen=True)
class Variant:
    """One algorithm in one protocol of a library.

    ``start_seconds`` is paid once per call, ``hop_seconds`` per message by link family.
    ``bandwidth_fraction`` is the fraction of the bandwidth that the protocol reaches, half of it
    among ``half_ranks`` ranks. ``middle`` weighs the geometric mean of latency and transfer time.
    Start and hops hold for devices at ``clock_mhz`` and scale inversely with the clock; 0 if the
    clock does not matter. ``inner_families`` restricts the variant to link families inside the
    node, ``one_node`` to groups inside one node (which then use no other variant), and
    ``needs_switch`` to switches that reduce.
    """

    operation: str
    algorithm: str
    protocol: str = ""
    start_seconds: float = 0.0
    hop_seconds: Mapping[str, float] = field(default_factory=dict)
    bandwidth_fraction: float = 1.0
    half_ranks: float = 0.0
    middle: float = 0.0
    clock_mhz: float = 0.0
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
    """Negotiation before a message, in which all ranks agree that it is ready (Horovod).

    ``trees`` small gathers and broadcasts run in sequence, each with ``hop_seconds`` per message
    by link family.
    """

    trees: int
    hop_seconds: Mapping[str, float]


@dataclass(frozen=True)
class Library:
    """A communication library.

    Without ``rules`` for an operation the fastest variant is selected, as in NCCL's tuning
    model. ``pipelined``: messages are segmented so that latency overlaps transfer, and a call
    takes the longer of both, not their sum. ``hides_reduction``: sums overlap transfers.
    ``efficiency`` is the fraction of line rate that large messages reach, by link family; with
    ``uses_collective_bandwidth`` the measured bandwidth of a link takes precedence.
    ``message_overhead_seconds`` is the cost of one call on the computing process.
    ``interference`` is the relative slowdown of computing during communication.
    ``negotiation`` precedes every call.
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


@built_from_constants
def libraries() -> dict[str, Library]:
    """Every profile by name, built-in and from installed packages."""
    root = numbers_of("libraries")
    shipped, known = root.tables(), read_libraries(root)
    for plugin, value in plugins(PluginKind.COLLECTIVE):
        if not isinstance(value, AddedAlgorithm):
            known |= _added(plugin, plugin.path(value), shipped, known)
    return known


def read_libraries(
    root: TomlTable, known: Mapping[str, TomlTable] | None = None
) -> dict[str, Library]:
    """The libraries of a file in the format of ``data/constants/libraries.toml``.

    ``known`` are tables of other files that a library may name in ``like``.
    """
    own = root.tables()
    return {name: _library(table, {**(known or {}), **own}) for name, table in own.items()}


def _added(
    plugin: Plugin, path: Path, shipped: Mapping[str, TomlTable], known: Mapping[str, Library]
) -> dict[str, Library]:
    """The profiles of a plugin's file; ``like`` may name shipped ones."""
    try:
        added = read_libraries(read_toml(path), shipped)
    except PluginError:
        raise
    except PacelineError as error:
        raise PluginError(plugin, error.message) from error
    if taken := sorted(added.keys() & known.keys()):
        raise PluginError(plugin, f"the name '{taken[0]}' is already defined")
    return added


def _library(own: TomlTable, others: Mapping[str, TomlTable]) -> Library:
    """The library of a table, with the values that it inherits by ``like``."""
    base: Mapping[str, Any] = {}
    if "like" in own.values:
        with own.locating("like"):
            base = look_up("library", own.text_of("like"), others, "one of this file").values
    table = replace(own, values={**base, **own.values})
    table.check_keys(_KEYS, needed=_NEEDED)
    hops = {
        name: hop.quantities(units.parse_seconds, may_be_zero=True)
        for name, hop in table.table("hop").tables().items()
    }
    kept = table.names("algorithms")
    return Library(
        name=own.name,
        variants=tuple(
            variant
            for entry in table.table("variant").tables().values()
            for variant in _variants(entry, hops)
            if not kept or variant.algorithm in kept
        ),
        rules=tuple(_rules(table.table("rules"))),
        efficiency=table.table("efficiency").quantities(float),
        pipelined=table.flag("pipelined"),
        hides_reduction=table.flag("hides_reduction"),
        uses_collective_bandwidth=table.flag("uses_collective_bandwidth"),
        message_overhead_seconds=_seconds(table, "message_overhead"),
        interference=table.parsed("interference", float, may_be_zero=True) or 0.0,
        source=table.text_of("source"),
        negotiation=_negotiation(table.table("negotiation"))
        if "negotiation" in table.values
        else None,
    )


def _variants(table: TomlTable, hops: Mapping[str, Mapping[str, float]]) -> list[Variant]:
    """The variant of a table for each of its operations."""
    table.check_keys(_VARIANT_KEYS, needed=_NEEDED_OF_VARIANT)
    with table.locating("hop"):
        hop_seconds = look_up("hop", table.text_of("hop"), hops, f"one of {', '.join(hops)}")
    return [
        Variant(
            operation=operation,
            algorithm=_algorithm(table, "algorithm", operation, table.text_of("algorithm")),
            protocol=table.text_of("protocol"),
            start_seconds=_seconds(table, "start"),
            hop_seconds=hop_seconds,
            bandwidth_fraction=table.parsed("bandwidth_fraction", float) or 1.0,
            half_ranks=table.parsed("half_ranks", float) or 0.0,
            middle=table.parsed("middle", float) or 0.0,
            clock_mhz=table.parsed("clock_mhz", float) or 0.0,
            inner_families=tuple(table.names("inner_families")),
            one_node=table.flag("one_node"),
            needs_switch=table.flag("needs_switch"),
        )
        for operation in table.names("operations")
    ]


def _rules(table: TomlTable) -> Iterator[Rule]:
    """Rules in the order of the file: ``[fewer ranks than, fewer bytes than, algorithm]``."""
    for operation, entries in table.values.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            match entry:
                case [int() | float() as ranks, int() | float() as size, str() as name]:
                    algorithm = _algorithm(table, operation, operation, name)
                    yield Rule(operation, algorithm, float(ranks), float(size))
                case _:
                    table.fail(
                        operation,
                        f"invalid rule {entry}",
                        'use [RANKS, BYTES, ALGORITHM], e.g. [8, 4096, "ring"]',
                    )


def _algorithm(table: TomlTable, key: str, operation: str, name: str) -> str:
    """The name of an algorithm, checked to exist for the operation."""
    with table.locating(key):
        known = look_up("operation", operation, algorithms(), f"one of {', '.join(algorithms())}")
        look_up(f"algorithm of {operation}", name, known, f"one of {', '.join(known)}")
    return name


def _negotiation(table: TomlTable) -> Negotiation:
    table.check_keys(("trees", "hop"), needed=("trees", "hop"))
    return Negotiation(
        int(table.parsed("trees", float) or 0),
        table.table("hop").quantities(units.parse_seconds, may_be_zero=True),
    )


def _seconds(table: TomlTable, key: str) -> float:
    return table.parsed(key, units.parse_seconds, may_be_zero=True) or 0.0
