"""Operations of a layer graph on sequences in JAX."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from layer_graph import Operation, lstm_layers, named
from layer_settings import LSTM_GATES, NORM_EPSILON, RMS_EPSILON
from numpy_tables import rotary_turns

Node = Mapping[str, Any]
Own = Mapping[str, Any]


def _embedding(_: Node, inputs: list, own: Own) -> Any:
    return jnp.take(own["weight"], inputs[0], axis=0, mode="clip")


def _class_token(_: Node, inputs: list, own: Own) -> Any:
    tokens = inputs[0]
    first = jnp.broadcast_to(own["weight"], (tokens.shape[0], 1, tokens.shape[2]))
    return jnp.concatenate([first, tokens], 1)


def _layer_norm(_: Node, inputs: list, own: Own) -> Any:
    centred = inputs[0] - jnp.mean(inputs[0], -1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), -1, keepdims=True)
    result = centred * lax.rsqrt(variance + NORM_EPSILON) * own["weight"]
    return result + own["bias"] if "bias" in own else result


def _rms_norm(_: Node, inputs: list, own: Own) -> Any:
    power = jnp.mean(jnp.square(inputs[0]), -1, keepdims=True)
    return inputs[0] * lax.rsqrt(power + RMS_EPSILON) * own["weight"]


def _rotary(node: Node, inputs: list, _: Own) -> Any:
    tokens, half = inputs[0], node["head_dim"] // 2
    cosine, sine = rotary_turns(tokens.shape[1], node["head_dim"])
    first, second, rest = jnp.split(_heads(tokens, node["head_dim"]), (half, 2 * half), -1)
    turned = [first * cosine - second * sine, second * cosine + first * sine, rest]
    return jnp.concatenate(turned, -1).reshape(tokens.shape)


def _attention(node: Node, inputs: list, _: Own) -> Any:
    heads = (_heads(tokens, node["head_dim"]) for tokens in inputs)
    result = jax.nn.dot_product_attention(*heads, is_causal=node["causal"])
    return result.reshape(*result.shape[:2], -1)


def _heads(tokens: Any, head_dim: int) -> Any:
    return tokens.reshape(*tokens.shape[:2], -1, head_dim)


def _lstm(node: Node, inputs: list, own: Own) -> Any:
    states = partial(_states, own)
    return lstm_layers(node, inputs[0], states, lambda ways: jnp.concatenate(ways, -1))


def _states(own: Own, tokens: Any, place: str, reverse: bool) -> Any:
    """States of all tokens in one layer and direction; input GEMMs of all tokens run at once."""
    gates = jnp.einsum("btf,gf->tbg", tokens, own[f"weight_ih_{place}"])
    if f"bias_ih_{place}" in own:
        gates = gates + (own[f"bias_ih_{place}"] + own[f"bias_hh_{place}"])
    recurrent = own[f"weight_hh_{place}"].T

    def step(state: tuple[Any, Any], from_input: Any) -> tuple[tuple[Any, Any], Any]:
        hidden, cell = state
        into, keep, new, out = jnp.split(from_input + hidden @ recurrent, LSTM_GATES, -1)
        cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(into) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(out) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((tokens.shape[0], recurrent.shape[0]), tokens.dtype)
    _, states = lax.scan(step, (zeros, zeros), gates, reverse=reverse)
    return states.swapaxes(0, 1)


OPERATIONS: Mapping[str, Operation] = {
    **named(_attention, _class_token, _embedding, _layer_norm, _lstm, _rms_norm, _rotary),
}
"""JAX's function of each operation on values in the axis order of the graph."""
