"""Adaptive embedding and adaptive softmax: a large vocabulary in clusters by frequency.

Frequent tokens have wide rows, rare ones narrow rows that a projection widens (Grave et al. 2017,
Baevski and Auli 2019; Transformer-XL). The work depends on the text: the share of tokens in each
cluster follows Zipf's law.
"""

import itertools
import math
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    elements,
    fixed_dimension,
    require_positive,
    same_shape,
)
from paceline.workload.ops.work import FLOAT32_BYTES, INDEX_BYTES, Kept, Traffic, Work

_EULER = 0.5772156649015329


def cluster_sizes(vocabulary: int, cutoffs: tuple[int, ...]) -> list[int]:
    """Tokens of the vocabulary in each cluster, most frequent first."""
    edges = [0, *cutoffs, vocabulary]
    return [end - start for start, end in itertools.pairwise(edges)]


def cluster_shares(vocabulary: int, cutoffs: tuple[int, ...]) -> list[float]:
    """Share of running text in each cluster, by Zipf's law."""
    total = _harmonic(vocabulary)
    edges = [0.0, *(_harmonic(cutoff) / total for cutoff in cutoffs), 1.0]
    return [end - start for start, end in itertools.pairwise(edges)]


@dataclass(frozen=True, slots=True)
class _Clusters(Op):
    vocabulary: int
    width: int
    cutoffs: tuple[int, ...]
    shrink: int = 1

    def __post_init__(self) -> None:
        require_positive(vocabulary=self.vocabulary, width=self.width, shrink=self.shrink)
        if list(self.cutoffs) != sorted({*self.cutoffs}) or not (
            self.cutoffs and self.cutoffs[0] > 0 and self.cutoffs[-1] < self.vocabulary
        ):
            raise InputError(
                f"cutoffs must increase between 0 and {self.vocabulary} (got {self.cutoffs})"
            )

    def _tables(self) -> dict[str, tuple[int, ...]]:
        """Rows of each cluster, and the projections that widen narrow rows."""
        shapes: dict[str, tuple[int, ...]] = {}
        for cluster, size in enumerate(cluster_sizes(self.vocabulary, self.cutoffs)):
            width = self.width // self.shrink**cluster
            shapes[f"rows_{cluster}"] = (size, width)
            if self.shrink > 1:
                shapes[f"projection_{cluster}"] = (self.width, width)
        return shapes


@operation("adaptive_embedding")
class AdaptiveEmbedding(_Clusters):
    """A row for each index, ``shrink`` times narrower from cluster to cluster."""

    def output(self, inputs: Shapes) -> Shape:
        return (*inputs[0], self.width)

    def parameters(self, inputs: Shapes) -> Parameters:
        return self._tables()

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Looks up and widens rows; saves the indices and the narrow rows."""
        indices = elements(inputs[0])
        rows = indices * self.width
        products: list[Gemm] = []
        if self.shrink > 1:
            shares = cluster_shares(self.vocabulary, self.cutoffs)
            for cluster, share in enumerate(shares):
                narrow = self.width // self.shrink**cluster
                products.append(Gemm(self.width, indices * share, narrow))
        weights = count_parameters(self._tables())
        return Work(
            forward=tuple(products),
            weight_gradient=tuple(Gemm(g.m, g.k, g.n, grows="k") for g in products),
            input_gradient=tuple(Gemm(g.k, g.n, g.m) for g in products),
            forward_traffic=Traffic(3 * rows, other_bytes=indices * INDEX_BYTES),
            backward_traffic=Traffic(3 * rows, weight_gradients=weights),
            kept=Kept((0,), elements=rows if products else 0),
        )


@operation("adaptive_cross_entropy", inputs=2)
class AdaptiveCrossEntropy(_Clusters):
    """Cross entropy over the clusters: all tokens score the head, rare ones also their cluster.

    The first cluster has a projection of its own; rows and other projections may be shared
    with an `AdaptiveEmbedding`.
    """

    def output(self, inputs: Shapes) -> Shape:
        tokens, targets = inputs
        if not same_shape(tokens[:-1], targets) or fixed_dimension(tokens, -1) != self.width:
            raise InputError(
                f"needs tokens x {self.width} and their targets (got {describe(tokens)} "
                f"and {describe(targets)})"
            )
        return ()

    def parameters(self, inputs: Shapes) -> Parameters:
        """Rows and projections, the scores of the rare clusters, and a bias per token."""
        tables = self._tables()
        if self.shrink > 1:
            tables["head_projection"] = tables.pop("projection_0")
        rare = len(self.cutoffs)
        return tables | {
            "cluster_weight": (rare, self.width),
            "cluster_bias": (rare,),
            "bias": (self.vocabulary,),
        }

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the tokens, the projected tokens and the log-probabilities."""
        tokens = elements(inputs[1])
        products: list[Gemm] = []
        scores = tokens * 0
        sizes = cluster_sizes(self.vocabulary, self.cutoffs)
        for cluster, share in enumerate(cluster_shares(self.vocabulary, self.cutoffs)):
            rows = sizes[cluster] + (0 if cluster else len(self.cutoffs))
            visiting = tokens * (share if cluster else 1)
            narrow = self.width // self.shrink**cluster
            if self.shrink > 1:
                products.append(Gemm(narrow, visiting, self.width))
            products.append(Gemm(rows, visiting, narrow))
            scores = scores + rows * visiting
        weights = count_parameters(self.parameters(inputs))
        wide = scores * FLOAT32_BYTES
        return Work(
            forward=tuple(products),
            weight_gradient=tuple(Gemm(g.m, g.k, g.n, grows="k") for g in products),
            input_gradient=tuple(Gemm(g.k, g.n, g.m) for g in products),
            forward_traffic=Traffic(elements(inputs[0]) + 2 * scores, weights, other_bytes=wide),
            backward_traffic=Traffic(
                2 * elements(inputs[0]) + 2 * scores, weights, weights, other_bytes=wide
            ),
            kept=Kept((0, 1), elements=tokens * self.width, other_bytes=wide),
        )


def _harmonic(count: int) -> float:
    """Sum of 1/k for k up to ``count``, to a relative error below 1e-6 from 100 on."""
    return math.log(count) + _EULER + 1 / (2 * count)
