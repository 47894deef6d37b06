"""Add shapes of values and parameters to the JSON form of a graph, for framework workers."""

from collections.abc import Mapping
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.workload.graph import SEQUENCE, Graph, Node


def with_shapes(document: Mapping[str, Any], sequence: int | None = None) -> dict[str, Any]:
    """Add ``output_shape`` and ``parameter_shapes`` (by name) to the nodes of a graph's JSON.

    Shapes are of one sample, parameters as PyTorch stores them. ``sequence`` replaces the sequence
    dimension of inputs; the default is the graph's own.
    """
    graph = Graph.from_json(document)
    length = sequence or graph.sequence
    if length is None and graph.uses_sequence:
        raise InputError(f"graph '{graph.name}' needs a sequence length", "give --seq or sequence")
    inputs = {
        name: {**spec, "shape": [length if size == SEQUENCE else size for size in spec["shape"]]}
        for name, spec in document["inputs"].items()
    }
    shapes: dict[str, tuple[Any, ...]] = {name: tuple(s["shape"]) for name, s in inputs.items()}
    nodes = []
    for node, fields in zip(graph.nodes, document["nodes"], strict=True):
        output, parameters = _shapes_of(node, tuple(shapes[name] for name in node.inputs))
        shapes[node.name] = output
        described = {name: list(shape) for name, shape in parameters.items()}
        nodes.append({**fields, "output_shape": list(output), "parameter_shapes": described})
    return {**document, "inputs": inputs, "nodes": nodes}


def _shapes_of(
    node: Node, inputs: tuple[tuple[Any, ...], ...]
) -> tuple[tuple[Any, ...], Mapping[str, tuple[int, ...]]]:
    try:
        return node.op.output(inputs), node.op.parameters(inputs)
    except PacelineError as error:
        where = f"node '{node.name}' ({node.op.kind}): {error.message}"
        raise type(error)(where, error.hint) from None
