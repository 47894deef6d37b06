"""Operations of a layer graph in JAX: images and plain layers.

A value with three dimensions per sample is an image with channels last; all others have the axis
order of the graph. `jax_sequence_layers` has the operations of sequences.
"""

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax_sequence_layers as sequences
from jax import lax
from layer_graph import SHARED, TIED_ROWS, Operation, beyond_end, named
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Node = Mapping[str, Any]
Own = Mapping[str, Any]
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
}
ELEMENTWISE_LOSSES = {
    "binary_cross_entropy": lambda scores, wanted: jax.nn.softplus(scores) - scores * wanted,
}


def _channels_first(value: Any) -> Any:
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 else value


def _channels_last(value: Any) -> Any:
    return value.transpose(0, 2, 3, 1) if value.ndim == 4 else value


def _in_graph_order(operation: Operation) -> Operation:
    """Run ``operation`` on values in the axis order of the graph."""

    def ordered(node: Node, inputs: list, own: Own) -> Any:
        return _channels_last(operation(node, [_channels_first(value) for value in inputs], own))

    return ordered


def _axis(axis: int, value: Any) -> int:
    """Axis of ``value`` for an axis of a sample in the graph."""
    axis %= value.ndim - 1
    return (3, 1, 2)[axis] if value.ndim == 4 else 1 + axis


def _conv(node: Node, inputs: list, own: Own) -> Any:
    image, weight, groups = inputs[0], own["weight"], node["groups"]
    if groups in (1, image.shape[-1]) or jax.default_backend() != "cpu":
        result = _convolved(node, image, weight, groups)
    else:
        result = _convolved_by_group(node, image, weight)
    return result + own["bias"] if "bias" in own else result


def _convolved_by_group(node: Node, image: Any, weight: Any) -> Any:
    """One convolution per group: on CPUs the gradient of a grouped one is far slower."""
    groups = node["groups"]
    split = (value.reshape(*value.shape[:-1], groups, -1) for value in (image, weight))
    parts = tuple(jnp.moveaxis(value, -2, 0) for value in split)
    results = lax.map(lambda part: _convolved(node, part[0], part[1], 1), parts)
    joined = jnp.moveaxis(results, 0, -2)
    return joined.reshape(*joined.shape[:-2], -1)


