"""Operations of a layer graph on sequences in TensorFlow."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import tensorflow as tf
from layer_graph import Operation, lstm_layers, named
from layer_settings import LSTM_GATES, NORM_EPSILON, RMS_EPSILON
from numpy_tables import causal_bias, rotary_turns

Node = Mapping[str, Any]
Own = Mapping[str, Any]


def _embedding(_: Node, inputs: list, own: Own) -> Any:
    return tf.gather(own["weight"], inputs[0])


def _class_token(_: Node, inputs: list, own: Own) -> Any:
    tokens = inputs[0]
    first = tf.broadcast_to(own["weight"], [tokens.shape[0], 1, tokens.shape[2]])
    return tf.concat([first, tokens], 1)


def _layer_norm(_: Node, inputs: list, own: Own) -> Any:
    centred = inputs[0] - tf.reduce_mean(inputs[0], -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    result = centred * tf.math.rsqrt(variance + NORM_EPSILON) * own["weight"]
    return result + own["bias"] if "bias" in own else result


def _rms_norm(_: Node, inputs: list, own: Own) -> Any:
    power = tf.reduce_mean(tf.square(inputs[0]), -1, keepdims=True)
    return inputs[0] * tf.math.rsqrt(power + RMS_EPSILON) * own["weight"]


def _rotary(node: Node, inputs: list, _: Own) -> Any:
    tokens, half = inputs[0], node["head_dim"] // 2
    cosine, sine = rotary_turns(tokens.shape[1], node["head_dim"])
    heads = _heads(tokens, node["head_dim"])
    first, second = heads[..., :half], heads[..., half : 2 * half]
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return tf.reshape(tf.concat([*turned, heads[..., 2 * half :]], -1), tokens.shape)


def _attention(node: Node, inputs: list, _: Own) -> Any:
    """Compute unfused attention: TensorFlow without Keras has no attention kernel."""
    query, key, value = (_heads(tokens, node["head_dim"]) for tokens in inputs)
    shared = node["heads"] // node["kv_heads"]
    if shared > 1:
        key, value = (tf.repeat(tokens, shared, 2) for tokens in (key, value))
    query, key, value = (tf.transpose(tokens, [0, 2, 1, 3]) for tokens in (query, key, value))
    scores = tf.matmul(query / math.sqrt(node["head_dim"]), key, transpose_b=True)
    if node["causal"]:
        scores += causal_bias(*scores.shape[-2:])
    result = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return tf.reshape(result, [*result.shape[:2], -1])


def _heads(tokens: Any, head_dim: int) -> Any:
    return tf.reshape(tokens, [*tokens.shape[:2], -1, head_dim])


def _lstm(node: Node, inputs: list, own: Own) -> Any:
    states = partial(_states, own)
    return lstm_layers(node, inputs[0], states, lambda ways: tf.concat(ways, -1))


def _states(own: Own, tokens: Any, place: str, reverse: bool) -> Any:
    """States of all tokens in one layer and direction; input GEMMs of all tokens run at once."""
    batch, length, width = tokens.shape
    columns = tf.reshape(tf.transpose(tokens, [1, 0, 2]), [length * batch, width])
    gates = tf.matmul(columns, own[f"weight_ih_{place}"], transpose_b=True)
    if f"bias_ih_{place}" in own:
        gates = tf.nn.bias_add(gates, own[f"bias_ih_{place}"] + own[f"bias_hh_{place}"])
    recurrent = tf.transpose(own[f"weight_hh_{place}"])

    def step(state: tuple[Any, Any], from_input: Any) -> tuple[Any, Any]:
        hidden, cell = state
        total = from_input + tf.matmul(hidden, recurrent)
        into, keep, new, out = tf.split(total, LSTM_GATES, -1)
        cell = tf.sigmoid(keep) * cell + tf.sigmoid(into) * tf.tanh(new)
        return tf.sigmoid(out) * tf.tanh(cell), cell

    zeros = tf.zeros([batch, recurrent.shape[0]], tokens.dtype)
    by_token = tf.reshape(gates, [length, batch, -1])
    states, _ = tf.scan(step, by_token, (zeros, zeros), reverse=reverse)
    return tf.transpose(states, [1, 0, 2])


OPERATIONS: Mapping[str, Operation] = {
    **named(_attention, _class_token, _embedding, _layer_norm, _lstm, _rms_norm, _rotary),
}
"""TensorFlow's function of each operation on values in the axis order of the graph."""
