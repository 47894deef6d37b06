"""Builds a network from its graph with Keras layers, on whichever backend Keras has.

Channels last on every backend, since that is Keras's own layout on processors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
from keras import layers
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE, split_loss
from layer_shapes import Node, Shape, value_shapes
from numpy_data import CHANNELS_LAST, initial_weights


@dataclass(frozen=True)
class KerasNetwork:
    """A Keras model without its loss, and the names of what it reads and makes, in order."""

    model: keras.Model
    input_names: list[str]
    output_names: list[str]

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the loss reads of a batch in training, by name."""
        made = self.model([batch[name] for name in self.input_names], training=True)
        return dict(zip(self.output_names, made, strict=True))


def build(job: Mapping[str, Any]) -> KerasNetwork:
    """The network of a job, reading images with their channels last; initial weights set."""
    keras.config.set_image_data_format("channels_last")
    graph = job["graph"]
    shapes = value_shapes(graph, job.get("sequence"))
    nodes, _, outputs = split_loss(graph)
    read = {name for node in nodes for name in node["inputs"]}
    given = {
        name: keras.Input(_channels_last_shape(shapes[name]), name=name, dtype=_dtype(spec))
        for name, spec in graph["inputs"].items()
        if name in read
    }
    values: dict[str, Any] = dict(given)
    weights = initial_weights(graph, job["seed"], CHANNELS_LAST)
    built: dict[str, layers.Layer] = {}
    for node in nodes:
        inputs = [values[name] for name in node["inputs"]]
        made = BUILDERS[node["op"]](node, inputs)
        if isinstance(made, layers.Layer):
            built[node["name"]] = made
            made = made(inputs[0] if len(inputs) == 1 else inputs)
        values[node["name"]] = made
    model = keras.Model(list(given.values()), [values[name] for name in outputs], name="network")
    for name, layer in built.items():
        _set_weights(layer, name, weights)
    return KerasNetwork(model, list(given), outputs)


def _channels_last_shape(shape: Shape) -> Shape:
    return (*shape[1:], shape[0]) if len(shape) == 3 else shape


def _dtype(spec: Mapping[str, Any]) -> str:
    return "float32" if spec["dtype"] == "float" else "int32"


def _set_weights(layer: layers.Layer, name: str, weights: Mapping[str, Any]) -> None:
    if f"{name}.weight" not in weights:
        return
    weight = weights[f"{name}.weight"]
    if weight.ndim > 1:
        layer.kernel.assign(weight)
        if f"{name}.bias" in weights:
            layer.bias.assign(weights[f"{name}.bias"])
    else:
        layer.gamma.assign(weight)
        layer.beta.assign(weights[f"{name}.bias"])


def _layer_name(node: Node) -> str:
    return node["name"].replace(".", "_")


def _conv(node: Node, _: list) -> layers.Layer:
    if node["groups"] != 1:
        raise ValueError(f"node '{node['name']}': no grouped convolutions in this worker")
    padding, kernel = tuple(node["padding"]), node["kernel"]
    keeps = all(2 * p == k - 1 for p, k in zip(padding, kernel, strict=True))
    same = keeps and node["stride"] == [1, 1] and node["dilation"] == [1, 1]
    layer = layers.Conv2D(
        node["out_channels"],
        tuple(kernel),
        tuple(node["stride"]),
        padding="same" if same else "valid",
        dilation_rate=tuple(node["dilation"]),
        use_bias=node["bias"],
        name=_layer_name(node),
    )
    if same or padding == (0, 0):
        return layer
    return _Padded(layer, padding)


class _Padded(layers.Layer):
    """A layer that reads its input with zeros around it."""

    def __init__(self, layer: layers.Layer, padding: tuple[int, int]) -> None:
        super().__init__()
        self.padding, self.inner = layers.ZeroPadding2D(padding), layer

    def call(self, value: Any) -> Any:
        """The inner layer's result."""
        return self.inner(self.padding(value))

    @property
    def kernel(self) -> Any:
        """The inner layer's weight."""
        return self.inner.kernel

    @property
    def bias(self) -> Any:
        """The inner layer's bias."""
        return self.inner.bias


class _MaxPool(layers.Layer):
    """Pooling whose padding never wins."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.padding = [(0, 0), *((p, p) for p in node["padding"]), (0, 0)]
        self.pool = layers.MaxPooling2D(tuple(node["kernel"]), tuple(node["stride"]))

    def call(self, value: Any) -> Any:
        """The largest of each window."""
        if any(sum(side) for side in self.padding):
            value = keras.ops.pad(value, self.padding, constant_values=-3.0e38)
        return self.pool(value)


def _avg_pool(node: Node, _: list) -> layers.Layer:
    pool = layers.AveragePooling2D(tuple(node["kernel"]), tuple(node["stride"]))
    if node["padding"] == [0, 0]:
        return pool
    return _Padded(pool, tuple(node["padding"]))


def _pad_shortcut(node: Node, inputs: list) -> Any:
    stride, added = node["stride"], node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return keras.ops.pad(taken, [(0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)])


def _flatten(_: Node, inputs: list) -> Any:
    value = inputs[0]
    if len(value.shape) == 4:
        value = keras.ops.transpose(value, (0, 3, 1, 2))
    return layers.Flatten()(value)


BUILDERS = {
    "activation": lambda node, _: layers.Activation(node["function"]),
    "add": lambda _, __: layers.Add(),
    "avg_pool": _avg_pool,
    "batch_norm": lambda node, _: layers.BatchNormalization(
        momentum=1.0 - NORM_NEW_SHARE, epsilon=NORM_EPSILON, name=_layer_name(node)
    ),
    "concat": lambda _, __: layers.Concatenate(axis=-1),
    "conv": _conv,
    "dropout": lambda node, _: layers.Dropout(node["probability"]),
    "flatten": _flatten,
    "global_avg_pool": lambda _, __: layers.GlobalAveragePooling2D(),
    "linear": lambda node, _: layers.Dense(
        node["out_features"], use_bias=node["bias"], name=_layer_name(node)
    ),
    "max_pool": lambda node, _: _MaxPool(node),
    "pad_shortcut": _pad_shortcut,
}
"""Layer, or value already computed, of each operation."""