def _convolved(node: Node, image: Any, weight: Any, groups: int) -> Any:
    return lax.conv_general_dilated(
        image,
        weight,
        node["stride"],
        [(p, p) for p in node["padding"]],
        rhs_dilation=node["dilation"],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def _linear(_: Node, inputs: list, own: Own) -> Any:
    result = inputs[0] @ (own[TIED_ROWS].T if TIED_ROWS in own else own["weight"])
    return result + own["bias"] if "bias" in own else result


def _max_pool(node: Node, inputs: list, _: Own) -> Any:
    return lax.reduce_window(inputs[0], -jnp.inf, lax.max, *_window(node, inputs[0]))


def _avg_pool(node: Node, inputs: list, _: Own) -> Any:
    total = lax.reduce_window(inputs[0], 0.0, lax.add, *_window(node, inputs[0]))
    return total / (node["kernel"][0] * node["kernel"][1])


def _window(node: Node, image: Any) -> tuple:
    beyond = beyond_end(node, image.shape[1:3])
    sides = ((p, p + b) for p, b in zip(node["padding"], beyond, strict=True))
    return (1, *node["kernel"], 1), (1, *node["stride"], 1), [(0, 0), *sides, (0, 0)]


def _global_avg_pool(_: Node, inputs: list, __: Own) -> Any:
    channels = _axis(0, inputs[0])
    return jnp.mean(inputs[0], tuple({*range(1, inputs[0].ndim)} - {channels}))


def _local_response_norm(node: Node, inputs: list, _: Own) -> Any:
    size = node["size"]
    around = [(0, 0), (0, 0), (0, 0), (size // 2, (size - 1) // 2)]
    squares = jnp.square(inputs[0])
    total = lax.reduce_window(squares, 0.0, lax.add, (1, 1, 1, size), (1, 1, 1, 1), around)
    return inputs[0] * (RESPONSE_K + RESPONSE_ALPHA / size * total) ** -RESPONSE_BETA


def _pad_shortcut(node: Node, inputs: list, _: Own) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return jnp.pad(taken, [(0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)])


def _multiply(_: Node, inputs: list, __: Own) -> Any:
    first, second = inputs
    missing = (1,) * (first.ndim - second.ndim)
    return first * (_channels_last(second.reshape(*second.shape, *missing)) if missing else second)


def _concat(node: Node, inputs: list, _: Own) -> Any:
    return jnp.concatenate(inputs, _axis(node.get("axis", 0), inputs[0]))


def _slice(node: Node, inputs: list, _: Own) -> Any:
    axis = _axis(node["axis"], inputs[0])
    return lax.slice_in_dim(inputs[0], node["start"], node["stop"], axis=axis)


def _flatten(node: Node, inputs: list, _: Own) -> Any:
    value, kept = inputs[0], 1 + node.get("start_axis", 0)
    return value.reshape(*value.shape[:kept], -1)


def _transpose(node: Node, inputs: list, _: Own) -> Any:
    return inputs[0].transpose(0, *(1 + axis for axis in node["axes"]))


def _cross_entropy(_: Node, inputs: list, __: Own) -> Any:
    scores, labels = inputs
    chances = jax.nn.log_softmax(scores.reshape(-1, scores.shape[-1]))
    return -jnp.mean(jnp.take_along_axis(chances, labels.reshape(-1, 1), axis=1))


def _elementwise_loss(node: Node, inputs: list, _: Own) -> Any:
    return jnp.mean(ELEMENTWISE_LOSSES[node["function"]](*inputs))


STATELESS: Mapping[str, Operation] = {
    **SHARED,
    **named(_avg_pool, _concat, _conv, _elementwise_loss, _global_avg_pool, _local_response_norm),
    **named(_max_pool, _multiply, _pad_shortcut, _slice),
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "cross_entropy": _in_graph_order(_cross_entropy),
    "flatten": _in_graph_order(_flatten),
    "linear": _in_graph_order(_linear),
    "transpose": _in_graph_order(_transpose),
    **{name: _in_graph_order(operation) for name, operation in sequences.OPERATIONS.items()},
}
"""JAX's function of each operation without state or random numbers."""


def operations(running: dict[str, Any], key: Any) -> dict[str, Operation]:
    """JAX's function of each operation.

    Batch normalisation reads and replaces its statistics in ``running``; dropout derives a key for
    each node from ``key``.
    """
    return {
        **STATELESS,
        "batch_norm": partial(_batch_norm, running),
        "dropout": partial(_dropout, key),
    }


EVALUATION: Mapping[str, Operation] = {
    **STATELESS,
    "batch_norm": lambda node, inputs, own: _evaluated_norm(inputs[0], own),
    "dropout": lambda node, inputs, own: inputs[0],
}
"""The same for evaluation: running statistics, no dropout."""


def _evaluated_norm(value: Any, own: Own) -> Any:
    channels = _axis(0, value)
    scale = own["weight"] * lax.rsqrt(own["running_var"] + NORM_EPSILON)
    moved = jnp.moveaxis(value, channels, -1)
    return jnp.moveaxis(moved * scale + (own["bias"] - own["running_mean"] * scale), -1, channels)


def _batch_norm(running: dict[str, Any], node: Node, inputs: list, own: Own) -> Any:
    channels, name = _axis(0, inputs[0]), node["name"]
    value = jnp.moveaxis(inputs[0], channels, -1)
    axes = tuple(range(value.ndim - 1))
    mean = jnp.mean(value, axes)
    variance = jnp.maximum(jnp.mean(jnp.square(value), axes) - jnp.square(mean), 0.0)
    count = value.size // value.shape[-1]
    unbiased = variance * (count / max(count - 1, 1))
    for short, new in (("running_mean", mean), ("running_var", unbiased)):
        old = running[f"{name}.{short}"]
        running[f"{name}.{short}"] = old + NORM_NEW_SHARE * (lax.stop_gradient(new) - old)
    scale = own["weight"] * lax.rsqrt(variance + NORM_EPSILON)
    return jnp.moveaxis(value * scale + (own["bias"] - mean * scale), -1, channels)


def _dropout(key: Any, node: Node, inputs: list, _: Own) -> Any:
    kept = 1.0 - node["probability"]
    own_key = jax.random.fold_in(key, zlib.crc32(node["name"].encode()))
    mask = jax.random.bernoulli(own_key, kept, inputs[0].shape)
    return jnp.where(mask, inputs[0] / kept, 0.0)
