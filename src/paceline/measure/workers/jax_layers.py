"""How each operation of an image network is computed by JAX, channels last."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE

Node = Mapping[str, Any]
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
}


def _conv(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    result = lax.conv_general_dilated(
        inputs[0],
        own["weight"],
        node["stride"],
        [(p, p) for p in node["padding"]],
        rhs_dilation=node["dilation"],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=node["groups"],
    )
    return result + own["bias"] if "bias" in own else result


def _linear(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    result = inputs[0] @ own["weight"]
    return result + own["bias"] if "bias" in own else result


def _max_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    return lax.reduce_window(inputs[0], -jnp.inf, lax.max, *_window(node))


def _avg_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    total = lax.reduce_window(inputs[0], 0.0, lax.add, *_window(node))
    return total / (node["kernel"][0] * node["kernel"][1])


def _window(node: Node) -> tuple:
    padding = [(0, 0), *((p, p) for p in node["padding"]), (0, 0)]
    return (1, *node["kernel"], 1), (1, *node["stride"], 1), padding


def _pad_shortcut(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[-1]
    taken = inputs[0][:, ::stride, ::stride, :]
    return jnp.pad(taken, [(0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)])


def _flatten(_: Node, inputs: list, __: Mapping[str, Any]) -> Any:
    value = inputs[0]
    if value.ndim == 4:
        value = value.transpose(0, 3, 1, 2)
    return value.reshape(value.shape[0], -1)


def _cross_entropy(_: Node, inputs: list, __: Mapping[str, Any]) -> Any:
    chances = jax.nn.log_softmax(inputs[0])
    return -jnp.mean(jnp.take_along_axis(chances, inputs[1][:, None], axis=1))


def operations(running: dict[str, Any], key: Any) -> dict[str, Any]:
    """JAX's function of each operation.

    Batch normalisation reads and replaces its statistics in ``running``; dropout draws from
    ``key``, a different number at each node.
    """

    def batch_norm(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
        value, name = inputs[0], node["name"]
        axes = tuple(range(value.ndim - 1))
        mean = jnp.mean(value, axes)
        variance = jnp.maximum(jnp.mean(jnp.square(value), axes) - jnp.square(mean), 0.0)
        count = value.size // value.shape[-1]
        unbiased = variance * (count / max(count - 1, 1))
        for short, new in (("running_mean", mean), ("running_var", unbiased)):
            old = running[f"{name}.{short}"]
            running[f"{name}.{short}"] = old + NORM_NEW_SHARE * (lax.stop_gradient(new) - old)
        scale = own["weight"] * lax.rsqrt(variance + NORM_EPSILON)
        return value * scale + (own["bias"] - mean * scale)

    def dropout(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
        kept = 1.0 - node["probability"]
        own_key = jax.random.fold_in(key, sum(node["name"].encode()))
        mask = jax.random.bernoulli(own_key, kept, inputs[0].shape)
        return jnp.where(mask, inputs[0] / kept, 0.0)

    return {
        "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
        "add": lambda _, inputs, __: sum(inputs[1:], inputs[0]),
        "avg_pool": _avg_pool,
        "batch_norm": batch_norm,
        "concat": lambda _, inputs, __: jnp.concatenate(inputs, -1),
        "conv": _conv,
        "cross_entropy": _cross_entropy,
        "dropout": dropout,
        "flatten": _flatten,
        "global_avg_pool": lambda _, inputs, __: jnp.mean(inputs[0], (1, 2)),
        "linear": _linear,
        "max_pool": _max_pool,
        "pad_shortcut": _pad_shortcut,
    }
