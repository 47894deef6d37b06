"""Operations of a layer graph in MXNet: images, plain layers, losses.

Channels first. ``ops`` is MXNet's module of functions on arrays or on symbols. Symbols have no
shapes, so a node has the shapes of its inputs (one sample) as ``read``. `mxnet_sequence_layers` has
the operations on sequences.
"""

import math
from collections.abc import Mapping
from typing import Any

from layer_graph import TIED_ROWS, Node, batch_axis, named, weighted_sum
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Own = Mapping[str, Any]


def _conv(ops: Any, node: Node, inputs: list, own: Own) -> Any:
    return ops.Convolution(
        inputs[0],
        own["weight"],
        *([own["bias"]] if "bias" in own else []),
        kernel=tuple(node["kernel"]),
        stride=tuple(node["stride"]),
        pad=tuple(node["padding"]),
        dilate=tuple(node["dilation"]),
        num_filter=node["out_channels"],
        num_group=node["groups"],
        no_bias="bias" not in own,
    )


def _linear(ops: Any, node: Node, inputs: list, own: Own) -> Any:
    return ops.FullyConnected(
        inputs[0],
        own[TIED_ROWS] if TIED_ROWS in own else own["weight"],
        *([own["bias"]] if "bias" in own else []),
        num_hidden=node["out_features"],
        no_bias="bias" not in own,
        flatten=False,
    )


def _batch_norm(ops: Any, _: Node, inputs: list, own: Own) -> Any:
    names = ("weight", "bias", "running_mean", "running_var")
    return ops.BatchNorm(
        inputs[0],
        *(own[name] for name in names),
        eps=NORM_EPSILON,
        momentum=1.0 - NORM_NEW_SHARE,
        fix_gamma=False,
    )


def _local_response_norm(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    return ops.LRN(
        inputs[0],
        nsize=node["size"],
        alpha=RESPONSE_ALPHA,
        beta=RESPONSE_BETA,
        knorm=RESPONSE_K,
    )


def _activation(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    function, value = node["function"], inputs[0]
    if function == "relu6":
        return ops.clip(value, 0.0, 6.0)
    if function == "gelu":
        return ops.LeakyReLU(value, act_type="gelu")
    if function == "gelu_tanh":
        inner = math.sqrt(2.0 / math.pi) * (value + 0.044715 * value * value * value)
        return 0.5 * value * (1.0 + ops.tanh(inner))
    if function == "silu":
        return value * ops.sigmoid(value)
    return ops.Activation(value, act_type=function)


def _pool(ops: Any, node: Node, inputs: list, kind: str) -> Any:
    result = ops.Pooling(
        inputs[0],
        pool_type=kind,
        kernel=tuple(node["kernel"]),
        stride=tuple(node["stride"]),
        pad=tuple(node["padding"]),
        pooling_convention="full" if node["ceil"] else "valid",
    )
    gaps = any(s > k for s, k in zip(node["stride"], node["kernel"], strict=True))
    if not (node["ceil"] and (gaps or any(node["padding"]))):
        return result
    _, height, width = node["output_shape"]  # others begin beyond the end
    return ops.slice(result, begin=(None,) * 4, end=(None, None, height, width))


def _multiply(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    first, second = (len(shape) for shape in node["read"])
    if first == second:
        return inputs[0] * inputs[1]
    spread = ops.reshape(inputs[1], shape=(0,) * (1 + second) + (1,) * (first - second))
    return ops.broadcast_mul(inputs[0], spread)


def _pad_shortcut(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    stride = node["stride"]
    taken = ops.slice(inputs[0], begin=(0, 0, 0, 0), end=(None,) * 4, step=(1, 1, stride, stride))
    added = node["out_channels"] - node["read"][0][0]
    empty = [
        ops.zeros_like(ops.slice_axis(taken, axis=1, begin=0, end=size))
        for size in (added // 2, added - added // 2)
    ]
    return ops.concat(empty[0], taken, empty[1], dim=1)


def _concat(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    return ops.concat(*inputs, dim=batch_axis(node.get("axis", 0)))


def _slice(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    axis = batch_axis(node["axis"])
    return ops.slice_axis(inputs[0], axis=axis, begin=node["start"], end=node["stop"])


def _flatten(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    return ops.reshape(inputs[0], shape=(0,) * (1 + node.get("start_axis", 0)) + (-1,))


def _transpose(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    return ops.transpose(inputs[0], axes=(0, *(axis + 1 for axis in node["axes"])))


def _global_avg_pool(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    return ops.mean(inputs[0], axis=tuple(range(2, 1 + len(node["read"][0]))))


def _cross_entropy(ops: Any, _: Node, inputs: list, __: Own) -> Any:
    return -ops.mean(ops.pick(ops.log_softmax(inputs[0]), inputs[1]))


def _elementwise_loss(ops: Any, _: Node, inputs: list, __: Own) -> Any:
    """Binary cross entropy of a logit and a target between 0 and 1."""
    score, wanted = inputs
    return ops.mean(ops.Activation(score, act_type="softrelu") - score * wanted)


LAYERS = {
    **named(_activation, _batch_norm, _concat, _conv, _cross_entropy, _elementwise_loss, _flatten),
    **named(_global_avg_pool, _linear, _local_response_norm, _multiply, _pad_shortcut, _slice),
    **named(_transpose),
    "add": lambda ops, _, inputs, __: ops.add_n(*inputs),
    "avg_pool": lambda ops, node, inputs, _: _pool(ops, node, inputs, "avg"),
    "dropout": lambda ops, node, inputs, _: ops.Dropout(inputs[0], p=node["probability"]),
    "max_pool": lambda ops, node, inputs, _: _pool(ops, node, inputs, "max"),
    "weighted_sum": lambda _, *rest: weighted_sum(*rest),
}
"""MXNet's function of each operation."""
