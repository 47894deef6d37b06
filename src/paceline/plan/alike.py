"""Layers that cost the same: what is asked of one of each kind holds for all of them."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.plan.activations import kept_activations
from paceline.plan.choices import SEARCHED_RECOMPUTATIONS, Recompute
from paceline.plan.sharding import Sharding


@dataclass(frozen=True)
class Alike:
    """The number of each layer's kind, and the first layer of each kind."""

    place: NDArray[np.intp]
    first: tuple[int, ...]

    def counts(self, *runs: range) -> NDArray[np.float64]:
        """How many layers of each kind are in some runs of layers."""
        own = np.concatenate([self.place[run.start : run.stop] for run in runs])
        return np.bincount(own, minlength=len(self.first)).astype(np.float64)


def all_apart(layers: int) -> Alike:
    """Every layer is a kind of its own."""
    return Alike(np.arange(layers), tuple(range(layers)))


@lru_cache(maxsize=32)
def alike_layers(
    sharding: Sharding, sequence_parallel: bool, every: int = 1, *, by_operation: bool = False
) -> Alike:
    """Layers that are alike when divided are so whatever the degree and recomputation.

    Blocks differ where only one in ``every`` is computed again, linear layers where some of
    them are (``by_operation``).
    """
    parts = sharding.layers(2, 1, sequence_parallel)
    kept = [
        kept_activations(sharding, parts, mode, 2, sequence_parallel, every=every)
        for mode in (*SEARCHED_RECOMPUTATIONS, *[Recompute.OPERATION] * by_operation)
    ]
    known: dict[object, int] = {}
    place = np.empty(len(parts), dtype=np.intp)
    first: list[int] = []
    for index, part in enumerate(parts):
        unnamed = replace(part, profile=replace(part.profile, name=""))
        again = tuple((own.sizes[index], own.again[index]) for own in kept)
        number = known.setdefault((unnamed, again), len(first))
        if number == len(first):
            first.append(index)
        place[index] = number
    return Alike(place, tuple(first))
