"""Operations of a layer graph on sequences in MXNet, on arrays or on symbols.

Tokens have the shape (batch, positions, features). In shapes, 0 keeps a size and -3 merges two.
"""

import math
from typing import Any

from layer_graph import Node, named
from layer_settings import NORM_EPSILON, RMS_EPSILON, ROTARY_BASE
from mxnet_layers import Own

HIDDEN_SCORE = -1e30
"""Added to the score of a key after the query, so that its softmax is zero."""


def _embedding(ops: Any, node: Node, inputs: list, own: Own) -> Any:
    sizes = {"input_dim": node["vocabulary"], "output_dim": node["width"]}
    return ops.Embedding(inputs[0], own["weight"], **sizes)


def _layer_norm(ops: Any, _: Node, inputs: list, own: Own) -> Any:
    bias = own["bias"] if "bias" in own else ops.zeros_like(own["weight"])
    return ops.LayerNorm(inputs[0], own["weight"], bias, eps=NORM_EPSILON)


def _rms_norm(ops: Any, _: Node, inputs: list, own: Own) -> Any:
    squares = ops.mean(ops.square(inputs[0]), axis=-1, keepdims=True)
    scaled = ops.broadcast_mul(inputs[0], ops.rsqrt(squares + RMS_EPSILON))
    return ops.broadcast_mul(scaled, own["weight"])


def _position_embedding(ops: Any, node: Node, inputs: list, own: Own) -> Any:
    rows = ops.slice_axis(own["weight"], axis=0, begin=0, end=node["read"][0][-2])
    return ops.broadcast_add(inputs[0], ops.expand_dims(rows, axis=0))


def _class_token(ops: Any, _: Node, inputs: list, own: Own) -> Any:
    first = ops.slice_axis(inputs[0], axis=1, begin=0, end=1)
    token = ops.broadcast_like(ops.expand_dims(own["weight"], axis=0), first)
    return ops.concat(token, inputs[0], dim=1)


def _rotary(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    head_dim, half = node["head_dim"], node["head_dim"] // 2
    positions = ops.reshape(ops.arange(0, node["read"][0][0]), shape=(1, -1, 1, 1))
    steps = ops.exp(ops.arange(0, half) * (-math.log(ROTARY_BASE) / half))
    angles = ops.broadcast_mul(positions, ops.reshape(steps, shape=(1, 1, 1, -1)))
    cosine, sine = ops.cos(angles), ops.sin(angles)
    heads = ops.reshape(inputs[0], shape=(0, 0, -1, head_dim))
    first = ops.slice_axis(heads, axis=-1, begin=0, end=half)
    second = ops.slice_axis(heads, axis=-1, begin=half, end=2 * half)
    turned = [
        ops.broadcast_mul(first, cosine) - ops.broadcast_mul(second, sine),
        ops.broadcast_mul(second, cosine) + ops.broadcast_mul(first, sine),
    ]
    unpaired = head_dim - 2 * half
    if unpaired:
        turned.append(ops.slice_axis(heads, axis=-1, begin=2 * half, end=head_dim))
    return ops.reshape(ops.concat(*turned, dim=3), shape=(0, 0, -1))


def _attention(ops: Any, node: Node, inputs: list, _: Own) -> Any:
    heads, kv_heads, head_dim = node["heads"], node["kv_heads"], node["head_dim"]

    def by_head(tokens: Any, repeats: int) -> Any:
        split = ops.transpose(ops.reshape(tokens, shape=(0, 0, -1, head_dim)), axes=(0, 2, 1, 3))
        repeated = ops.repeat(split, repeats=repeats, axis=1) if repeats > 1 else split
        return ops.reshape(repeated, shape=(-3, 0, 0))

    query = by_head(inputs[0], 1) * (1.0 / math.sqrt(head_dim))
    key, value = (by_head(tokens, heads // kv_heads) for tokens in inputs[1:])
    scores = ops.batch_dot(query, key, transpose_b=True)
    if node["causal"]:
        scores = ops.broadcast_add(scores, _causal_bias(ops, node))
    result = ops.batch_dot(ops.softmax(scores, axis=-1), value)
    result = ops.reshape(result, shape=(-4, -1, heads, 0, 0))
    return ops.reshape(ops.transpose(result, axes=(0, 2, 1, 3)), shape=(0, 0, -1))


def _causal_bias(ops: Any, node: Node) -> Any:
    """Bias of the scores; the last query is at the last key."""
    queries, keys = node["read"][0][0], node["read"][1][0]
    last_seen = ops.reshape(ops.arange(keys - queries, keys), shape=(1, -1, 1))
    place = ops.reshape(ops.arange(0, keys), shape=(1, 1, -1))
    return ops.broadcast_greater(place, last_seen) * HIDDEN_SCORE


def _lstm(ops: Any, node: Node, inputs: list, own: Own) -> Any:
    """MXNet's kernel takes positions first, and one vector of all weights, then all biases."""
    hidden, directions = node["hidden"], 2 if node["bidirectional"] else 1
    weights = [value for name, value in own.items() if name.startswith("weight")]
    biases = [value for name, value in own.items() if name.startswith("bias")]
    if not biases:
        gates = (ops.slice_axis(weight, axis=1, begin=0, end=1) for weight in weights)
        biases = [ops.zeros_like(gate) for gate in gates]
    flat = [ops.reshape(value, shape=(-1,)) for value in (*weights, *biases)]
    tokens = ops.swapaxes(inputs[0], 0, 1)
    one = ops.slice(tokens, begin=(0, None, 0), end=(1, None, 1))
    sizes = (node["layers"] * directions, hidden)
    empty = ops.broadcast_axis(ops.zeros_like(one), axis=(0, 2), size=sizes)
    states = ops.RNN(
        tokens,
        ops.concat(*flat, dim=0),
        empty,
        empty,
        mode="lstm",
        state_size=hidden,
        num_layers=node["layers"],
        bidirectional=node["bidirectional"],
    )
    return ops.swapaxes(states, 0, 1)


SEQUENCE_LAYERS = {
    **named(_attention, _class_token, _embedding, _layer_norm, _lstm, _position_embedding),
    **named(_rms_norm, _rotary),
}
"""MXNet's function of each operation on sequences."""
