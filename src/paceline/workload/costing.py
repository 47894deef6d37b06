"""Costs of a graph: shapes, gradients, traffic and saved tensors of every node in one pass."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from paceline.errors import InputError, PacelineError
from paceline.workload.cost import (
    NOTHING,
    Affine,
    Gemm,
    GraphProfile,
    LayerProfile,
    Number,
    Shape,
    total,
)
from paceline.workload.ops.base import Op, Parameters, Shapes
from paceline.workload.ops.dimensions import elements
from paceline.workload.ops.work import INDEX_BYTES, Work
from paceline.workload.precision import Precision

if TYPE_CHECKING:
    from paceline.workload.graph import Graph, Node

AS_OPERAND = " as operand"
"""Ending of the name of a tensor that a linear layer saves in the format of its operands."""
KeptTensors: TypeAlias = tuple[tuple[str, Number], ...]
Tensors: TypeAlias = tuple[tuple[str, int], ...]
"""Name and number of elements of parameter tensors."""

# Autograd adds the gradients of several consumers of a tensor: two reads, one write.
_ACCUMULATION_PASSES = 3


def graph_profile(
    graph: "Graph", input_shapes: Mapping[str, Shape], precision: Precision
) -> GraphProfile:
    """Compute costs of every node as functions of the batch for the given input shapes."""
    return _Costing(graph, input_shapes, precision).run()


class _Costing:
    """State of the pass over the nodes."""

    def __init__(
        self, graph: "Graph", input_shapes: Mapping[str, Shape], precision: Precision
    ) -> None:
        self.graph = graph
        self.precision = precision
        self.shapes: dict[str, Shape] = dict(input_shapes)
        self.parameters: dict[str, Parameters] = {}
        self.trained: set[str] = set()
        self.storage = {name: name for name in input_shapes}
        self.kept: set[str] = set()
        self.consumers = Counter(name for node in graph.nodes for name in node.inputs)
        self.scores = {
            name for node in graph.nodes if node.op.kind == "cross_entropy" for name in node.inputs
        }

    def run(self) -> GraphProfile:
        return GraphProfile(tuple(self._layer(node) for node in self.graph.nodes))

    def _layer(self, node: "Node") -> LayerProfile:
        inputs = tuple(self.shapes[name] for name in node.inputs)
        needs_input_gradient = any(name in self.trained for name in node.inputs)
        try:
            alone = _cost_alone(node.op, inputs, needs_input_gradient, node.frozen, self.precision)
            tensors, frozen = self._owned_tensors(node, alone)
        except PacelineError as error:
            where = f"node '{node.name}' ({node.op.kind}): {error.message}"
            raise type(error)(where, error.hint) from None
        self.shapes[node.name] = alone.output
        self.parameters[node.name] = alone.parameters
        # A view has the storage of its input, so a saved tensor and its views count once.
        self.storage[node.name] = self.storage[node.inputs[0]] if node.op.is_view else node.name
        if alone.trains:
            self.trained.add(node.name)
        work = alone.work
        kept, tensors_kept = self._kept(node, work) if alone.trains else (NOTHING, ())
        return LayerProfile(
            name=node.name,
            kind=node.op.cost_kind,
            tensors=tensors,
            frozen_tensors=frozen,
            gradient_bytes=self._gradient_bytes(node, alone, tensors),
            output_shape=alone.output,
            forward_flops=alone.forward_flops,
            weight_gradient_flops=alone.weight_gradient_flops,
            input_gradient_flops=alone.input_gradient_flops,
            forward_bytes=alone.forward_bytes,
            backward_bytes=self._backward_bytes(node, alone),
            activation_bytes=kept,
            forward_gemms=work.forward,
            weight_gradient_gemms=work.weight_gradient if alone.trains else (),
            input_gradient_gemms=work.input_gradient if alone.trains else (),
            kept_tensors=tensors_kept,
        )

    def _owned_tensors(self, node: "Node", alone: "_Alone") -> tuple[Tensors, Tensors]:
        """Names and sizes of the node's trained tensors and of its frozen ones."""
        own = _sizes(self._not_shared(node, alone.parameters))
        frozen = _sizes(alone.frozen_parameters)
        return ((), own + frozen) if node.frozen else (own, frozen)

    def _not_shared(self, node: "Node", parameters: Parameters) -> Parameters:
        owner = node.shares_weights_with
        if owner is None:
            return parameters
        theirs = self.parameters.get(owner, {})
        own = {name: shape for name, shape in parameters.items() if theirs.get(name) != shape}
        if len(own) == len(parameters):
            raise InputError(
                f"has no tensor in common with '{owner}' to share: {dict(parameters)} here, "
                f"{dict(theirs)} there"
            )
        return own

    def _gradient_bytes(self, node: "Node", alone: "_Alone", tensors: Tensors) -> Affine:
        width = self.precision.gradient_bytes
        if node.frozen:
            return NOTHING
        count = alone.gradient_elements
        owned = count.fixed
        if node.shares_weights_with is not None:  # a shared tensor has one gradient, the owner's
            owned = min(owned, sum(size for _, size in tensors))
        return Affine(owned * width, count.per_sample * width)

    def _backward_bytes(self, node: "Node", alone: "_Alone") -> Affine:
        # Autograd adds the gradients of further consumers; recorded bytes include that.
        further = self.consumers[node.name] - 1
        if further < 1 or not alone.trains or node.op.holds_gradient_sums:
            return alone.backward_bytes
        added = _ACCUMULATION_PASSES * further * elements(alone.output)
        return alone.backward_bytes + Affine(0, added * self.precision.activation_bytes)

    def _kept(self, node: "Node", work: Work) -> tuple[Affine, KeptTensors]:
        """Kept bytes without tensors that earlier layers keep, and all kept tensors."""
        kept, for_weights = work.kept, work.kept_for_weights
        read = [(node.inputs[position], False) for position in kept.inputs]
        read += [(node.inputs[position], True) for position in for_weights.inputs]
        read += [(node.name, False)] if kept.output else []
        tensors = tuple(self._stored(node, name, operand=operand) for name, operand in read)
        per_sample = kept.own_bytes(self.precision)
        for name, size in tensors:
            if name not in self.kept:
                self.kept.add(name)
                per_sample = per_sample + size
        return Affine(kept.step_bytes, per_sample), tensors

    def _stored(self, node: "Node", name: str, *, operand: bool) -> tuple[str, Number]:
        """Name and bytes per sample of the tensor that is saved to keep ``name``.

        A linear layer that converts its input to a shorter format may save that (Transformer
        Engine); the output layer computes in the format of the tensors between layers.
        """
        saved = self.precision.saved_operand_bytes
        converted = node.op.kind == "linear" and node.name not in self.scores
        if operand and converted and saved is not None:
            return f"{name}{AS_OPERAND}", elements(self.shapes[name]) * saved
        whole = self.storage[name]
        return whole, elements(self.shapes[whole]) * self._width(whole)

    def _width(self, tensor: str) -> int:
        spec = self.graph.inputs.get(tensor)
        if spec is not None and spec.dtype == "integer":
            return INDEX_BYTES
        return self.precision.activation_bytes


