"""Operations of a layer graph in PaddlePaddle: images, plain layers, losses.

Channels first; weights of linear layers are (inputs, outputs). `paddle_sequence_layers` has the
operations of sequences.
"""

from collections.abc import Mapping
from typing import Any

import paddle
import paddle.nn.functional as F
from layer_graph import SHARED, TIED_ROWS, Node, batch_axis, named
from layer_settings import NORM_EPSILON, NORM_NEW_SHARE, RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K

Own = Mapping[str, Any]


def _conv(node: Node, inputs: list, own: Own) -> Any:
    return F.conv2d(
        inputs[0],
        own["weight"],
        own.get("bias"),
        stride=node["stride"],
        padding=node["padding"],
        dilation=node["dilation"],
        groups=node["groups"],
    )


def _linear(_: Node, inputs: list, own: Own) -> Any:
    if TIED_ROWS not in own:
        return F.linear(inputs[0], own["weight"], own.get("bias"))
    scores = paddle.matmul(inputs[0], own[TIED_ROWS], transpose_y=True)
    return scores + own["bias"] if "bias" in own else scores


def _batch_norm(_: Node, inputs: list, own: Own) -> Any:
    return F.batch_norm(
        inputs[0],
        own["running_mean"],
        own["running_var"],
        own["weight"],
        own["bias"],
        training=True,
        momentum=1.0 - NORM_NEW_SHARE,
        epsilon=NORM_EPSILON,
    )


def _local_response_norm(node: Node, inputs: list, _: Own) -> Any:
    return F.local_response_norm(inputs[0], node["size"], RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K)


def _max_pool(node: Node, inputs: list, _: Own) -> Any:
    window = (node["kernel"], node["stride"], node["padding"])
    if not node["ceil"]:
        return F.max_pool2d(inputs[0], *window)
    result = F.max_pool2d(inputs[0], *window, ceil_mode=True)
    wanted = tuple(node["output_shape"])
    if tuple(result.shape[1:]) == wanted:
        return result
    return result[:, :, : wanted[1], : wanted[2]]  # others begin beyond the end


def _avg_pool(node: Node, inputs: list, _: Own) -> Any:
    return F.avg_pool2d(inputs[0], node["kernel"], node["stride"], node["padding"], exclusive=False)


def _global_avg_pool(_: Node, inputs: list, __: Own) -> Any:
    return paddle.mean(inputs[0], axis=list(range(2, inputs[0].ndim)))


def _multiply(_: Node, inputs: list, __: Own) -> Any:
    first, second = inputs
    missing = first.ndim - second.ndim
    return first * (second.reshape([*second.shape, *[1] * missing]) if missing else second)


def _pad_shortcut(node: Node, inputs: list, _: Own) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[1]
    taken = inputs[0][:, :, ::stride, ::stride]
    return F.pad(taken, [0, 0, added // 2, added - added // 2, 0, 0, 0, 0])


def _slice(node: Node, inputs: list, _: Own) -> Any:
    return paddle.slice(inputs[0], [batch_axis(node["axis"])], [node["start"]], [node["stop"]])


ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda value: F.gelu(value, approximate=True),
    "relu": F.relu,
    "relu6": F.relu6,
    "sigmoid": F.sigmoid,
    "silu": F.silu,
    "tanh": F.tanh,
}
LAYERS = {
    **SHARED,
    **named(_avg_pool, _batch_norm, _conv, _global_avg_pool, _linear, _local_response_norm),
    **named(_max_pool, _multiply, _pad_shortcut, _slice),
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "concat": lambda node, inputs, _: paddle.concat(inputs, axis=batch_axis(node.get("axis", 0))),
    "cross_entropy": lambda _, inputs, __: F.cross_entropy(inputs[0], inputs[1]),
    "dropout": lambda node, inputs, _: F.dropout(inputs[0], node["probability"]),
    "elementwise_loss": lambda _, inputs, __: F.binary_cross_entropy_with_logits(*inputs),
    "flatten": lambda node, inputs, _: paddle.flatten(inputs[0], 1 + node.get("start_axis", 0)),
    "transpose": lambda node, inputs, _: paddle.transpose(
        inputs[0], [0, *(axis + 1 for axis in node["axes"])]
    ),
}
"""Paddle's function of each operation."""
