"""Attention: scaled dot-product, with relative positions, additive; rotary positions."""

from dataclasses import replace

import numpy as np

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Number, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    fixed_dimension,
    require_positive,
)
from paceline.workload.ops.work import FLOAT32_BYTES, Kept, Traffic, Work

# Passes over the score matrix of unfused attention. Forward: write scores, read and write softmax,
# read for the product with the values. Backward: the same for their gradients, and the
# probabilities twice.
_SCORE_PASSES_FORWARD = 4
_SCORE_PASSES_BACKWARD = 7
TILE = 128
"""Side of the tiles of fused kernels; tiles on the diagonal are computed whole."""


@operation("attention", inputs=3)
class Attention(Op):
    """Softmax attention of queries over keys and values, each tokens x (heads * head_dim).

    ``kv_heads`` below ``heads`` is grouped-query attention; values may be ``value_dim`` wide
    (0: as the keys). A query attends to the last ``window`` keys up to its own (0: all);
    ``sinks`` are a learned score per head without a value, which every query attends to;
    ``relative_buckets`` are rows of a table of scores per head by distance (T5). All scores are
    counted even if ``causal`` or a window masks some, and backward counts the four GEMMs of the
    gradient (as ``torch.utils.flop_counter`` does for unfused attention). ``fused`` kernels
    (FlashAttention, Dao et al. 2022) never write the scores to memory, skip masked tiles, and
    recompute scores in backward.
    """

    heads: int
    kv_heads: int
    head_dim: int
    causal: bool = False
    fused: bool = True
    value_dim: int = 0
    window: int = 0
    sinks: bool = False
    relative_buckets: int = 0

    def __post_init__(self) -> None:
        require_positive(heads=self.heads, kv_heads=self.kv_heads, head_dim=self.head_dim)
        if self.heads % self.kv_heads:
            raise InputError(
                f"{self.heads} heads are not divisible by {self.kv_heads} key-value heads"
            )
        if min(self.value_dim, self.window, self.relative_buckets) < 0:
            raise InputError("value_dim, window and relative_buckets must not be negative")
        if self.window and not self.causal:
            raise InputError("a sliding window needs causal attention", "set causal or window = 0")

    def output(self, inputs: Shapes) -> Shape:
        query, key, value = inputs
        width = self.value_dim or self.head_dim
        _require_tokens(query, self.heads * self.head_dim, "queries")
        _require_tokens(key, self.kv_heads * self.head_dim, "keys")
        _require_tokens(value, self.kv_heads * width, "values")
        if differs(key[0], value[0]):
            raise InputError(
                f"keys {describe(key)} and values {describe(value)} have different lengths"
            )
        return (query[0], self.heads * width)

    def parameters(self, inputs: Shapes) -> Parameters:
        """Scores of sinks and of relative positions, if any."""
        shapes: dict[str, tuple[int, ...]] = {"sinks": (self.heads,)} if self.sinks else {}
        if self.relative_buckets:
            shapes["distances"] = (self.relative_buckets, self.heads)
        return shapes

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Two GEMMs per head forward, four backward; saves queries, keys and values."""
        query, key, value = inputs
        queries, keys = query[0], key[0]
        moved = elements(query) + elements(key) + elements(value)
        result = elements(self.output(inputs))
        scores = self.heads * queries * keys
        weights = count_parameters(self.parameters(inputs))
        written = 0 if self.fused else scores
        if self.fused:  # FlashAttention saves its output and the log-sum-exp of every row
            kept = Kept((0, 1, 2), True, other_bytes=self.heads * queries * FLOAT32_BYTES)
        else:
            kept = Kept((0, 1, 2), elements=scores)
        forward, backward = dot_products(queries, keys, self.head_dim, self.heads, self.value_dim)
        if self.fused:
            seen = self._computed_share(keys)
            forward = tuple(replace(product, executed=seen) for product in forward)
            # The scores are recomputed: five GEMMs for the four that are counted.
            again = seen * (1.0 + 1.0 / len(backward))
            backward = tuple(replace(product, executed=again) for product in backward)
        return Work(
            forward=forward,
            input_gradient=backward if needs_input_gradient else (),
            forward_traffic=Traffic(moved + result + _SCORE_PASSES_FORWARD * written, weights),
            backward_traffic=Traffic(
                2 * (moved + result) + _SCORE_PASSES_BACKWARD * written, weights, weights
            ),
            kept=kept,
        )

    def _computed_share(self, keys: Number) -> Number:
        """Share of the score matrix in tiles that are not fully masked."""
        if not self.causal:
            return 1.0
        looked_back = np.minimum(self.window or np.inf, keys)
        edges = np.where(looked_back < keys, 2.0, 1.0)  # the diagonal, and the far side of a window
        seen = looked_back * (keys - looked_back / 2.0) + edges * TILE * keys / 2.0
        return np.minimum(1.0, np.minimum(seen, keys * (keys + TILE) / 2.0) / (keys * 1.0 * keys))


@operation("relative_attention", inputs=3)
class RelativeAttention(Op):
    """Attention with relative positions over a memory and the segment (Transformer-XL).

    Every head also scores the queries against projected positions, so forward has three GEMMs.
    The projection of the positions does not grow with the batch.
    """

    heads: int
    head_dim: int

    def __post_init__(self) -> None:
        require_positive(heads=self.heads, head_dim=self.head_dim)

    def output(self, inputs: Shapes) -> Shape:
        width = self.heads * self.head_dim
        for shape, what in zip(inputs, ("queries", "keys", "values"), strict=True):
            _require_tokens(shape, width, what)
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        """Projection of the positions, and the biases of content and of position."""
        width = self.heads * self.head_dim
        bias = (self.heads, self.head_dim)
        return {"positions": (width, width), "content_bias": bias, "position_bias": bias}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves queries, keys, values and the probabilities."""
        query, key, value = inputs
        queries, keys, width = query[0], key[0], self.heads * self.head_dim
        scores = self.heads * queries * keys
        moved = elements(query) + elements(key) + elements(value) + elements(query)
        weights = count_parameters(self.parameters(inputs))
        forward, backward = dot_products(queries, keys, self.head_dim, self.heads)
        # The scores by position are a second matrix, shifted and added to those by content (Dai et
        # al. 2019, appendix B): it is written once and read once more than in plain attention.
        by_position = Gemm(queries, keys, self.head_dim, self.heads, "count")
        by_position_backward = (
            Gemm(queries, self.head_dim, keys, self.heads, "count"),
            Gemm(keys, self.head_dim, queries, self.heads, "count"),
        )
        return Work(
            forward=(Gemm(width, keys, width, grows="nothing"), by_position, *forward),
            weight_gradient=(Gemm(width, width, keys, grows="nothing"),),
            input_gradient=(*by_position_backward, *backward) if needs_input_gradient else (),
            forward_traffic=Traffic(moved + (_SCORE_PASSES_FORWARD + 2) * scores, weights),
            backward_traffic=Traffic(
                2 * moved + (_SCORE_PASSES_BACKWARD + 2) * scores, weights, weights
            ),
            kept=Kept((0, 1, 2), elements=scores),
        )


