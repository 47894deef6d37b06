"""Attention without a fused kernel, as transformers were trained before there was one."""

from dataclasses import dataclass, fields, replace

from paceline.workload.cost import Number
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, Kept, Traffic, Work
from paceline.workload.ops.base import Shapes
from paceline.workload.ops.work import MASK_BYTES


@dataclass(frozen=True, slots=True)
class WrittenAttention(Attention):
    """Attention that writes its scores to memory and drops out some of its probabilities.

    Dropping out reads and writes the probabilities once more in each direction, with a mask;
    the constant ``kernels.memory.attention`` was fitted with this counted. Kept are the
    probabilities before and after it and the mask: 5 bytes per score in 16 bits, as Korthikanti
    et al. (2022) count.
    """

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """As attention, with dropout of the probabilities."""
        plain = Attention.work(self, inputs, needs_input_gradient)
        scores: Number = self.heads * inputs[0][0] * inputs[1][0]
        dropped = Traffic(2 * scores, other_bytes=MASK_BYTES * scores)
        return replace(
            plain,
            forward_traffic=plain.forward_traffic + dropped,
            backward_traffic=plain.backward_traffic + dropped,
            kept=Kept((0, 1, 2), elements=2 * scores, other_bytes=MASK_BYTES * scores),
        )


def with_written_scores(graph: Graph) -> Graph:
    """The graph with `WrittenAttention` in place of every fused attention."""
    return replace(
        graph,
        nodes=tuple(
            replace(node, op=_written(node.op)) if isinstance(node.op, Attention) else node
            for node in graph.nodes
        ),
    )


def _written(op: Attention) -> WrittenAttention:
    settings = {setting.name: getattr(op, setting.name) for setting in fields(op)}
    return WrittenAttention(**settings | {"fused": False})
