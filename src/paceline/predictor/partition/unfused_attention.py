"""Attention without a fused kernel, as before FlashAttention."""

from dataclasses import dataclass, fields, replace

from paceline.workload.cost import Number
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, Kept, Traffic, Work
from paceline.workload.ops.base import Shapes
from paceline.workload.ops.work import MASK_BYTES


@dataclass(frozen=True, slots=True)
class UnfusedAttention(Attention):
    """Attention that writes its scores to memory and applies dropout to the probabilities.

    Dropout reads and writes the probabilities once more in each direction, with a mask;
    ``kernels.memory.attention`` was fitted with this traffic. Probabilities before and after
    dropout and the mask are kept: 5 bytes per score in 16 bits, as in Korthikanti et al. (2022).
    """

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work of attention plus dropout of the probabilities."""
        plain = Attention.work(self, inputs, needs_input_gradient)
        scores: Number = self.heads * inputs[0][0] * inputs[1][0]
        dropped = Traffic(2 * scores, other_bytes=MASK_BYTES * scores)
        return replace(
            plain,
            forward_traffic=plain.forward_traffic + dropped,
            backward_traffic=plain.backward_traffic + dropped,
            kept=Kept((0, 1, 2), elements=2 * scores, other_bytes=MASK_BYTES * scores),
        )


def with_unfused_scores(graph: Graph) -> Graph:
    """The graph with `UnfusedAttention` in place of every fused attention."""
    return replace(
        graph,
        nodes=tuple(
            replace(node, op=_unfused(node.op)) if isinstance(node.op, Attention) else node
            for node in graph.nodes
        ),
    )


def _unfused(op: Attention) -> UnfusedAttention:
    settings = {setting.name: getattr(op, setting.name) for setting in fields(op)}
    return UnfusedAttention(**settings | {"fused": False})
