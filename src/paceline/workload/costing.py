"""Costing a graph: shapes, gradients, traffic and kept tensors of every node in one pass."""

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from paceline.errors import InputError, PacelineError
from paceline.workload.cost import Affine, Gemm, GraphProfile, LayerProfile, Shape
from paceline.workload.ops.base import INDEX_BYTES, Op, Parameters, Shapes, Work, elements
from paceline.workload.precision import Precision

if TYPE_CHECKING:
    from paceline.workload.graph import Graph, Node

# Where a tensor has several consumers their gradients are added: two in, one out.
_ACCUMULATION_PASSES = 3


def graph_profile(
    graph: "Graph", input_shapes: Mapping[str, Shape], precision: Precision
) -> GraphProfile:
    """Costs of every node as functions of the batch, inputs having the given shapes."""
    return _Costing(graph, input_shapes, precision).run()


class _Costing:
    """State of the pass: what is known of the nodes before the current one."""

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

    def run(self) -> GraphProfile:
        return GraphProfile(tuple(self._layer(node) for node in self.graph.nodes))

    def _layer(self, node: "Node") -> LayerProfile:
        inputs = tuple(self.shapes[name] for name in node.inputs)
        needs_input_gradient = any(name in self.trained for name in node.inputs)
        try:
            output, parameters, work = _describe(node.op, inputs, needs_input_gradient)
            tensors = self._owned_tensors(node, parameters)
        except PacelineError as error:
            where = f"node '{node.name}' ({node.op.kind}): {error.message}"
            raise type(error)(where, error.hint) from None
        trains = needs_input_gradient or bool(parameters)
        self.shapes[node.name] = output
        self.parameters[node.name] = parameters
        self.storage[node.name] = self.storage[node.inputs[0]] if node.op.is_view else node.name
        if trains:
            self.trained.add(node.name)
        return LayerProfile(
            name=node.name,
            kind=node.op.cost_kind,
            tensors=tensors,
            gradient_bytes=sum(size for _, size in tensors) * self.precision.gradient_bytes,
            output_shape=output,
            forward_flops=_flops(work.forward),
            weight_gradient_flops=_flops(work.weight_gradient if trains else ()),
            input_gradient_flops=_flops(work.input_gradient if trains else ()),
            forward_bytes=work.forward_traffic.size(self.precision),
            backward_bytes=self._backward_bytes(node, work) if trains else Affine(),
            activation_bytes=self._kept_bytes(node, work) if trains else Affine(),
            forward_gemms=work.forward,
            weight_gradient_gemms=work.weight_gradient if trains else (),
            input_gradient_gemms=work.input_gradient if trains else (),
        )

    def _owned_tensors(self, node: "Node", parameters: Parameters) -> tuple[tuple[str, int], ...]:
        owner = node.shares_weights_with
        theirs = {} if owner is None else self.parameters.get(owner, {})
        own = {name: shape for name, shape in parameters.items() if theirs.get(name) != shape}
        if owner is not None and len(own) == len(parameters):
            raise InputError(
                f"has no tensor in common with '{owner}', whose weights it should share: "
                f"{dict(parameters)} here, {dict(theirs)} there"
            )
        return tuple((name, math.prod(shape)) for name, shape in own.items())

    def _backward_bytes(self, node: "Node", work: Work) -> Affine:
        moved = work.backward_traffic.size(self.precision)
        further = max(0, self.consumers[node.name] - 1)
        if not further:
            return moved
        added = _ACCUMULATION_PASSES * further * elements(self.shapes[node.name])
        return moved + Affine(0, added * self.precision.activation_bytes)

    def _kept_bytes(self, node: "Node", work: Work) -> Affine:
        width = self.precision.activation_bytes
        kept = work.kept
        per_sample = kept.elements * width + kept.other_bytes
        names = [node.inputs[position] for position in kept.inputs]
        for name in [*names, *([node.name] if kept.output else [])]:
            whole = self.storage[name]
            if whole not in self.kept:
                self.kept.add(whole)
                per_sample = per_sample + elements(self.shapes[whole]) * self._width(whole)
        return Affine(kept.step_bytes, per_sample)

    def _width(self, tensor: str) -> int:
        spec = self.graph.inputs.get(tensor)
        if spec is not None and spec.dtype == "integer":
            return INDEX_BYTES
        return self.precision.activation_bytes


def _flops(gemms: tuple[Gemm, ...]) -> Affine:
    total = Affine()
    for gemm in gemms:
        total = total + gemm.flops
    return total


def _describe(op: Op, inputs: Shapes, needs_input_gradient: bool) -> tuple[Shape, Parameters, Work]:
    """Shape, parameters and work of one operation; blocks that repeat are computed once."""
    if all(isinstance(size, int) for shape in inputs for size in shape):
        return _describe_once(op, inputs, needs_input_gradient)
    return _compute(op, inputs, needs_input_gradient)


def _compute(op: Op, inputs: Shapes, needs_input_gradient: bool) -> tuple[Shape, Parameters, Work]:
    output = op.output(inputs)
    return output, op.parameters(inputs), op.work(inputs, needs_input_gradient)


_describe_once = lru_cache(maxsize=4096)(_compute)
