"""Topologies, nodes x processes per node: ``2x4`` is 2 nodes of 4 processes, ``4`` is ``1x4``."""

from collections.abc import Iterable

from paceline.errors import InputError
from paceline.units import read_integer

Topology = tuple[int, int]
"""Nodes, and processes per node."""

PREDICTED_NODES, PREDICTED_LINK = (4, 8, 16), "eth_10g"
"""Defaults of predictions in a study: nodes like the measured one, and their network."""

_EXAMPLE = "write nodes x processes per node, such as -j 1x1,2x4"
MOST_COUNTS = 100_000
MOST_PROCESSES = 10**7
"""Above any machine in existence; larger values are typing errors."""


def parse_topologies(text: str) -> list[Topology]:
    """The topologies of ``1x1,1x2``."""
    return [parse_topology(part) for part in text.split(",")]


def parse_topology(text: str | int) -> Topology:
    """One topology: ``2x4``, or a number of processes on one node."""
    nodes, _, processes = str(text).strip().lower().rpartition("x")
    try:
        topology = (read_integer(nodes) if nodes else 1, read_integer(processes))
    except ValueError:
        raise InputError(f"invalid topology '{text}'", _EXAMPLE) from None
    if min(topology) < 1:
        raise InputError(f"topology '{text}' has no processes", _EXAMPLE)
    if topology[0] * topology[1] > MOST_PROCESSES:
        raise InputError(f"topology '{text}' exceeds {MOST_PROCESSES:,} processes", _EXAMPLE)
    return topology


def check_topology(text: str | int) -> str:
    """``text`` as ``2x4``."""
    return format_topology(*parse_topology(text))


def parse_counts(text: str, what: str, option: str) -> list[int]:
    """Integers of ``4,8`` or ``1..64``; ``what`` and ``option`` name them in errors."""
    hint = f"write {option} 64, {option} 8,16 or {option} 1..64"
    counts: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            numbers = range(read_integer(first), read_integer(last if dots else first) + 1)
        except ValueError:
            raise InputError(f"'{text}' is not a number of {what}", hint) from None
        if numbers and (numbers[-1] > MOST_PROCESSES or len(counts) + len(numbers) > MOST_COUNTS):
            raise InputError(f"too many {what}: {text}", hint)
        counts += numbers
    if not counts or min(counts) < 1:
        raise InputError(f"the number of {what} must be at least 1 (got '{text}')", hint)
    return list(dict.fromkeys(counts))


def format_topology(nodes: int, processes: int) -> str:
    """``2x4``, as on the command line."""
    return f"{nodes}x{processes}"


def as_topologies(processes: int | str | Iterable[int | str]) -> tuple[Topology, ...]:
    """Topologies of ``2``, ``"1x1,1x2"`` or ``[1, 2, "2x4"]``."""
    if isinstance(processes, str):
        return tuple(parse_topologies(processes))
    if isinstance(processes, int):
        return (parse_topology(processes),)
    if not isinstance(processes, Iterable) or isinstance(processes, dict):
        raise InputError(f"invalid topology '{processes}'", _EXAMPLE)
    return tuple(parse_topology(one) for one in processes)
