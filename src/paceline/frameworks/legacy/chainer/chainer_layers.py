"""Operations of a layer graph in Chainer: images, plain layers, losses.

Channels first. `chainer_sequence_layers` has the operations of sequences.
"""

import math
from collections.abc import Mapping
from typing import Any

import chainer.functions as F
from layer_graph import SHARED, TIED_ROWS, Node, batch_axis, named
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Own = Mapping[str, Any]


def _conv(node: Node, inputs: list, own: Own) -> Any:
    return F.convolution_2d(
        inputs[0],
        own["weight"],
        own.get("bias"),
        stride=tuple(node["stride"]),
        pad=tuple(node["padding"]),
        dilate=tuple(node["dilation"]),
        groups=node["groups"],
    )


def _linear(_: Node, inputs: list, own: Own) -> Any:
    weight = own[TIED_ROWS] if TIED_ROWS in own else own["weight"]
    return F.linear(inputs[0], weight, own.get("bias"), n_batch_axes=inputs[0].ndim - 1)


def _batch_norm(_: Node, inputs: list, own: Own) -> Any:
    return F.batch_normalization(
        inputs[0],
        own["weight"],
        own["bias"],
        eps=NORM_EPSILON,
        running_mean=own["running_mean"],
        running_var=own["running_var"],
        decay=1.0 - NORM_NEW_SHARE,
    )


def _local_response_norm(node: Node, inputs: list, _: Own) -> Any:
    """Chainer's window is symmetric, for odd sizes only, and its sum is not divided by the size."""
    size = node["size"]
    if size % 2 == 0:
        raise ValueError(f"node '{node['name']}': this worker only supports odd sizes, not {size}")
    return F.local_response_normalization(
        inputs[0], size, RESPONSE_K, RESPONSE_ALPHA / size, RESPONSE_BETA
    )


def _max_pool(node: Node, inputs: list, _: Own) -> Any:
    window = (node["kernel"], node["stride"], node["padding"])
    if not node["ceil"]:
        return F.max_pooling_2d(inputs[0], *window, cover_all=False)
    result = F.max_pooling_2d(inputs[0], *window, cover_all=True)
    wanted = tuple(node["output_shape"])
    if result.shape[1:] == wanted:
        return result
    return result[:, :, : wanted[1], : wanted[2]]  # others begin beyond the end


def _avg_pool(node: Node, inputs: list, _: Own) -> Any:
    return F.average_pooling_2d(inputs[0], node["kernel"], node["stride"], node["padding"])


def _global_avg_pool(_: Node, inputs: list, __: Own) -> Any:
    return F.mean(inputs[0], axis=tuple(range(2, inputs[0].ndim)))


def _multiply(_: Node, inputs: list, __: Own) -> Any:
    first, second = inputs
    missing = first.ndim - second.ndim
    return first * F.reshape(second, (*second.shape, *[1] * missing))


def _pad_shortcut(node: Node, inputs: list, _: Own) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[1]
    taken = inputs[0][:, :, ::stride, ::stride]
    return F.pad(taken, [(0, 0), (added // 2, added - added // 2), (0, 0), (0, 0)], "constant")


def _flatten(node: Node, inputs: list, _: Own) -> Any:
    kept = 1 + node.get("start_axis", 0)
    return F.reshape(inputs[0], (*inputs[0].shape[:kept], -1))


def _slice(node: Node, inputs: list, _: Own) -> Any:
    taken = [slice(None)] * inputs[0].ndim
    taken[batch_axis(node["axis"])] = slice(node["start"], node["stop"])
    return inputs[0][tuple(taken)]


def _gelu(value: Any) -> Any:
    return 0.5 * value * (1.0 + F.erf(value * math.sqrt(0.5)))


def _gelu_tanh(value: Any) -> Any:
    inner = math.sqrt(2.0 / math.pi) * (value + 0.044715 * value * value * value)
    return 0.5 * value * (1.0 + F.tanh(inner))


def _cross_entropy(_: Node, inputs: list, __: Own) -> Any:
    scores, labels = inputs
    return F.softmax_cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))


def _elementwise_loss(_: Node, inputs: list, __: Own) -> Any:
    """Binary cross entropy of a logit and a target between 0 and 1."""
    score, wanted = inputs
    return F.mean(F.softplus(score) - score * wanted)


ACTIVATIONS = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": F.relu,
    "relu6": F.relu6,
    "sigmoid": F.sigmoid,
    "silu": lambda value: value * F.sigmoid(value),
    "tanh": F.tanh,
}
LAYERS = {
    **SHARED,
    **named(_avg_pool, _batch_norm, _conv, _cross_entropy, _elementwise_loss, _flatten),
    **named(_global_avg_pool, _linear, _local_response_norm, _max_pool, _multiply, _pad_shortcut),
    **named(_slice),
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "add": lambda _, inputs, __: F.add(*inputs),
    "concat": lambda node, inputs, _: F.concat(inputs, axis=batch_axis(node.get("axis", 0))),
    "dropout": lambda node, inputs, _: F.dropout(inputs[0], node["probability"]),
    "transpose": lambda node, inputs, _: F.transpose(
        inputs[0], (0, *(axis + 1 for axis in node["axes"]))
    ),
}
"""Chainer's function of each operation."""
