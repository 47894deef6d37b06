"""Classes of layers with equal cost, so that each class is evaluated once."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.memory.activations import kept_activations
from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.plan.plan_choices import SEARCHED_RECOMPUTATIONS, Module, Recompute


@dataclass(frozen=True)
class LayerClasses:
    """The class (kind) of each layer, and the first layer of each class."""

    of_layer: NDArray[np.intp]
    first: tuple[int, ...]

    @cached_property
    def all_counts(self) -> NDArray[np.float64]:
        """How many layers of each kind there are."""
        return self.counts(range(len(self.of_layer)))

    def counts(self, *runs: range) -> NDArray[np.float64]:
        """How many layers of each kind are in some runs of layers."""
        own = np.concatenate([self.of_layer[run.start : run.stop] for run in runs])
        return np.bincount(own, minlength=len(self.first)).astype(np.float64)


def no_sharing(layers: int) -> LayerClasses:
    """Every layer in a class of its own."""
    return LayerClasses(np.arange(layers), tuple(range(layers)))


@lru_cache(maxsize=32)
def unique_layers(
    sharding: Sharding,
    sequence_parallel: bool,
    every: int = 1,
    *,
    by_operation: bool = False,
    modules: tuple[Module, ...] = (),
) -> LayerClasses:
    """Classes of layers that cost the same for every degree and recomputation.

    Blocks differ if one in ``every`` is recomputed, linear layers if some of them are
    (``by_operation``), layers of blocks if ``modules`` of them are.
    """
    parts = sharding.layers(2, 1, sequence_parallel)
    kept = [
        kept_activations(sharding, parts, mode, 2, sequence_parallel, every=every)
        for mode in (*SEARCHED_RECOMPUTATIONS, *[Recompute.OPERATION] * by_operation)
    ]
    if modules:
        mode = Recompute.SELECTIVE
        kept.append(kept_activations(sharding, parts, mode, 2, sequence_parallel, modules=modules))
    known: dict[object, int] = {}
    of_layer = np.empty(len(parts), dtype=np.intp)
    first: list[int] = []
    for index, part in enumerate(parts):
        unnamed = replace(part, profile=replace(part.profile, name=""))
        again = tuple((own.sizes[index], own.again[index]) for own in kept)
        number = known.setdefault((unnamed, again), len(first))
        if number == len(first):
            first.append(index)
        of_layer[index] = number
    return LayerClasses(of_layer, tuple(first))
