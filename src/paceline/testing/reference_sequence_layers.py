"""Layers of sequences in plain NumPy, forward and backward, as in `reference_layers`.

Values are (sample, position, feature), float64; token ids are integers.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from paceline.frameworks.runtime.layer_graph import named
from paceline.frameworks.runtime.layer_settings import RMS_EPSILON, ROTARY_BASE
from paceline.testing.reference_layers import (
    ACTIVATIONS,
    Array,
    Backward,
    Gradients,
    Layer,
    Node,
    Own,
    standardised,
)

LstmBackward: TypeAlias = Callable[[Array], tuple[Array, Array, Array, Array]]
"""From the gradient of the states to those of the values, of both weights and of a bias."""


def embedding(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The row of each token id."""
    tokens, weight = inputs[0], own["weight"]

    def backward(gradient: Array) -> Gradients:
        of_weight = np.zeros(weight.shape)
        np.add.at(of_weight, tokens, gradient)
        return [np.zeros(tokens.shape)], {"weight": of_weight}

    return weight[tokens], backward


def position_embedding(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Add the row of its position to each token."""
    x, weight = inputs[0], own["weight"]
    positions = x.shape[-2]

    def backward(gradient: Array) -> Gradients:
        of_weight = np.zeros(weight.shape)
        of_weight[:positions] = gradient.sum(axis=0)
        return [gradient], {"weight": of_weight}

    return x + weight[:positions], backward


def class_token(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Prepend a trained token to each sample."""
    x = inputs[0]
    token = np.broadcast_to(own["weight"], (len(x), 1, x.shape[-1]))

    def backward(gradient: Array) -> Gradients:
        return [gradient[:, 1:]], {"weight": gradient[:, :1].sum(axis=0)}

    return np.concatenate([token, x], axis=1), backward


def layer_norm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Standardise each token, then scale and shift it."""
    standard, of_standard = standardised(inputs[0], (-1,))
    result = standard * own["weight"]
    if "bias" in own:
        result = result + own["bias"]

    def backward(gradient: Array) -> Gradients:
        gradients = {"weight": _summed_over_tokens(gradient * standard)}
        if "bias" in own:
            gradients["bias"] = _summed_over_tokens(gradient)
        return [of_standard(gradient * own["weight"])], gradients

    return result, backward


def rms_norm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Divide each token by its root mean square, then scale it."""
    x = inputs[0]
    size = np.sqrt((x**2).mean(axis=-1, keepdims=True) + RMS_EPSILON)
    standard = x / size

    def backward(gradient: Array) -> Gradients:
        scaled = gradient * own["weight"]
        of_x = scaled - standard * (scaled * standard).mean(axis=-1, keepdims=True)
        return [of_x / size], {"weight": _summed_over_tokens(gradient * standard)}

    return standard * own["weight"], backward


def rotary(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Rotate features i and i + h/2 of a head of size h by an angle that grows with position."""
    positions, half = inputs[0].shape[1], node["head_dim"] // 2
    angles = np.arange(positions)[:, None] * ROTARY_BASE ** -(np.arange(half) / half)

    def rotated(x: Array, angles: Array) -> Array:
        cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
        heads = x.reshape(*x.shape[:-1], -1, node["head_dim"])
        first, second, rest = np.split(heads, [half, 2 * half], axis=-1)
        pair = [first * cosine - second * sine, second * cosine + first * sine]
        return np.concatenate([*pair, rest], axis=-1).reshape(x.shape)

    return rotated(inputs[0], angles), lambda gradient: ([rotated(gradient, -angles)], {})


def attention(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Scaled dot-product attention; groups of query heads share keys and values."""
    kv_heads, group = node["kv_heads"], node["heads"] // node["kv_heads"]

    def by_head(x: Array, shared: int) -> Array:
        """(sample, head of the keys, query's head of that one, position, feature)."""
        return x.reshape(*x.shape[:2], kv_heads, shared, -1).transpose(0, 2, 3, 1, 4)

    def by_token(x: Array) -> Array:
        return x.transpose(0, 3, 1, 2, 4).reshape(x.shape[0], x.shape[3], -1)

    query, key, value = (
        by_head(x, shared) for x, shared in zip(inputs, (group, 1, 1), strict=True)
    )
    scale = node["head_dim"] ** -0.5
    scores = query @ key.swapaxes(-1, -2) * scale
    if node["causal"]:
        queries, keys = scores.shape[-2:]
        scores = np.where(np.tri(queries, keys, keys - queries, dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = shares / shares.sum(axis=-1, keepdims=True)

    def backward(gradient: Array) -> Gradients:
        wanted = by_head(gradient, group)
        of_shares = wanted @ value.swapaxes(-1, -2)
        level = (of_shares * shares).sum(axis=-1, keepdims=True)
        of_scores = shares * (of_shares - level) * scale
        of_key = (of_scores.swapaxes(-1, -2) @ query).sum(axis=2, keepdims=True)
        of_value = (shares.swapaxes(-1, -2) @ wanted).sum(axis=2, keepdims=True)
        return [by_token(x) for x in (of_scores @ key, of_key, of_value)], {}

    return by_token(shares @ value), backward


def lstm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """LSTM layers; the states of both directions are concatenated."""
    directions = ("", "_reverse")[: 1 + node["bidirectional"]]
    x = inputs[0]
    tape: list[list[tuple[str, LstmBackward]]] = []
    for layer in range(node["layers"]):
        states, backwards = [], []
        for direction in directions:
            suffix = f"l{layer}{direction}"
            made, backward = _lstm_pass(_in_order(x, direction), own, suffix)
            states.append(_in_order(made, direction))
            backwards.append((suffix, backward))
        x = np.concatenate(states, axis=-1)
        tape.append(backwards)

    def all_backward(gradient: Array) -> Gradients:
        gradients: dict[str, Array] = {}
        for backwards in reversed(tape):
            of_x = np.zeros(())
            parts = np.split(gradient, len(backwards), axis=-1)
            for direction, part, (suffix, backward) in zip(
                directions, parts, backwards, strict=True
            ):
                of_values, of_input, of_state, of_bias = backward(_in_order(part, direction))
                of_x = of_x + _in_order(of_values, direction)
                gradients |= {f"weight_ih_{suffix}": of_input, f"weight_hh_{suffix}": of_state}
                if node["bias"]:
                    gradients |= {f"bias_ih_{suffix}": of_bias, f"bias_hh_{suffix}": of_bias}
            gradient = of_x
        return [gradient], gradients

    return x, all_backward


def _in_order(x: Array, direction: str) -> Array:
    return x[:, ::-1] if direction else x


def _lstm_pass(x: Array, own: Own, suffix: str) -> tuple[Array, LstmBackward]:
    """States of one layer in one direction; gates are input, forget, candidate, output."""
    of_values, of_state = own[f"weight_ih_{suffix}"], own[f"weight_hh_{suffix}"]
    bias = own.get(f"bias_ih_{suffix}", 0.0) + own.get(f"bias_hh_{suffix}", 0.0)
    known = x @ of_values.T + bias
    count, tokens, hidden = *x.shape[:2], of_state.shape[1]
    states, cells = np.zeros((2, count, tokens + 1, hidden))
    slopes = np.zeros((count, tokens, 4, hidden))
    gates = np.zeros((count, tokens, 4, hidden))
    functions = [ACTIVATIONS[name] for name in ("sigmoid", "sigmoid", "tanh", "sigmoid")]
    for t in range(tokens):
        before = (known[:, t] + states[:, t] @ of_state.T).reshape(count, 4, hidden)
        for gate, function in enumerate(functions):
            gates[:, t, gate], slopes[:, t, gate] = function(before[:, gate])
        let_in, keep, candidate, let_out = gates[:, t].swapaxes(0, 1)
        cells[:, t + 1] = keep * cells[:, t] + let_in * candidate
        states[:, t + 1] = let_out * np.tanh(cells[:, t + 1])

    def backward(gradient: Array) -> tuple[Array, Array, Array, Array]:
        of_known = np.zeros(known.shape)
        later, of_cell = np.zeros((2, count, hidden))
        for t in reversed(range(tokens)):
            let_in, keep, candidate, let_out = gates[:, t].swapaxes(0, 1)
            shown, slope = ACTIVATIONS["tanh"](cells[:, t + 1])
            wanted = gradient[:, t] + later
            of_cell = of_cell + wanted * let_out * slope
            of_gates = [of_cell * candidate, of_cell * cells[:, t], of_cell * let_in]
            of_before = np.stack([*of_gates, wanted * shown], axis=1) * slopes[:, t]
            of_known[:, t] = of_before.reshape(count, -1)
            later = of_known[:, t] @ of_state
            of_cell = of_cell * keep
        rows = of_known.reshape(count * tokens, -1)
        states_before = states[:, :-1].reshape(count * tokens, hidden)
        return (
            of_known @ of_values,
            rows.T @ x.reshape(count * tokens, -1),
            rows.T @ states_before,
            rows.sum(axis=0),
        )

    return states[:, 1:], backward


def _summed_over_tokens(x: Array) -> Array:
    total: Array = x.reshape(-1, x.shape[-1]).sum(axis=0)
    return total


SEQUENCE_LAYERS: dict[str, Layer] = {
    **named(attention, class_token, embedding, layer_norm, lstm, position_embedding, rms_norm),
    **named(rotary),
}
"""The operations of this module by their names in a graph."""
