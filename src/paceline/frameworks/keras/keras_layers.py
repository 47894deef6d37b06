"""Keras layers of operations on images and on single elements.

A value with three dimensions per sample is an image with channels last; `graph_order` and
`channels_last` transpose it for operations that name axes of the graph (`keras_sequence_layers`).
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from layer_graph import Node, beyond_end, named
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Value = Any
"""A symbolic tensor; its first axis is the batch."""

Builder = Callable[[Node, list], Any]
"""Called with a node and its inputs; returns the layer to call with them, or the result."""

Sides = tuple[tuple[int, int], ...]
"""Positions added before and after, in each dimension."""

LOWEST = -3.0e38
"""Padding of max pools, below all values."""


def is_image(value: Value) -> bool:
    """Whether a value has channels, rows and columns."""
    return len(value.shape) == 4


def axis_of(value: Value, axis: int) -> int:
    """Axis of a value for an axis of a sample, from the end: Keras is faster on the last."""
    rank = len(value.shape)
    place = axis % (rank - 1)
    return ((3, 1, 2)[place] if is_image(value) else place + 1) - rank


def graph_order(value: Value) -> Value:
    """The value with the axes of the graph: an image with channels first."""
    return ops.transpose(value, (0, 3, 1, 2)) if is_image(value) else value


def channels_last(value: Value) -> Value:
    """Inverse of `graph_order`."""
    return ops.transpose(value, (0, 2, 3, 1)) if is_image(value) else value


def layer_name(node: Node) -> str:
    return str(node["name"]).replace(".", "_")


def _activation(node: Node, inputs: list) -> layers.Layer:
    if node["function"] == "softmax":
        return layers.Softmax(axis=axis_of(inputs[0], -1))
    return layers.Activation(ACTIVATIONS.get(node["function"], node["function"]))


ACTIVATIONS = {
    "gelu_tanh": lambda value: keras.activations.gelu(value, approximate=True),
    "leaky_relu": lambda value: keras.activations.leaky_relu(value, negative_slope=0.01),
}
"""Activations that differ from Keras's function of that name."""


def _conv(node: Node, inputs: list) -> layers.Layer:
    channels, groups = inputs[0].shape[-1], node["groups"]
    padding, kernel = node["padding"], node["kernel"]
    keeps = all(2 * p == k - 1 for p, k in zip(padding, kernel, strict=True))
    same = keeps and node["stride"] == [1, 1] and node["dilation"] == [1, 1]
    settings = {
        "kernel_size": tuple(kernel),
        "strides": tuple(node["stride"]),
        "padding": "same" if same else "valid",
        "dilation_rate": tuple(node["dilation"]),
        "use_bias": node["bias"],
        "name": layer_name(node),
    }
    layer: layers.Layer
    if 1 < groups == channels and len(set(node["stride"])) == 1:
        multiplier = node["out_channels"] // groups
        layer = layers.DepthwiseConv2D(depth_multiplier=multiplier, **settings)
    elif groups > 1 and not _trains_groups_at_once():
        layer = _SplitConv(node["out_channels"], groups=groups, **settings)
    else:
        layer = layers.Conv2D(node["out_channels"], groups=groups, **settings)
    return layer if same else _padded(layer, tuple((p, p) for p in padding))


def _trains_groups_at_once() -> bool:
    """Whether the backend has a fast gradient of grouped convolutions.

    On CPUs, TensorFlow and JAX take a hundred times as long for it.
    """
    if keras.backend.backend() != "jax":
        return bool(keras.backend.backend() == "torch")
    import jax

    return bool(jax.default_backend() != "cpu")


