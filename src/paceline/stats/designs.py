"""Experimental designs: the combinations of levels that a study runs, and aliased effects."""

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up

Levels = Mapping[str, Sequence[Any]]
"""Levels of each factor, by name."""

Point = dict[str, Any]
"""One level of every factor."""

MOST_POINTS = 100_000

KINDS = {
    "full": "every combination of levels",
    "two-level": "every combination of two-level factors (2^k r): effects and interactions",
    "fractional": "a fraction of a two-level design (2^(k-p)); some effects are aliased",
    "one-at-a-time": "the first levels, then each other level alone; no interactions",
    "latin-square": "three factors of n levels in n^2 instead of n^3 combinations",
    "list": "the combinations listed in the study file",
}


def design_points(
    kind: str, levels: Levels, generators: Sequence[str] = (), seed: int = 1
) -> list[Point]:
    look_up("design", kind, KINDS, f"one of {', '.join(KINDS)}")
    if kind == "list":
        raise InputError("a list design has no levels to combine", "write [[design.run]] tables")
    if generators and kind != "fractional":
        raise InputError(f"a {kind} design takes no generators", 'write kind = "fractional"')
    makers = {
        "one-at-a-time": lambda: _one_at_a_time(levels),
        "latin-square": lambda: _latin_square(levels, seed),
        "fractional": lambda: _fractional(levels, generators),
    }
    if kind == "two-level":
        _check_two_levels(levels)
    if kind != "one-at-a-time" and math.prod(map(len, levels.values())) > MOST_POINTS:
        raise InputError(
            f"the design has more than {MOST_POINTS:,} combinations", "give fewer levels"
        )
    return makers[kind]() if kind in makers else _full(levels)


def _full(levels: Levels) -> list[Point]:
    return [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]


def _one_at_a_time(levels: Levels) -> list[Point]:
    base = {name: own[0] for name, own in levels.items()}
    others = [{**base, name: level} for name, own in levels.items() for level in own[1:]]
    return [base, *others]


def _latin_square(levels: Levels, seed: int) -> list[Point]:
    """Shuffle a cyclic square: each third level occurs once in every row and column."""
    sizes = {len(own) for own in levels.values()}
    if len(levels) != 3 or len(sizes) != 1:
        given = ", ".join(f"{name}: {len(own)}" for name, own in levels.items())
        raise InputError(
            f"a Latin square needs three factors with equal numbers of levels (got {given})",
            'add or drop levels, or write kind = "full"',
        )
    (row, rows), (column, columns), (third, inner) = levels.items()
    size = len(rows)
    shuffle = random.Random(seed)
    first, second = shuffle.sample(range(size), size), shuffle.sample(range(size), size)
    return [
        {row: rows[r], column: columns[c], third: inner[(first[r] + second[c]) % size]}
        for r in range(size)
        for c in range(size)
    ]


def _fractional(levels: Levels, generators: Sequence[str]) -> list[Point]:
    """Combine two levels each; the sign of a generated factor is the product of its sources."""
    _check_two_levels(levels)
    generated = parse_generators(levels, generators)
    free = {name: own for name, own in levels.items() if name not in generated}
    points = []
    for signs in itertools.product((0, 1), repeat=len(free)):
        level = dict(zip(free, signs, strict=True))
        for name, sources in generated.items():
            odd = sum(1 - level[source] for source in sources) % 2
            level[name] = 1 - odd
        points.append({name: own[level[name]] for name, own in levels.items()})
    return points


def parse_generators(levels: Iterable[str], generators: Sequence[str]) -> dict[str, list[str]]:
    """Sources of each generated factor, parsed from texts like ``processes = batch * threads``."""
    known = dict.fromkeys(levels)
    found: dict[str, list[str]] = {}
    for text in generators:
        name, equals, product = text.partition("=")
        sources = [part.strip() for part in product.split("*")]
        if not equals or len(sources) < 2:
            raise InputError(f"invalid generator '{text}'", 'write "c = a * b"')
        for each in (name.strip(), *sources):
            look_up("factor", each, known, f"factors are {', '.join(known)}")
        found[name.strip()] = sources
    if not found:
        raise InputError("a fractional design needs generators", 'write generators = ["c = a * b"]')
    for name, sources in found.items():
        if found.keys() & set(sources) or len(set(sources)) < len(sources):
            raise InputError(
                f"{name} must be a product of factors that are not generated",
                'write "c = a * b", where a and b have no generator',
            )
    return found


def aliases(levels: Iterable[str], generators: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """Groups of aliased effects of up to two factors in a fractional design.

    The empty effect stands for the mean.
    """
    names = list(levels)
    words = [frozenset((name, *own)) for name, own in parse_generators(names, generators).items()]
    # The defining relation is the group that the words generate. A factor times itself is the
    # identity, so the product of two words is their symmetric difference.
    relation = {frozenset[str]()}
    for word in words:
        relation |= {word ^ other for other in relation}
    effects = [frozenset(c) for size in (0, 1, 2) for c in itertools.combinations(names, size)]
    groups: dict[frozenset[frozenset[str]], list[tuple[str, ...]]] = {}
    for effect in effects:
        same = frozenset(effect ^ word for word in relation)
        groups.setdefault(same, []).append(tuple(n for n in names if n in effect))
    return [group for group in groups.values() if len(group) > 1]


def resolution(levels: Iterable[str], generators: Sequence[str]) -> int:
    """Length of the shortest word of the defining relation.

    At resolution III main effects are aliased with interactions of two factors, at V they are not.
    """
    words = [frozenset((name, *own)) for name, own in parse_generators(levels, generators).items()]
    lengths = []
    for size in range(1, len(words) + 1):
        for chosen in itertools.combinations(words, size):
            product = frozenset[str]()
            for word in chosen:
                product = product ^ word
            lengths.append(len(product))
    return min(lengths)


def _check_two_levels(levels: Levels) -> None:
    for name, own in levels.items():
        if len(own) != 2:
            raise InputError(
                f"{name} has {len(own)} level{'s' * (len(own) != 1)}, but this design needs two",
                f'give {name} two levels, or write kind = "full"',
            )