@operation("additive_attention", inputs=2)
class AdditiveAttention(Op):
    """Normalised Bahdanau attention: scores are v . tanh(query + key) (GNMT).

    Every sum of a query and a key is written to memory, ``width`` values per pair.
    """

    width: int

    def __post_init__(self) -> None:
        require_positive(width=self.width)

    def output(self, inputs: Shapes) -> Shape:
        """One context, of the width of the keys, for each query."""
        queries, keys = inputs
        _require_tokens(queries, self.width, "queries")
        _require_tokens(keys, self.width, "keys")
        return (queries[0], self.width)

    def parameters(self, inputs: Shapes) -> Parameters:
        """Projections of queries and keys, the scoring vector, its norm and bias."""
        return {
            "query": (self.width, self.width),
            "key": (self.width, self.width),
            "score": (self.width,),
            "norm": (1,),
            "bias": (self.width,),
        }

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Two projections, scores, contexts; saves the sums and the probabilities."""
        (queries, _), (keys, _) = inputs
        pairs, width = queries * keys, self.width
        weights = count_parameters(self.parameters(inputs))
        tokens = elements(inputs[0]) + elements(inputs[1])
        scoring = Gemm(1, pairs, width, grows="n")
        context = Gemm(queries, width, keys, grows="count")
        projections = (Gemm(width, queries, width), Gemm(width, keys, width))
        return Work(
            forward=(*projections, scoring, context),
            weight_gradient=(
                Gemm(width, width, queries, grows="k"),
                Gemm(width, width, keys, grows="k"),
                Gemm(1, width, pairs, grows="k"),
            ),
            input_gradient=(
                *projections,
                Gemm(width, pairs, 1, grows="n"),
                Gemm(queries, keys, width, grows="count"),
                Gemm(keys, width, queries, grows="count"),
            )
            if needs_input_gradient
            else (),
            forward_traffic=Traffic(3 * tokens + 4 * pairs * width, weights),
            backward_traffic=Traffic(6 * tokens + 6 * pairs * width, weights, weights),
            kept=Kept((0, 1), elements=tokens + pairs * (width + 1)),
        )


@operation("rotary")
class Rotary(Op):
    """Rotary position embedding (Su et al. 2021)."""

    head_dim: int

    def __post_init__(self) -> None:
        require_positive(head_dim=self.head_dim)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        if len(shape) != 2 or fixed_dimension(shape, -1) % self.head_dim:
            raise InputError(f"needs tokens x heads of {self.head_dim} (got {describe(shape)})")
        return shape

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One pass each way; the angles are constants."""
        moved = Traffic(2 * elements(inputs[0]))
        return Work(forward_traffic=moved, backward_traffic=moved)


def dot_products(
    queries: Number, keys: Number, head_dim: int, heads: int, value_dim: int = 0
) -> tuple[tuple[Gemm, ...], tuple[Gemm, ...]]:
    """GEMMs of dot-product attention of one sample, forward and backward."""
    width = value_dim or head_dim
    scores = Gemm(queries, keys, head_dim, heads, "count")
    result = Gemm(queries, width, keys, heads, "count")
    to_scores = Gemm(queries, keys, width, heads, "count")
    to_queries = Gemm(queries, head_dim, keys, heads, "count")
    to_keys = Gemm(keys, head_dim, queries, heads, "count")
    to_values = Gemm(keys, width, queries, heads, "count")
    return (scores, result), (to_scores, to_queries, to_keys, to_values)


def _require_tokens(shape: Shape, width: int, what: str) -> None:
    if len(shape) != 2 or fixed_dimension(shape, -1) != width:
        raise InputError(f"{what} must be tokens x {width} (got {describe(shape)})")
