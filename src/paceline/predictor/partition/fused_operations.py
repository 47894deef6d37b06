"""Operations as programs fuse them: gates, losses and attention with or without fused kernels."""

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

from paceline.workload.cost import Number
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import (
    Activation,
    Attention,
    CrossEntropy,
    Kept,
    MixtureOfExperts,
    Multiply,
    Traffic,
    Work,
)
from paceline.workload.ops.base import Shapes
from paceline.workload.ops.dimensions import elements
from paceline.workload.ops.work import INDEX_BYTES, MASK_BYTES


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


@dataclass(frozen=True, slots=True)
class FusedGate(Multiply):
    """A product that recomputes its first factor from the kept input of the activation."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work of a product that keeps only its second factor."""
        return replace(Multiply.work(self, inputs, needs_input_gradient), kept=Kept(inputs=(1,)))


@dataclass(frozen=True, slots=True)
class FusedActivation(Activation):
    """An activation in the kernel of the product that follows it."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work of an activation without memory traffic of its own."""
        plain = Activation.work(self, inputs, needs_input_gradient)
        return replace(plain, forward_traffic=Traffic(), backward_traffic=Traffic())


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
    fused = {
        node.inputs[0]
        for node in graph.nodes
        if isinstance(node.op, Multiply) and node.inputs[0] in activations
    }
    return replace(graph, nodes=tuple(_fused(node, fused) for node in graph.nodes))


def _fused(node: Node, activations: set[str]) -> Node:
    op = node.op
    if isinstance(op, Activation) and node.name in activations:
        return replace(node, op=FusedActivation(**_fields_of(op)))
    if isinstance(op, Multiply) and node.inputs[0] in activations:
        return replace(node, op=FusedGate())
    if isinstance(op, MixtureOfExperts) and op.gated:
        return replace(node, op=FusedExperts(**_fields_of(op)))
    return node


def _fields_of(op: Activation | MixtureOfExperts) -> dict[str, Any]:
    return {each.name: getattr(op, each.name) for each in fields(op)}