@dataclass(frozen=True, slots=True)
class _Alone:
    """Costs of an operation that do not depend on its neighbours; cached for repeated blocks."""

    output: Shape
    parameters: Parameters
    frozen_parameters: Parameters
    gradient_elements: Affine
    work: Work
    trains: bool
    forward_flops: Affine
    weight_gradient_flops: Affine
    input_gradient_flops: Affine
    forward_bytes: Affine
    backward_bytes: Affine


def _cost_alone(
    op: Op, inputs: Shapes, needs_input_gradient: bool, frozen: bool, precision: Precision
) -> _Alone:
    # Dimensions of a sweep are arrays, which are not hashable.
    if all(isinstance(size, int) for shape in inputs for size in shape):
        return _cost_alone_once(op, inputs, needs_input_gradient, frozen, precision)
    return _compute_alone(op, inputs, needs_input_gradient, frozen, precision)


def _compute_alone(
    op: Op, inputs: Shapes, needs_input_gradient: bool, frozen: bool, precision: Precision
) -> _Alone:
    output = op.output(inputs)
    parameters = op.parameters(inputs)
    work = op.work(inputs, needs_input_gradient)
    if frozen:
        work = work.without_weight_gradient()
    trains = needs_input_gradient or (bool(parameters) and not frozen)
    backward_traffic = work.backward_traffic + work.weight_gradient_traffic
    return _Alone(
        output=output,
        parameters=parameters,
        frozen_parameters=op.frozen_parameters(inputs),
        gradient_elements=op.gradient_elements(inputs),
        work=work,
        trains=trains,
        forward_flops=_flops(work.forward),
        weight_gradient_flops=_flops(work.weight_gradient) if trains else NOTHING,
        input_gradient_flops=_flops(work.input_gradient) if trains else NOTHING,
        forward_bytes=work.forward_traffic.size(precision),
        backward_bytes=backward_traffic.size(precision) if trains else NOTHING,
    )


_cost_alone_once = lru_cache(maxsize=4096)(_compute_alone)


def _sizes(parameters: Parameters) -> Tensors:
    return tuple((name, math.prod(shape)) for name, shape in parameters.items())


def _flops(gemms: tuple[Gemm, ...]) -> Affine:
    return total(gemm.flops for gemm in gemms)
