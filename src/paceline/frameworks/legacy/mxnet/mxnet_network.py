"""A network as one hybrid block of MXNet, which compiles it; channels first."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import mxnet as mx
from layer_graph import value_shapes, whole_program
from mxnet import gluon
from mxnet_layers import LAYERS
from mxnet_sequence_layers import SEQUENCE_LAYERS
from numpy_data import initial_statistics, initial_weights

OPERATIONS = {**LAYERS, **SEQUENCE_LAYERS}


class Network(gluon.HybridBlock):
    """The loss of a batch as one block; inputs are in the order of the graph."""

    def __init__(self, job: Mapping[str, Any], context: mx.Context) -> None:
        super().__init__(prefix="")
        graph = job["graph"]
        self.program = whole_program(with_read_shapes(graph))
        self.names = list(graph["inputs"])
        weights = initial_weights(graph, job["seed"])
        for name, value in {**weights, **initial_statistics(graph)}.items():
            trained = "write" if name in weights else "null"
            parameter = self.params.get(
                name, shape=value.shape, init=mx.init.Zero(), grad_req=trained
            )
            setattr(self, name, parameter)
            parameter.initialize(ctx=context)
            parameter.set_data(mx.nd.array(value, ctx=context))

    def hybrid_forward(self, F: Any, *values: Any, **own: Any) -> Any:  # noqa: N803
        """The mean loss; ``F`` is MXNet's module of functions on arrays or on symbols."""
        operations = {name: partial(operation, F) for name, operation in OPERATIONS.items()}
        inputs = dict(zip(self.names, values, strict=True))
        return self.program.run(operations, own, inputs)


def with_read_shapes(graph: Mapping[str, Any]) -> dict[str, Any]:
    """The graph with the shapes of inputs in each node (``read``): symbols have no shapes."""
    shapes = value_shapes(graph)
    nodes = [{**node, "read": [shapes[name] for name in node["inputs"]]} for node in graph["nodes"]]
    return {**graph, "nodes": nodes}
