"""Places as people write them: ``2x4`` is 2 nodes of 4 processes each, ``4`` is one node of 4."""

from collections.abc import Iterable

from paceline.errors import InputError

Place = tuple[int, int]
"""Nodes, and processes on each of them."""

PREDICTED_NODES, PREDICTED_LINK = (4, 8, 16), "eth_10g"
"""Nodes like those measured, and the network between them, that a study predicts unless told."""

_EXAMPLE = "write -j 1x1,1x2"
MOST_COUNTS = 100_000
MOST_PROCESSES = 10**7
"""More than any machine has."""


def parse_places(text: str) -> list[Place]:
    """Every place of ``1x1,1x2``."""
    return [parse_place(part) for part in text.split(",")]


def parse_place(text: str | int) -> Place:
    """One place: ``2x4``, or a bare number of processes on one node."""
    nodes, _, processes = str(text).strip().lower().rpartition("x")
    try:
        place = (int(nodes) if nodes else 1, int(processes))
    except ValueError:
        raise InputError(f"'{text}' is not NODESxPROCESSES", _EXAMPLE) from None
    if min(place) < 1:
        raise InputError(f"'{text}' has no process", _EXAMPLE)
    if place[0] * place[1] > MOST_PROCESSES:
        raise InputError(f"'{text}' is more than {MOST_PROCESSES:,} processes", _EXAMPLE)
    return place


def parse_counts(text: str, what: str, option: str) -> list[int]:
    """Whole numbers of ``4,8`` or ``1..64``; ``what`` and ``option`` name them in an error."""
    hint = f"write {option} 64, {option} 8,16 or {option} 1..64"
    counts: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            numbers = range(int(first), int(last if dots else first) + 1)
        except ValueError:
            raise InputError(f"'{text}' is not a number of {what}", hint) from None
        if numbers and (numbers[-1] > MOST_PROCESSES or len(counts) + len(numbers) > MOST_COUNTS):
            raise InputError(f"{text} are too many {what}", hint)
        counts += numbers
    if not counts or min(counts) < 1:
        raise InputError(f"no number of {what} lies in {text}", hint)
    return list(dict.fromkeys(counts))


def place_words(nodes: int, processes: int) -> str:
    """``2x4``: how a place is written on the command line."""
    return f"{nodes}x{processes}"


def as_places(processes: int | str | Iterable[int | str]) -> tuple[Place, ...]:
    """Places of ``2``, ``"1x1,1x2"`` or ``[1, 2, "2x4"]``."""
    if isinstance(processes, str):
        return tuple(parse_places(processes))
    if isinstance(processes, int):
        return (parse_place(processes),)
    if not isinstance(processes, Iterable) or isinstance(processes, dict):
        raise InputError(f"'{processes}' is no number of processes", _EXAMPLE)
    return tuple(parse_place(one) for one in processes)
