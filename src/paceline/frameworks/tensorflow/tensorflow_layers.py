"""Operations of a layer graph in TensorFlow: images and plain layers.

TensorFlow's CPU kernels require channels last: weights and images are transposed once, before
training. A value with three dimensions per sample is an image with channels last; all others have
the axis order of the graph. `tensorflow_sequence_layers` has the operations of sequences.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import tensorflow as tf
import tensorflow_sequence_layers as sequences
from layer_graph import SHARED, TIED_ROWS, Operation, beyond_end, named
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Node = Mapping[str, Any]
Own = Mapping[str, Any]
ACTIVATIONS = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
    "gelu": partial(tf.nn.gelu, approximate=False),
    "gelu_tanh": partial(tf.nn.gelu, approximate=True),
    "silu": tf.nn.silu,
}
ELEMENTWISE_LOSSES = {
    "binary_cross_entropy": lambda scores, wanted: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=wanted, logits=scores
    ),
}


def _rank(value: Any) -> int:
    return len(value.shape)


def _channels_first(value: Any) -> Any:
    return tf.transpose(value, [0, 3, 1, 2]) if _rank(value) == 4 else value


def _channels_last(value: Any) -> Any:
    return tf.transpose(value, [0, 2, 3, 1]) if _rank(value) == 4 else value


def _in_graph_order(operation: Operation) -> Operation:
    """Run ``operation`` on values in the axis order of the graph."""

    def ordered(node: Node, inputs: list, own: Own) -> Any:
        return _channels_last(operation(node, [_channels_first(value) for value in inputs], own))

    return ordered


def _axis(axis: int, value: Any) -> int:
    """Axis of ``value`` for an axis of a sample in the graph."""
    axis %= _rank(value) - 1
    return (3, 1, 2)[axis] if _rank(value) == 4 else 1 + axis


def _padding(node: Node) -> Any:
    """TensorFlow's name of the padding if it has one: kernels with explicit padding are slower."""
    sides = zip(node["padding"], node["kernel"], node["stride"], strict=True)
    if not any(node["padding"]):
        return "VALID"
    if all(s == 1 and 2 * p == k - 1 for p, k, s in sides):
        return "SAME"
    return _both_sides(node["padding"])


def _both_sides(padding: list[int]) -> list[list[int]]:
    return [[0, 0], *([p, p] for p in padding), [0, 0]]


def _conv(node: Node, inputs: list, own: Own) -> Any:
    image, weight, groups = inputs[0], own["weight"], node["groups"]
    if groups == 1:
        result = _convolved(node, image, weight)
    elif _is_depthwise(node, image):
        result = _depthwise(node, image, weight)
    else:
        parts = zip(tf.split(image, groups, -1), tf.split(weight, groups, -1), strict=True)
        result = tf.concat([_convolved(node, *part) for part in parts], -1)
    return tf.nn.bias_add(result, own["bias"]) if "bias" in own else result


def _convolved(node: Node, image: Any, weight: Any) -> Any:
    if max(node["dilation"]) == 1:
        return tf.nn.conv2d(image, weight, node["stride"], _padding(node))
    padded = tf.pad(image, _both_sides(node["padding"]))  # conv2d cannot, on processors, backwards
    return tf.nn.convolution(padded, weight, node["stride"], "VALID", dilations=node["dilation"])


def _is_depthwise(node: Node, image: Any) -> bool:
    """Whether TensorFlow's depthwise kernel computes a grouped convolution.

    Kernels of other groups have no gradient on CPUs.
    """
    rows, columns = node["stride"]
    return node["groups"] == image.shape[-1] and rows == columns and max(node["dilation"]) == 1


