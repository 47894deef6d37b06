"""Cross entropy in one kernel, which writes gradients over the scores."""

from dataclasses import dataclass, replace

from paceline.workload.graph import Graph
from paceline.workload.ops import CrossEntropy, Kept, Traffic, Work
from paceline.workload.ops.base import Shapes
from paceline.workload.ops.dimensions import elements
from paceline.workload.ops.work import INDEX_BYTES


@dataclass(frozen=True, slots=True)
class FusedCrossEntropy(CrossEntropy):
    """Cross entropy whose gradient overwrites the scores (Liger, Transformer Engine).

    Forward reads the scores for their maximum and sum, then reads them and writes the gradient;
    backward scales it.
    """

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the scores, which hold the gradients."""
        scores, indices = elements(inputs[0]), elements(inputs[1]) * INDEX_BYTES
        return Work(
            forward_traffic=Traffic(3 * scores, other_bytes=indices),
            backward_traffic=Traffic(2 * scores),
            kept=Kept(inputs=(0, 1)),
        )


def with_fused_loss(graph: Graph) -> Graph:
    """The graph with `FusedCrossEntropy` in place of cross entropy."""
    nodes = (
        replace(node, op=FusedCrossEntropy()) if type(node.op) is CrossEntropy else node
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))
