"""How each operation of an image network is computed by TensorFlow, channels last.

TensorFlow's processor kernels want channels last; weights and images are transposed once, before
training, and values are turned back only where they are flattened.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE

Node = Mapping[str, Any]
ACTIVATIONS = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
}


def _padding(node: Node) -> Any:
    """TensorFlow's word for the padding where it has one: kernels for explicit sizes are slower."""
    sides = zip(node["padding"], node["kernel"], node["dilation"], node["stride"], strict=True)
    if not any(node["padding"]):
        return "VALID"
    if all(s == 1 and 2 * p == d * (k - 1) for p, k, d, s in sides):
        return "SAME"
    return [[0, 0], *([p, p] for p in node["padding"]), [0, 0]]


def _conv(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    if node["groups"] != 1:
        raise ValueError(f"node '{node['name']}': no grouped convolutions in this worker")
    result = tf.nn.conv2d(
        inputs[0], own["weight"], node["stride"], _padding(node), dilations=node["dilation"]
    )
    return tf.nn.bias_add(result, own["bias"]) if "bias" in own else result


def _linear(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    result = tf.matmul(inputs[0], own["weight"])
    return tf.nn.bias_add(result, own["bias"]) if "bias" in own else result


def _batch_norm(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    result, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        inputs[0], own["weight"], own["bias"], epsilon=NORM_EPSILON, is_training=True
    )
    for running, new in ((own["running_mean"], mean), (own["running_var"], variance)):
        running.assign_add(NORM_NEW_SHARE * (tf.stop_gradient(new) - running))
    return result


def _max_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    padding = [[0, 0], *([p, p] for p in node["padding"]), [0, 0]]
    return tf.nn.max_pool2d(inputs[0], node["kernel"], node["stride"], padding)


def _avg_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    padded = tf.pad(inputs[0], [[0, 0], *([p, p] for p in node["padding"]), [0, 0]])
    return tf.nn.avg_pool2d(padded, node["kernel"], node["stride"], "VALID")


def _pad_shortcut(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return tf.pad(taken, [[0, 0], [0, 0], [0, 0], [added // 2, added - added // 2]])


def _flatten(_: Node, inputs: list, __: Mapping[str, Any]) -> Any:
    value = inputs[0]
    if len(value.shape) == 4:
        value = tf.transpose(value, [0, 3, 1, 2])
    return tf.reshape(value, [value.shape[0], -1])


def _cross_entropy(_: Node, inputs: list, __: Mapping[str, Any]) -> Any:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=inputs[1], logits=inputs[0])
    return tf.reduce_mean(losses)


OPERATIONS = {
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "add": lambda _, inputs, __: sum(inputs[1:], inputs[0]),
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": lambda _, inputs, __: tf.concat(inputs, -1),
    "conv": _conv,
    "cross_entropy": _cross_entropy,
    "dropout": lambda node, inputs, _: tf.nn.dropout(inputs[0], node["probability"]),
    "flatten": _flatten,
    "global_avg_pool": lambda _, inputs, __: tf.reduce_mean(inputs[0], [1, 2]),
    "linear": _linear,
    "max_pool": _max_pool,
    "pad_shortcut": _pad_shortcut,
}
"""TensorFlow's function of each operation."""