class _SplitConv(layers.Conv2D):
    """A grouped convolution as one convolution per group: unrolled, or as a loop in JAX.

    JAX takes far longer to compile the unrolled form; TensorFlow runs it slightly faster.
    """

    def convolution_op(self, inputs: Value, kernel: Value) -> Value:
        convolve = super().convolution_op
        if keras.backend.backend() == "jax":
            parts = tuple(self._groups_first(value) for value in (inputs, kernel))
            made = ops.map(lambda part: convolve(*part), parts)
            _, _, rows, columns, _ = made.shape
            return ops.reshape(ops.moveaxis(made, 0, 3), (-1, rows, columns, self.filters))
        split = (ops.split(value, self.groups, axis=-1) for value in (inputs, kernel))
        return ops.concatenate([convolve(*part) for part in zip(*split, strict=True)], axis=-1)

    def _groups_first(self, value: Value) -> Value:
        apart = (-1, *value.shape[1:3], self.groups, value.shape[3] // self.groups)
        return ops.moveaxis(ops.reshape(value, apart), 3, 0)


def _padded(layer: layers.Layer, sides: Sides) -> layers.Layer:
    return _Padded(layer, sides) if any(map(any, sides)) else layer


class _Padded(layers.Layer):
    """A layer with zero padding of its input."""

    def __init__(self, layer: layers.Layer, sides: Sides) -> None:
        super().__init__()
        self.padding, self.inner = layers.ZeroPadding2D(sides), layer

    def call(self, value: Value) -> Value:
        return self.inner(self.padding(value))

    @property
    def kernel(self) -> Any:
        return self.inner.kernel

    @property
    def bias(self) -> Any:
        return self.inner.bias


def _max_pool(node: Node, inputs: list) -> layers.Layer:
    return _MaxPool(node, _pool_sides(node, inputs[0]))


class _MaxPool(layers.Layer):
    """Max pooling whose padding never is the maximum."""

    def __init__(self, node: Node, sides: Sides) -> None:
        super().__init__()
        self.padding = [(0, 0), *sides, (0, 0)]
        self.pool = layers.MaxPooling2D(tuple(node["kernel"]), tuple(node["stride"]))

    def call(self, value: Value) -> Value:
        if any(sum(side) for side in self.padding):
            value = ops.pad(value, self.padding, constant_values=LOWEST)
        return self.pool(value)


def _avg_pool(node: Node, inputs: list) -> Any:
    sides = _pool_sides(node, inputs[0])
    pool = layers.AveragePooling2D(tuple(node["kernel"]), tuple(node["stride"]))
    padded = _padded(pool, sides)
    if all(before == after for before, after in sides):
        return padded
    pooled = padded(inputs[0])
    shares = [
        k / np.minimum(k, n + 2 * p - s * np.arange(count))
        for k, n, p, s, count in zip(
            node["kernel"],
            inputs[0].shape[1:3],
            node["padding"],
            node["stride"],
            pooled.shape[1:3],
            strict=True,
        )
    ]
    return pooled * np.outer(*shares)[None, :, :, None].astype(np.float32)


def _pool_sides(node: Node, value: Value) -> Sides:
    """Padding of a pool, including the positions that its last window extends beyond it."""
    beyond = beyond_end(node, value.shape[1:3])
    return tuple((p, p + more) for p, more in zip(node["padding"], beyond, strict=True))


def _global_avg_pool(_: Node, inputs: list) -> Any:
    if is_image(inputs[0]):
        return layers.GlobalAveragePooling2D()
    return ops.mean(inputs[0], axis=tuple(range(2, len(inputs[0].shape))))


def _batch_norm(node: Node, inputs: list) -> layers.Layer:
    return layers.BatchNormalization(
        axis=axis_of(inputs[0], 0),
        momentum=1.0 - NORM_NEW_SHARE,
        epsilon=NORM_EPSILON,
        name=layer_name(node),
    )


def _local_response_norm(node: Node, inputs: list) -> Value:
    value, size = inputs[0], node["size"]
    channels = value.shape[-1]
    sides = [(0, 0), (0, 0), (0, 0), (size // 2, (size - 1) // 2)]
    squares = ops.pad(ops.square(value), sides)
    first, *others = [squares[..., start : start + channels] for start in range(size)]
    level = RESPONSE_K + RESPONSE_ALPHA / size * sum(others, first)
    return value * level**-RESPONSE_BETA


def _multiply(_: Node, inputs: list) -> Value:
    value, factor = inputs
    missing = len(value.shape) - len(factor.shape)
    if missing:
        factor = channels_last(ops.reshape(factor, (-1, *factor.shape[1:], *[1] * missing)))
    return value * factor


def _slice(node: Node, inputs: list) -> Value:
    taken = [slice(None)] * len(inputs[0].shape)
    taken[axis_of(inputs[0], node["axis"])] = slice(node["start"], node["stop"])
    return inputs[0][tuple(taken)]


def _pad_shortcut(node: Node, inputs: list) -> Value:
    stride, added = node["stride"], node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return ops.pad(taken, [(0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)])


BUILDERS: dict[str, Builder] = {
    **named(_activation, _avg_pool, _batch_norm, _conv, _global_avg_pool, _local_response_norm),
    **named(_max_pool, _multiply, _pad_shortcut, _slice),
    "add": lambda _, __: layers.Add(),
    "concat": lambda node, inputs: layers.Concatenate(axis_of(inputs[0], node.get("axis", 0))),
    "dropout": lambda node, _: layers.Dropout(node["probability"]),
}
"""Operations on images with channels last."""
