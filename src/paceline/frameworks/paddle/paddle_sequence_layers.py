"""Operations of a layer graph on sequences in PaddlePaddle.

Tokens have the shape (batch, positions, features).
"""

from functools import cache
from typing import Any

import paddle
import paddle.nn.functional as F
from layer_graph import Node, named
from layer_settings import LSTM_GATES, NORM_EPSILON, RMS_EPSILON
from numpy_tables import rotary_turns
from paddle_layers import Own


def _layer_norm(_: Node, inputs: list, own: Own) -> Any:
    weight = own["weight"]
    return F.layer_norm(inputs[0], weight.shape, weight, own.get("bias"), NORM_EPSILON)


def _rms_norm(_: Node, inputs: list, own: Own) -> Any:
    squares = paddle.mean(paddle.square(inputs[0]), axis=-1, keepdim=True)
    return inputs[0] * paddle.rsqrt(squares + RMS_EPSILON) * own["weight"]


def _class_token(_: Node, inputs: list, own: Own) -> Any:
    samples, _positions, width = inputs[0].shape
    return paddle.concat([own["weight"].expand([samples, 1, width]), inputs[0]], axis=1)


@cache
def _turns(length: int, head_dim: int) -> tuple[Any, ...]:
    return tuple(paddle.to_tensor(table) for table in rotary_turns(length, head_dim))


def _rotary(node: Node, inputs: list, _: Own) -> Any:
    head_dim, half = node["head_dim"], node["head_dim"] // 2
    cosine, sine = _turns(inputs[0].shape[1], head_dim)
    heads = inputs[0].reshape([0, 0, -1, head_dim])
    first, second = heads[..., :half], heads[..., half : 2 * half]
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    unpaired = [heads[..., 2 * half :]] if head_dim % 2 else []
    return paddle.concat([*turned, *unpaired], axis=-1).flatten(2)


def _attention(node: Node, inputs: list, _: Own) -> Any:
    query, key, value = (x.reshape([0, 0, -1, node["head_dim"]]) for x in inputs)
    result = F.scaled_dot_product_attention(
        query,
        key,
        value,
        is_causal=node["causal"],
        enable_gqa=node["heads"] != node["kv_heads"],
    )
    return result.flatten(2)


def _lstm(node: Node, inputs: list, own: Own) -> Any:
    """Call the kernel of `paddle.nn.LSTM`, which takes all weights, then all biases."""
    hidden, layers, bidirectional = node["hidden"], node["layers"], node["bidirectional"]
    weights = [value for name, value in own.items() if name.startswith("weight")]
    biases = [value for name, value in own.items() if name.startswith("bias")]
    if not biases:
        biases = [_differentiable(paddle.zeros([LSTM_GATES * hidden]))] * len(weights)
    states = paddle.zeros([layers * (2 if bidirectional else 1), inputs[0].shape[0], hidden])
    tokens, *_ = paddle._C_ops.rnn(
        inputs[0].transpose([1, 0, 2]),
        [states, states],
        [*weights, *biases],
        None,
        paddle.empty([0], "uint8"),
        0.0,
        bidirectional,
        inputs[0].shape[-1],
        hidden,
        layers,
        "LSTM",
        0,
        False,
    )
    return tokens.transpose([1, 0, 2])


def _differentiable(tensor: Any) -> Any:
    """Make a bias differentiable: the kernel's gradient fails for one that is not."""
    tensor.stop_gradient = False
    return tensor


SEQUENCE_LAYERS = {
    **named(_attention, _class_token, _layer_norm, _lstm, _rms_norm, _rotary),
    "embedding": lambda _, inputs, own: F.embedding(inputs[0], own["weight"]),
}
"""Paddle's function of each operation on sequences."""