def _depthwise(node: Node, image: Any, weight: Any) -> Any:
    rows, columns, _, out_channels = weight.shape
    channels = image.shape[-1]
    by_channel = tf.reshape(weight, [rows, columns, channels, out_channels // channels])
    return tf.nn.depthwise_conv2d(image, by_channel, [1, *node["stride"], 1], _padding(node))


def _linear(_: Node, inputs: list, own: Own) -> Any:
    tokens, tied = inputs[0], TIED_ROWS in own
    rows = tokens if _rank(tokens) == 2 else tf.reshape(tokens, [-1, tokens.shape[-1]])
    result = tf.matmul(rows, own[TIED_ROWS if tied else "weight"], transpose_b=tied)
    if "bias" in own:
        result = tf.nn.bias_add(result, own["bias"])
    return result if rows is tokens else tf.reshape(result, [*tokens.shape[:-1], result.shape[-1]])


def _batch_norm(_: Node, inputs: list, own: Own) -> Any:
    value = inputs[0]
    if _rank(value) != 4:
        return _plain_batch_norm(value, own)
    result, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        value, own["weight"], own["bias"], epsilon=NORM_EPSILON, is_training=True
    )
    for running, new in ((own["running_mean"], mean), (own["running_var"], variance)):
        running.assign_add(NORM_NEW_SHARE * (tf.stop_gradient(new) - running))
    return result


def _plain_batch_norm(value: Any, own: Own) -> Any:
    """Batch norm of (channels) or (channels, positions), as an image with one row."""
    image = _channels_last(tf.reshape(value, [*value.shape[:2], 1, -1]))
    result = _batch_norm({}, [image], own)
    return tf.reshape(_channels_first(result), value.shape)


def _max_pool(node: Node, inputs: list, _: Own) -> Any:
    image = inputs[0]
    padding = _both_sides(node["padding"])
    for axis, more in enumerate(beyond_end(node, image.shape[1:3]), start=1):
        padding[axis][1] += more
    return tf.nn.max_pool2d(image, node["kernel"], node["stride"], padding)


def _avg_pool(node: Node, inputs: list, _: Own) -> Any:
    padded = tf.pad(inputs[0], _both_sides(node["padding"]))
    return tf.nn.avg_pool2d(padded, node["kernel"], node["stride"], "VALID")


def _global_avg_pool(_: Node, inputs: list, __: Own) -> Any:
    axes = {*range(1, _rank(inputs[0]))} - {_axis(0, inputs[0])}
    return tf.reduce_mean(inputs[0], sorted(axes))


def _local_response_norm(node: Node, inputs: list, _: Own) -> Any:
    size = node["size"]
    if size % 2 == 0:
        raise ValueError(f"node '{node['name']}': this worker only supports odd window sizes")
    return tf.nn.local_response_normalization(
        inputs[0], size // 2, RESPONSE_K, RESPONSE_ALPHA / size, RESPONSE_BETA
    )


def _pad_shortcut(node: Node, inputs: list, _: Own) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return tf.pad(taken, [[0, 0], [0, 0], [0, 0], [added // 2, added - added // 2]])


def _multiply(_: Node, inputs: list, __: Own) -> Any:
    first, second = inputs
    missing = [1] * (_rank(first) - _rank(second))
    return first * (
        _channels_last(tf.reshape(second, [*second.shape, *missing])) if missing else second
    )


def _concat(node: Node, inputs: list, _: Own) -> Any:
    return tf.concat(inputs, _axis(node.get("axis", 0), inputs[0]))


def _slice(node: Node, inputs: list, _: Own) -> Any:
    before = [slice(None)] * _axis(node["axis"], inputs[0])
    return inputs[0][(*before, slice(node["start"], node["stop"]))]


def _flatten(node: Node, inputs: list, _: Own) -> Any:
    kept = 1 + node.get("start_axis", 0)
    return tf.reshape(inputs[0], [*inputs[0].shape[:kept], -1])


def _transpose(node: Node, inputs: list, _: Own) -> Any:
    return tf.transpose(inputs[0], [0, *(1 + axis for axis in node["axes"])])


def _cross_entropy(_: Node, inputs: list, __: Own) -> Any:
    scores, labels = inputs[0], tf.reshape(inputs[1], inputs[0].shape[:-1])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return tf.reduce_mean(losses)


def _elementwise_loss(node: Node, inputs: list, _: Own) -> Any:
    return tf.reduce_mean(ELEMENTWISE_LOSSES[node["function"]](*inputs))


OPERATIONS: Mapping[str, Operation] = {
    **SHARED,
    **named(_avg_pool, _batch_norm, _concat, _conv, _elementwise_loss, _global_avg_pool),
    **named(_local_response_norm, _max_pool, _multiply, _pad_shortcut, _slice),
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "cross_entropy": _in_graph_order(_cross_entropy),
    "dropout": lambda node, inputs, _: tf.nn.dropout(inputs[0], node["probability"]),
    "flatten": _in_graph_order(_flatten),
    "linear": _in_graph_order(_linear),
    "transpose": _in_graph_order(_transpose),
    **{name: _in_graph_order(operation) for name, operation in sequences.OPERATIONS.items()},
}
"""TensorFlow's function of each operation."""

EVALUATION: Mapping[str, Operation] = {
    **OPERATIONS,
    "batch_norm": lambda node, inputs, own: _evaluated_norm(inputs[0], own),
    "dropout": lambda node, inputs, own: inputs[0],
}
"""The same for evaluation: running statistics, no dropout."""


def _evaluated_norm(value: Any, own: Own) -> Any:
    scale = own["weight"] * tf.math.rsqrt(own["running_var"] + NORM_EPSILON)
    shift = own["bias"] - own["running_mean"] * scale
    if _rank(value) in (2, 4):
        return value * scale + shift
    return value * scale[:, None] + shift[:, None]
