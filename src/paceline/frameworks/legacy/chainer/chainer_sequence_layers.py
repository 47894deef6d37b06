"""Operations of a layer graph on sequences in Chainer.

Tokens have the shape (batch, positions, features).
"""

import math
from functools import partial
from typing import Any

import chainer.functions as F
from chainer_layers import Own
from layer_graph import Node, lstm_layers, named
from layer_settings import LSTM_GATES, NORM_EPSILON, RMS_EPSILON
from numpy_tables import causal_bias, rotary_turns


def _layer_norm(_: Node, inputs: list, own: Own) -> Any:
    tokens, weight = inputs[0], own["weight"]
    bias = own["bias"] if "bias" in own else weight.xp.zeros_like(weight.array)
    rows = tokens.reshape(-1, tokens.shape[-1])
    return F.layer_normalization(rows, weight, bias, NORM_EPSILON).reshape(tokens.shape)


def _rms_norm(_: Node, inputs: list, own: Own) -> Any:
    squares = F.mean(F.square(inputs[0]), axis=-1, keepdims=True)
    return inputs[0] * F.rsqrt(squares + RMS_EPSILON) * own["weight"]


def _class_token(_: Node, inputs: list, own: Own) -> Any:
    samples, _positions, width = inputs[0].shape
    return F.concat([F.broadcast_to(own["weight"], (samples, 1, width)), inputs[0]], axis=1)


def _rotary(node: Node, inputs: list, _: Own) -> Any:
    tokens, half = inputs[0], node["head_dim"] // 2
    turns = rotary_turns(tokens.shape[1], node["head_dim"])
    cosine, sine = (tokens.xp.asarray(table) for table in turns)
    heads = tokens.reshape(*tokens.shape[:2], -1, node["head_dim"])
    first, second = heads[..., :half], heads[..., half : 2 * half]
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    unpaired = [heads[..., 2 * half :]] if node["head_dim"] % 2 else []
    return F.concat([*turned, *unpaired], axis=-1).reshape(tokens.shape)


def _attention(node: Node, inputs: list, _: Own) -> Any:
    head_dim, group = node["head_dim"], node["heads"] // node["kv_heads"]
    query, key, value = (
        F.transpose(tokens.reshape(*tokens.shape[:2], -1, head_dim), (0, 2, 1, 3))
        for tokens in inputs
    )
    if group > 1:
        key, value = F.repeat(key, group, axis=1), F.repeat(value, group, axis=1)
    scores = F.matmul(query * (1.0 / math.sqrt(head_dim)), key, transb=True)
    if node["causal"]:
        scores = scores + scores.xp.asarray(causal_bias(*scores.shape[-2:]))
    result = F.matmul(F.softmax(scores, axis=-1), value)
    return F.transpose(result, (0, 2, 1, 3)).reshape(*inputs[0].shape)


def _lstm(node: Node, inputs: list, own: Own) -> Any:
    """Layer by layer: Chainer's `n_step_lstm` rearranges the weights for each token."""
    states = partial(_states, own)
    return lstm_layers(node, inputs[0], states, lambda ways: F.concat(ways, axis=2))


def _states(own: Own, tokens: Any, place: str, reverse: bool) -> Any:
    """Hidden states of all tokens of one layer in one direction."""
    weight_ih, weight_hh = own[f"weight_ih_{place}"], own[f"weight_hh_{place}"]
    bias_ih, bias_hh = own.get(f"bias_ih_{place}"), own.get(f"bias_hh_{place}")
    hidden = cell = weight_hh.xp.zeros((tokens.shape[0], weight_hh.shape[1]), weight_hh.dtype)
    states, turn = [], -1 if reverse else 1
    by_token = F.separate(F.linear(tokens, weight_ih, bias_ih, n_batch_axes=2), axis=1)
    for read in by_token[::turn]:
        gates = read + F.linear(hidden, weight_hh, bias_hh)
        enter, keep, new, leave = F.split_axis(gates, LSTM_GATES, axis=1)
        cell = F.sigmoid(keep) * cell + F.sigmoid(enter) * F.tanh(new)
        hidden = F.sigmoid(leave) * F.tanh(cell)
        states.append(hidden)
    return F.stack(states[::turn], axis=1)


SEQUENCE_LAYERS = {
    **named(_attention, _class_token, _layer_norm, _lstm, _rms_norm, _rotary),
    "embedding": lambda _, inputs, own: F.embed_id(inputs[0], own["weight"]),
}
"""Chainer's function of each operation on sequences."""
