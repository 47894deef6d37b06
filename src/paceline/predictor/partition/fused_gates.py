"""Gated MLPs with activation and product fused into one kernel (no intermediate is kept)."""

from collections import Counter
from dataclasses import dataclass, replace

from paceline.workload.graph import Graph, Node
from paceline.workload.ops import Activation, Kept, MixtureOfExperts, Multiply, Work
from paceline.workload.ops.base import Shapes


@dataclass(frozen=True, slots=True)
class FusedGate(Multiply):
    """A product that recomputes its first factor from the kept input of the activation."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work of a product that keeps only its second factor."""
        return replace(Multiply.work(self, inputs, needs_input_gradient), kept=Kept(inputs=(1,)))


@dataclass(frozen=True, slots=True)
class FusedExperts(MixtureOfExperts):
    """Gated experts that do not keep the result of the activation."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work of experts without kept activation results."""
        plain = MixtureOfExperts.work(self, inputs, needs_input_gradient)
        results = inputs[0][0] * self.top_k * self.hidden
        return replace(plain, kept=replace(plain.kept, elements=plain.kept.elements - results))


def with_fused_gates(graph: Graph) -> Graph:
    """The graph with fused gates: ``silu(gate(x)) * up(x)`` keeps two inputs and the result."""
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    activations = {
        node.name
        for node in graph.nodes
        if isinstance(node.op, Activation) and readers[node.name] == 1
    }
    return replace(graph, nodes=tuple(_fused(node, activations) for node in graph.nodes))


def _fused(node: Node, activations: set[str]) -> Node:
    op = node.op
    if isinstance(op, Multiply) and node.inputs[0] in activations:
        return replace(node, op=FusedGate())
    if isinstance(op, MixtureOfExperts) and op.gated:
        fused = FusedExperts(op.experts, op.top_k, op.hidden, gated=True, bias=op.bias)
        return replace(node, op=fused)
    return node
