"""Image-network layers in plain NumPy, forward and backward: what every framework is held to.

Written to be read. Values are float64, channels first. A layer takes its node, the values it
reads and its parameters, and returns its result and a function that turns the gradient of the
result into those of the values and of the parameters.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Node: TypeAlias = Mapping[str, Any]
Own: TypeAlias = Mapping[str, Array]
Gradients: TypeAlias = tuple[list[Array], dict[str, Array]]
Backward: TypeAlias = Callable[[Array], Gradients]
Layer: TypeAlias = Callable[[Node, list[Array], Own], tuple[Array, Backward]]

NORM_EPSILON = 1e-5


def conv(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Convolution as one matrix product per group of channels."""
    x, weight, groups = inputs[0], own["weight"], node["groups"]
    padded = _padded(x, node["padding"], 0.0)
    windows = _windows(padded, node["kernel"], node["stride"], node["dilation"])
    count, _, height, width = windows.shape[:4]
    columns = [
        part.transpose(0, 2, 3, 1, 4, 5).reshape(count * height * width, -1)
        for part in np.split(windows, groups, axis=1)
    ]
    matrices = [part.reshape(part.shape[0], -1) for part in np.split(weight, groups)]
    rows = np.concatenate([c @ m.T for c, m in zip(columns, matrices, strict=True)], axis=1)
    if "bias" in own:
        rows = rows + own["bias"]
    result = rows.reshape(count, height, width, -1).transpose(0, 3, 1, 2)

    def backward(gradient: Array) -> Gradients:
        by_row = gradient.transpose(0, 2, 3, 1).reshape(count * height * width, -1)
        parts = np.split(by_row, groups, axis=1)
        of_weight = [g.T @ c for g, c in zip(parts, columns, strict=True)]
        of_windows = [
            (g @ m).reshape(count, height, width, -1, *node["kernel"]).transpose(0, 3, 1, 2, 4, 5)
            for g, m in zip(parts, matrices, strict=True)
        ]
        of_x = _gather_windows(np.concatenate(of_windows, axis=1), padded.shape, node)
        gradients = {"weight": np.concatenate(of_weight).reshape(weight.shape)}
        if "bias" in own:
            gradients["bias"] = by_row.sum(axis=0)
        return [_cropped(of_x, node["padding"])], gradients

    return result, backward


