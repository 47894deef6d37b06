"""Memory of token losses: scores, their probabilities and gradients, by kernel of the loss."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from paceline.predictor.memory.memory_parts import Numbers
from paceline.predictor.partition.fused_operations import FusedCrossEntropy
from paceline.predictor.partition.sharding import ShardedLayer, Sharding
from paceline.predictor.plan.plan_choices import TORCH_LOSS_COPIES, LossKernel
from paceline.workload.cost import Affine, Number, total
from paceline.workload.graph import Graph
from paceline.workload.ops import CrossEntropy, Linear
from paceline.workload.ops.dimensions import elements

_WIDE_BYTES = 4


@dataclass(frozen=True)
class LossMemory:
    """How a program computes its loss.

    ``copies`` are copies of the scores that the plain loss of the program holds at its peak,
    counted in fp32: a copy in 16 bits is half of one.
    """

    kernel: LossKernel = LossKernel.PLAIN
    copies: float = TORCH_LOSS_COPIES

    def kept_bytes(self, sharding: Sharding, position: int, layer: ShardedLayer) -> Affine:
        """Bytes kept from the forward to the backward pass of a loss.

        Plain: probabilities in fp32. Fused: gradients in the format of the scores, which they
        overwrite. Chunked: the gradient of the hidden states, as output layer and loss are
        computed chunk by chunk (Liger's fused linear cross entropy).
        """
        own = layer.profile.activation_bytes
        if self.kernel is not LossKernel.CHUNKED or not _is_fused(sharding.graph, position):
            return own
        hidden = _hidden_of(sharding, sharding.graph.nodes[position].inputs[0])
        return own if hidden is None else sharding.output_bytes(hidden)

    def peak_bytes(
        self,
        layers: Sequence[ShardedLayer],
        sharding: Sharding,
        batch: Numbers,
        placeholder: Numbers = 0.0,
    ) -> Numbers:
        """Temporary memory of losses and output layer at their peak, for ``batch`` samples.

        The peak is in the loss, or in backward of the output layer: gradients of the scores and
        the ``placeholder`` of its weight gradient instead of what the loss kept.
        """
        working = self.working_bytes(layers, sharding).at(batch)
        if not placeholder:
            return np.asarray(working)
        kept = self._total(self.kept_bytes, layers, sharding).at(batch)
        chunked = self.kernel is LossKernel.CHUNKED
        passed = 0.0 if chunked else self._total(_score_bytes, layers, sharding).at(batch)
        return np.maximum(working, passed - kept + placeholder)

    def _total(
        self,
        size_of: Callable[[Sharding, int, ShardedLayer], Affine],
        layers: Sequence[ShardedLayer],
        sharding: Sharding,
    ) -> Affine:
        """Sum over all losses."""
        return total(size_of(sharding, i, layers[i]) for i in _losses(sharding.graph))

    def working_bytes(self, layers: Sequence[ShardedLayer], sharding: Sharding) -> Affine:
        """Temporary memory of the losses at their peak, in addition to what they keep."""
        return self._total(self._working_bytes, layers, sharding)

    def _working_bytes(self, sharding: Sharding, position: int, layer: ShardedLayer) -> Affine:
        own = layer.profile.activation_bytes.per_sample
        if not _is_fused(sharding.graph, position):
            short = sharding.precision.activation_bytes < _WIDE_BYTES
            return Affine(0, ((self.copies if short else self.copies // 1) - 1.0) * own)
        scores = sharding.graph.nodes[position].inputs[0]
        hidden = _hidden_of(sharding, scores)
        if self.kernel is LossKernel.FUSED or hidden is None:
            return Affine()
        vocabulary, features = (
            float(elements(sharding.output_shape(name)[-1:])) for name in (scores, hidden)
        )
        # Liger divides rows by ceil(vocabulary / features), so a chunk is as large as its input.
        return Affine(0, own / -(-vocabulary // features))


TORCH_LOSS = LossMemory()


def _is_fused(graph: Graph, position: int) -> bool:
    return isinstance(graph.nodes[position].op, FusedCrossEntropy)


def _score_bytes(sharding: Sharding, position: int, layer: ShardedLayer) -> Affine:
    """Scores in the format between layers: also the size of their gradients."""
    own = layer.profile.activation_bytes.per_sample
    width = sharding.precision.activation_bytes
    return Affine(0, own if _is_fused(sharding.graph, position) else own * width / _WIDE_BYTES)


def output_layer_elements(sharding: Sharding) -> Number:
    """Weights of the largest output layer: the linear layer whose scores enter a loss."""
    graph = sharding.graph
    names = [graph.nodes[index].inputs[0] for index in _losses(graph)]
    pairs = [(name, hidden) for name in names if (hidden := _hidden_of(sharding, name)) is not None]
    sizes = [
        sharding.output_shape(name)[-1] * sharding.output_shape(hidden)[-1]
        for name, hidden in pairs
        if not graph.node(name).frozen
    ]
    return max(sizes, default=0)


def _hidden_of(sharding: Sharding, scores: str) -> str | None:
    """Input of the linear layer that computes the scores; None if another operation does."""
    if scores in sharding.graph.inputs:
        return None
    node = sharding.graph.node(scores)
    is_layer = isinstance(node.op, Linear) and node.inputs[0] not in sharding.graph.inputs
    return node.inputs[0] if is_layer else None


@lru_cache(maxsize=64)
def _losses(graph: Graph) -> tuple[int, ...]:
    """Positions of the losses."""
    return tuple(i for i, node in enumerate(graph.nodes) if isinstance(node.op, CrossEntropy))
