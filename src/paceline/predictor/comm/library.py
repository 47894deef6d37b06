"""Communication libraries: selection of algorithms and their costs.

Profiles are data (``data/constants/libraries.toml``); a profile lists variants (an algorithm
in one of the library's protocols) and how it chooses among them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from paceline import units
from paceline.constants import built_from_constants, numbers_of
from paceline.errors import PacelineError
from paceline.file_errors import Problems
from paceline.file_keys import COUNT, NOT_IN_FILE, Key, quantity
from paceline.located_toml import TomlTable, read_toml
from paceline.naming import look_up
from paceline.plugins import Plugin, PluginError, PluginKind, plugins
from paceline.predictor.comm.collective_algorithms import AddedAlgorithm, Counts, algorithms
from paceline.predictor.comm.rank_group import Group
from paceline.typed_toml import read_table, split_table

_SECONDS = quantity(units.parse_seconds, may_be_zero=True)
_POSITIVE = quantity(float)
HopSeconds = Mapping[str, Annotated[float, _SECONDS]]
"""Seconds per message by link family."""


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

    operation: Annotated[str, NOT_IN_FILE]
    algorithm: str
    protocol: str = ""
    start_seconds: Annotated[float, replace(_SECONDS, key="start")] = 0.0
    hop_seconds: Annotated[HopSeconds, NOT_IN_FILE] = field(default_factory=dict)
    bandwidth_fraction: Annotated[float, _POSITIVE] = 1.0
    half_ranks: Annotated[float, _POSITIVE] = 0.0
    middle: Annotated[float, _POSITIVE] = 0.0
    clock_mhz: Annotated[float, _POSITIVE] = 0.0
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

    trees: Annotated[int, COUNT]
    hop_seconds: Annotated[HopSeconds, Key(key="hop")]


@dataclass(frozen=True, eq=False)
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

    name: Annotated[str, NOT_IN_FILE]
    variants: Annotated[tuple[Variant, ...], NOT_IN_FILE]
    rules: Annotated[tuple[Rule, ...], NOT_IN_FILE]
    efficiency: Mapping[str, Annotated[float, _POSITIVE]]
    message_overhead_seconds: Annotated[float, replace(_SECONDS, key="message_overhead")]
    interference: Annotated[float, quantity(float, may_be_zero=True)]
    source: str
    pipelined: bool = False
    hides_reduction: bool = False
    uses_collective_bandwidth: bool = False
    negotiation: Negotiation | None = None


@dataclass(frozen=True)
class _Choices:
    """Keys of a library that determine its variants; ``like`` names a library to inherit from."""

    hop: Mapping[str, HopSeconds]
    variant: Mapping[str, Mapping[str, Any]]
    like: str = ""
    rules: Mapping[str, Any] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ()


@dataclass(frozen=True)
class _VariantChoice:
    """Keys of a variant that are no fields of `Variant`."""

    operations: tuple[str, ...]
    hop: str


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
    own, problems = root.tables(), Problems(root)
    others = {**(known or {}), **own}
    found = {name: _library(table, others, problems) for name, table in own.items()}
    problems.check()
    return {name: one for name, one in found.items() if one is not None}


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


def _library(own: TomlTable, others: Mapping[str, TomlTable], problems: Problems) -> Library | None:
    """The library of a table, with the values that it inherits by ``like``."""
    base: Mapping[str, Any] = {}
    if "like" in own.values:
        try:
            base = look_up("library", str(own.values["like"]), others, "one of this file").values
        except PacelineError as error:  # its keys are unknown, so they cannot be checked
            problems.add((*own.path, "like"), error.message, error.hint)
            return None
    choices, rest = split_table(replace(own, values={**base, **own.values}), _Choices)
    chosen = read_table(choices, _Choices, problems)
    variants: list[Variant] = []
    rules: list[Rule] = []
    if chosen is not None:
        for table in choices.table("variant").tables().values():
            variants += _variants(table, chosen.hop, problems)
        if chosen.algorithms:
            variants = [one for one in variants if one.algorithm in chosen.algorithms]
        rules += _rules(choices.table("rules"), problems)
    parts = {"variants": tuple(variants), "rules": tuple(rules)}
    return read_table(rest, Library, problems, name=own.name, **parts)


def _variants(
    table: TomlTable, hops: Mapping[str, HopSeconds], problems: Problems
) -> list[Variant]:
    """The variant of a table for each of its operations."""
    choices, rest = split_table(table, _VariantChoice)
    chosen = read_table(choices, _VariantChoice, problems)
    if chosen is None:
        return []
    hop: HopSeconds = {}
    with problems.at(*table.path, "hop"):
        hop = look_up("hop", chosen.hop, hops, f"one of {', '.join(hops)}")
    found = []
    for operation in chosen.operations:
        variant = read_table(rest, Variant, problems, operation=operation, hop_seconds=hop)
        if variant is not None:
            with problems.at(*table.path, "algorithm"):
                _check_algorithm(operation, variant.algorithm)
            found.append(variant)
    return found


def _rules(table: TomlTable, problems: Problems) -> Iterator[Rule]:
    """Rules in the order of the file: ``[fewer ranks than, fewer bytes than, algorithm]``."""
    for operation, entries in table.values.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            where = (*table.path, operation)
            match entry:
                case [int() | float() as ranks, int() | float() as size, str() as name]:
                    with problems.at(*where):
                        _check_algorithm(operation, name)
                    yield Rule(operation, name, float(ranks), float(size))
                case _:
                    hint = 'use [RANKS, BYTES, ALGORITHM], e.g. [8, 4096, "ring"]'
                    problems.add(where, f"invalid rule {entry}", hint)


def _check_algorithm(operation: str, name: str) -> None:
    """Raise an error if the algorithm does not exist for the operation."""
    known = look_up("operation", operation, algorithms(), f"one of {', '.join(algorithms())}")
    look_up(f"algorithm of {operation}", name, known, f"one of {', '.join(known)}")