def linear(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """A matrix product with the transposed weight."""
    x, weight = inputs[0], own["weight"]
    result = x @ weight.T
    if "bias" in own:
        result = result + own["bias"]

    def backward(gradient: Array) -> Gradients:
        gradients = {"weight": gradient.T @ x}
        if "bias" in own:
            gradients["bias"] = gradient.sum(axis=0)
        return [gradient @ weight], gradients

    return result, backward


def batch_norm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Each channel less its mean over its deviation, both of this batch, then scaled and moved."""
    x = inputs[0]
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *[1] * (x.ndim - 2))
    deviation = np.sqrt(x.var(axis=axes, keepdims=True) + NORM_EPSILON)
    standard = (x - x.mean(axis=axes, keepdims=True)) / deviation
    scale = own["weight"].reshape(shape)

    def backward(gradient: Array) -> Gradients:
        scaled = gradient * scale
        of_x = scaled - scaled.mean(axis=axes, keepdims=True)
        of_x = of_x - standard * (scaled * standard).mean(axis=axes, keepdims=True)
        own_gradients = {
            "weight": (gradient * standard).sum(axis=axes),
            "bias": gradient.sum(axis=axes),
        }
        return [of_x / deviation], own_gradients

    return standard * scale + own["bias"].reshape(shape), backward


def activation(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """A function of each number; its slope is written with its result."""
    x = inputs[0]
    result, slope = ACTIVATIONS[node["function"]](x)
    return result, lambda gradient: ([gradient * slope], {})


def _relu(x: Array) -> tuple[Array, Array]:
    return np.maximum(x, 0.0), (x > 0).astype(x.dtype)


def _relu6(x: Array) -> tuple[Array, Array]:
    return np.clip(x, 0.0, 6.0), ((x > 0) & (x < 6)).astype(x.dtype)


def _sigmoid(x: Array) -> tuple[Array, Array]:
    result = 1.0 / (1.0 + np.exp(-x))
    return result, result * (1.0 - result)


def _tanh(x: Array) -> tuple[Array, Array]:
    result = np.tanh(x)
    return result, 1.0 - result**2


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "relu": _relu,
    "relu6": _relu6,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
}


def max_pool(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The largest of each window; its gradient goes to the first that is as large."""
    padded = _padded(inputs[0], node["padding"], -np.inf)
    windows = _windows(padded, node["kernel"], node["stride"], (1, 1))
    flat = windows.reshape(*windows.shape[:4], -1)
    chosen = flat.argmax(axis=-1)

    def backward(gradient: Array) -> Gradients:
        taken = np.arange(flat.shape[-1]) == chosen[..., None]
        spread = (gradient[..., None] * taken).reshape(windows.shape)
        of_x = _gather_windows(spread, padded.shape, {**node, "dilation": (1, 1)})
        return [_cropped(of_x, node["padding"])], {}

    return flat.max(axis=-1), backward


def avg_pool(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The mean of each window, padding counted as zeros."""
    padded = _padded(inputs[0], node["padding"], 0.0)
    windows = _windows(padded, node["kernel"], node["stride"], (1, 1))
    share = 1.0 / (node["kernel"][0] * node["kernel"][1])

    def backward(gradient: Array) -> Gradients:
        spread = np.broadcast_to((gradient * share)[..., None, None], windows.shape)
        of_x = _gather_windows(spread, padded.shape, {**node, "dilation": (1, 1)})
        return [_cropped(of_x, node["padding"])], {}

    return windows.mean(axis=(-2, -1)), backward


def global_avg_pool(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The mean over all positions."""
    x = inputs[0]
    axes = tuple(range(2, x.ndim))
    positions = int(np.prod(x.shape[2:]))

    def backward(gradient: Array) -> Gradients:
        spread = gradient.reshape(*gradient.shape, *[1] * len(axes)) / positions
        return [np.broadcast_to(spread, x.shape)], {}

    return x.mean(axis=axes), backward


def add(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The sum of all it reads."""
    return sum(inputs[1:], inputs[0]), lambda gradient: ([gradient] * len(inputs), {})


def concat(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Values side by side along an axis of a sample."""
    axis = 1 + node.get("axis", 0)
    borders = np.cumsum([value.shape[axis] for value in inputs])[:-1]
    result = np.concatenate(inputs, axis=axis)
    return result, lambda gradient: (np.split(gradient, borders, axis=axis), {})


def flatten(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """One row per sample."""
    x = inputs[0]
    return x.reshape(len(x), -1), lambda gradient: ([gradient.reshape(x.shape)], {})


def pad_shortcut(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Every stride-th position, with zero channels before and after."""
    x, stride = inputs[0], node["stride"]
    added = node["out_channels"] - x.shape[1]
    before = added // 2
    taken = x[:, :, ::stride, ::stride]
    result = np.pad(taken, [(0, 0), (before, added - before), (0, 0), (0, 0)])

    def backward(gradient: Array) -> Gradients:
        of_x = np.zeros_like(x)
        of_x[:, :, ::stride, ::stride] = gradient[:, before : before + x.shape[1]]
        return [of_x], {}

    return result, backward


def cross_entropy(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Mean over samples of the negative logarithm of the right class's share."""
    scores, labels = inputs
    moved = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(moved) / np.exp(moved).sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(shares[rows, labels]).mean()

    def backward(gradient: Array) -> Gradients:
        of_scores = shares.copy()
        of_scores[rows, labels] -= 1.0
        return [of_scores * (gradient / len(labels)), np.zeros(labels.shape)], {}

    return np.asarray(loss), backward


LAYERS: dict[str, Layer] = {
    "activation": activation,
    "add": add,
    "avg_pool": avg_pool,
    "batch_norm": batch_norm,
    "concat": concat,
    "conv": conv,
    "cross_entropy": cross_entropy,
    "flatten": flatten,
    "global_avg_pool": global_avg_pool,
    "linear": linear,
    "max_pool": max_pool,
    "pad_shortcut": pad_shortcut,
}
"""Every operation the reference computes."""


def _padded(x: Array, padding: list[int], value: float) -> Array:
    sides = [(0, 0), (0, 0), *((size, size) for size in padding)]
    return np.pad(x, sides, constant_values=value)


def _cropped(x: Array, padding: list[int]) -> Array:
    height, width = padding
    return x[:, :, height : x.shape[2] - height, width : x.shape[3] - width]


def _windows(
    x: Array, kernel: list[int], stride: list[int], dilation: list[int] | tuple[int, int]
) -> Array:
    """A view of every window: (sample, channel, row, column, row in it, column in it)."""
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    windows = sliding_window_view(x, reach, axis=(2, 3))
    view: Array = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    return view


def _gather_windows(windows: Array, shape: tuple[int, ...], node: Node) -> Array:
    """The sum of windows put back where they were taken from."""
    total = np.zeros(shape)
    rows, columns = windows.shape[2:4]
    (row_step, column_step), dilation = node["stride"], node["dilation"]
    for i in range(windows.shape[4]):
        for j in range(windows.shape[5]):
            top, left = i * dilation[0], j * dilation[1]
            total[
                :,
                :,
                top : top + row_step * rows : row_step,
                left : left + column_step * columns : column_step,
            ] += windows[:, :, :, :, i, j]
    return total
