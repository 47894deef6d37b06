"""Builds a network from its graph with Keras layers, on any backend of Keras.

Images have channels last on every backend, Keras's own layout on CPUs.
"""

from collections.abc import Mapping
from typing import Any

import keras
import keras_layers
import keras_sequence_layers
from keras import layers
from keras_layers import channels_last, graph_order
from keras_sequence_layers import TiedLinear
from layer_graph import Node, Shape, parameter_owners, split_loss, trained_parameters
from numpy_data import CHANNELS_LAST, initial_weights

KERAS_NAMES = {
    "batch_norm": {"weight": "gamma", "bias": "beta"},
    "conv": {"weight": "kernel"},
    "embedding": {"weight": "embeddings"},
    "layer_norm": {"weight": "gamma", "bias": "beta"},
    "linear": {"weight": "kernel"},
    "rms_norm": {"weight": "scale"},
}
"""Names of Keras variables that differ from the parameters of the graph."""


def build(job: Mapping[str, Any]) -> keras.Model:
    """The network of a job without its loss, with its initial weights.

    Inputs and outputs are dictionaries by the names in the graph; images have channels last.
    """
    keras.config.set_image_data_format("channels_last")
    # Layers compute in bfloat16 and keep their weights in float32.
    keras.config.set_dtype_policy("float32" if job["precision"] == "fp32" else "mixed_bfloat16")
    graph = job["graph"]
    nodes, _, outputs = split_loss(graph)
    read = {name for node in nodes for name in node["inputs"]}
    given = {
        name: keras.Input(_channels_last_shape(tuple(spec["shape"])), name=name, dtype=_dtype(spec))
        for name, spec in graph["inputs"].items()
        if name in read
    }
    values: dict[str, Any] = dict(given)
    built = _Layers(graph)
    for node in nodes:
        values[node["name"]] = built.run(node, [values[name] for name in node["inputs"]])
    model = keras.Model(given, {name: values[name] for name in outputs}, name="network")
    built.set_weights(job["seed"])
    return model


def inputs_of(model: keras.Model, batch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a batch that a model of `build` reads."""
    return {name: batch[name] for name in model.input}


class _Layers:
    """Layers of a graph's nodes by name; nodes that share weights share a layer."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.graph, self.owners = graph, parameter_owners(graph)
        self.nodes = {node["name"]: node for node in graph["nodes"]}
        self.built: dict[str, layers.Layer] = {}

    def run(self, node: Node, inputs: list) -> Any:
        """Build the layer of a node and return its value."""
        if node["op"] in keras_layers.BUILDERS:
            return self._run(node, inputs, keras_layers.BUILDERS)
        ordered = [graph_order(value) for value in inputs]
        return channels_last(self._run(node, ordered, keras_sequence_layers.BUILDERS))

    def _run(self, node: Node, inputs: list, builders: Mapping[str, Any]) -> Any:
        made = self._shared(node) or builders[node["op"]](node, inputs)
        if not isinstance(made, layers.Layer):
            return made
        self.built[node["name"]] = made
        return made(inputs[0] if len(inputs) == 1 else inputs)

    def _shared(self, node: Node) -> "layers.Layer | None":
        """The layer that a node shares with another; None if it has its own weights."""
        others = set(self.owners[node["name"]].values()) - {node["name"]}
        if not others:
            return None
        owner = self.nodes[others.pop()]
        layer = self.built[owner["name"]]
        if node["op"] == "linear" and owner["op"] == "embedding":
            return TiedLinear(node, layer)
        if _settings(node) != _settings(owner):
            raise ValueError(
                f"node '{node['name']}' shares weights with '{owner['name']}', of other settings: "
                "not in this worker"
            )
        return layer

    def set_weights(self, seed: int) -> None:
        """Set every variable to the initial value of its parameter."""
        weights = initial_weights(self.graph, seed, CHANNELS_LAST)
        for node, short, _ in trained_parameters(self.graph):
            place = KERAS_NAMES.get(node["op"], {}).get(short, short)
            variable = getattr(self.built[node["name"]], place)
            variable.assign(weights[f"{node['name']}.{short}"].reshape(tuple(variable.shape)))


def _settings(node: Node) -> dict[str, Any]:
    """Fields of a node's operation, without its position in the network."""
    places = ("name", "inputs", "shares_weights_with", "output_shape")
    return {field: value for field, value in node.items() if field not in places}


def _channels_last_shape(shape: Shape) -> Shape:
    return (*shape[1:], shape[0]) if len(shape) == 3 else shape


def _dtype(spec: Mapping[str, Any]) -> str:
    return "float32" if spec["dtype"] == "float" else "int32"
