"""Keras layers of operations on tokens, and of those that name axes.

Values have the axis order of the graph. Variables have the names of the graph's parameters.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import layers, ops
from keras_layers import Builder, Value, layer_name
from layer_graph import Node, Shape, lstm_layers, named
from layer_settings import LSTM_GATES, NORM_EPSILON, RMS_EPSILON
from numpy_tables import rotary_turns


class GraphLayer(layers.Layer):
    """A layer whose variables have the names and shapes of its node's parameters."""

    def __init__(self, node: Node) -> None:
        super().__init__(name=layer_name(node))
        self.node = node

    def build(self, input_shape: Shape) -> None:
        """Create the variables; their values are set later."""
        for short, shape in self.variable_shapes().items():
            setattr(self, short, self.add_weight(name=short, shape=shape, initializer="zeros"))

    def variable_shapes(self) -> dict[str, Shape]:
        return {short: tuple(shape) for short, shape in self.node["parameter_shapes"].items()}


class TiedLinear(GraphLayer):
    """A linear layer with the table of an embedding as its weight, and its own bias."""

    def __init__(self, node: Node, embedding: layers.Embedding) -> None:
        super().__init__(node)
        self.embedding = embedding

    def variable_shapes(self) -> dict[str, Shape]:
        """Shapes without that of the weight."""
        shapes = super().variable_shapes()
        return {short: shape for short, shape in shapes.items() if short != "weight"}

    def call(self, tokens: Value) -> Value:
        scores = ops.matmul(tokens, ops.transpose(self.embedding.embeddings))
        return scores + self.bias if self.node["bias"] else scores


class PositionEmbedding(GraphLayer):
    """Adds a learned row per position."""

    def call(self, tokens: Value) -> Value:
        return tokens + self.weight[: tokens.shape[-2]]


class ClassToken(GraphLayer):
    """Prepends one learned token to every sample."""

    def call(self, tokens: Value) -> Value:
        first = ops.broadcast_to(self.weight, (ops.shape(tokens)[0], 1, tokens.shape[-1]))
        return ops.concatenate([first, tokens], axis=1)


class Lstm(GraphLayer):
    """PyTorch's LSTM, with two biases; that of Keras has one."""

    def call(self, tokens: Value) -> Value:
        """States of all tokens; those of both directions concatenated."""
        return lstm_layers(self.node, tokens, self.run_direction, partial(ops.concatenate, axis=-1))

    def run_direction(self, tokens: Value, place: str, reverse: bool) -> Value:
        """States of one direction of one layer; input GEMMs of all tokens run at once."""
        from_inputs = ops.matmul(tokens, ops.transpose(getattr(self, f"weight_ih_{place}")))
        if self.node["bias"]:
            from_inputs += getattr(self, f"bias_ih_{place}") + getattr(self, f"bias_hh_{place}")
        recurrent = ops.transpose(getattr(self, f"weight_hh_{place}"))

        def step(state: tuple[Value, Value], from_input: Value) -> tuple[Any, Value]:
            hidden, cell = state
            gates = from_input + ops.matmul(hidden, recurrent)
            new, kept, candidate, shown = ops.split(gates, LSTM_GATES, axis=-1)
            cell = ops.sigmoid(kept) * cell + ops.sigmoid(new) * ops.tanh(candidate)
            hidden = ops.sigmoid(shown) * ops.tanh(cell)
            return (hidden, cell), hidden

        zeros = ops.zeros((ops.shape(tokens)[0], self.node["hidden"]))
        return _scan(step, (zeros, zeros), from_inputs, reverse)


def _scan(step: Callable[..., Any], state: Any, tokens: Value, reverse: bool) -> Value:
    """Apply ``step`` to each token and the state after the previous one.

    Only JAX's loop compiles faster than the unrolled steps; FLOPs of TensorFlow's cannot be
    counted.
    """
    if keras.backend.backend() == "jax":
        _, made = ops.scan(step, state, ops.swapaxes(tokens, 0, 1), reverse=reverse)
        return ops.swapaxes(made, 0, 1)
    turn, results = -1 if reverse else 1, []
    for token in ops.unstack(tokens, tokens.shape[1], axis=1)[::turn]:
        state, result = step(state, token)
        results.append(result)
    return ops.stack(results[::turn], axis=1)


def _attention(node: Node, inputs: list) -> Value:
    """Keras's attention, fused if the backend has a kernel."""
    heads, kv_heads = node["heads"], node["kv_heads"]
    query, key, value = (
        ops.reshape(tokens, (-1, tokens.shape[1], count, tokens.shape[2] // count))
        for tokens, count in zip(inputs, (heads, kv_heads, kv_heads), strict=True)
    )
    if heads != kv_heads:
        key, value = (ops.repeat(tokens, heads // kv_heads, axis=2) for tokens in (key, value))
    result = ops.dot_product_attention(query, key, value, is_causal=node["causal"])
    return ops.reshape(result, (-1, query.shape[1], heads * value.shape[3]))


def _rotary(node: Node, inputs: list) -> Value:
    """Rotate feature i of a head with feature i + head_dim / 2."""
    _, length, width = inputs[0].shape
    half = node["head_dim"] // 2
    cosine, sine = rotary_turns(length, node["head_dim"])
    heads = ops.reshape(inputs[0], (-1, length, width // node["head_dim"], node["head_dim"]))
    first, second = heads[..., :half], heads[..., half : 2 * half]
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    if node["head_dim"] % 2:
        turned.append(heads[..., 2 * half :])
    return ops.reshape(ops.concatenate(turned, axis=-1), (-1, length, width))


def _layer_norm(node: Node, _: list) -> layers.Layer:
    return layers.LayerNormalization(
        epsilon=NORM_EPSILON, center=node.get("bias", True), name=layer_name(node)
    )


def _linear(node: Node, _: list) -> layers.Layer:
    return layers.Dense(node["out_features"], use_bias=node["bias"], name=layer_name(node))


def _flatten(node: Node, inputs: list) -> layers.Layer:
    start = node.get("start_axis", 0)
    if start == 0:
        return layers.Flatten()
    shape = inputs[0].shape[1:]
    return layers.Reshape((*shape[:start], math.prod(shape[start:])))


def _transpose(node: Node, inputs: list) -> Any:
    return ops.transpose(inputs[0], (0, *(axis + 1 for axis in node["axes"])))


BUILDERS: dict[str, Builder] = {
    **named(_attention, _flatten, _layer_norm, _linear, _rotary, _transpose),
    "class_token": lambda node, _: ClassToken(node),
    "embedding": lambda node, _: layers.Embedding(
        node["vocabulary"], node["width"], name=layer_name(node)
    ),
    "lstm": lambda node, _: Lstm(node),
    "position_embedding": lambda node, _: PositionEmbedding(node),
    "rms_norm": lambda node, _: layers.RMSNormalization(epsilon=RMS_EPSILON, name=layer_name(node)),
}
"""Operations on values in the axis order of the graph."""
