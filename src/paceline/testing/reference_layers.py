"""Layers in plain NumPy, forward and backward: the reference for every framework.

Values are float64, samples first, then channels. A layer takes its node, its input values and its
parameters, and returns its result and a function from the gradient of the result to the gradients
of inputs and parameters. Layers of sequences are in
`reference_sequence_layers`, losses in `reference`.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paceline.frameworks.runtime.layer_graph import beyond_end, named
from paceline.frameworks.runtime.layer_settings import (
    NORM_EPSILON,
    RESPONSE_ALPHA,
    RESPONSE_BETA,
    RESPONSE_K,
)

Array: TypeAlias = NDArray[Any]
Node: TypeAlias = Mapping[str, Any]
Own: TypeAlias = Mapping[str, Array]
Gradients: TypeAlias = tuple[list[Array], dict[str, Array]]
Backward: TypeAlias = Callable[[Array], Gradients]
Layer: TypeAlias = Callable[[Node, list[Array], Own], tuple[Array, Backward]]

_erf = np.frompyfunc(math.erf, 1, 1)


def conv(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Convolution: a sum of matrix products over kernel positions, per group of channels."""
    groups, weight = node["groups"], own["weight"]
    padded = _padded(inputs[0], [(size, size) for size in node["padding"]])
    windows = _windows(node, padded)
    # (group, sample, row, column, channel) and (kernel row, kernel column, group, in, out)
    x = _by_group(padded, groups)
    matrices = weight.reshape(groups, -1, *weight.shape[1:]).transpose(3, 4, 0, 2, 1)
    terms = (
        _product(x[:, :, down, right], matrices[position])
        for position, (down, right) in windows.items()
    )
    result = _from_groups(sum(terms, np.zeros(())))
    if "bias" in own:
        result = result + own["bias"][:, None, None]

    def backward(gradient: Array) -> Gradients:
        by_group = _by_group(gradient, groups)
        by_row = by_group.reshape(groups, -1, by_group.shape[-1])
        of_x, of_matrices = np.zeros(x.shape), np.zeros(matrices.shape)
        for position, (down, right) in windows.items():
            taken = x[:, :, down, right].reshape(groups, -1, x.shape[-1])
            of_matrices[position] = taken.swapaxes(1, 2) @ by_row
            of_x[:, :, down, right] += _product(by_group, matrices[position].swapaxes(1, 2))
        gradients = {"weight": of_matrices.transpose(2, 4, 3, 0, 1).reshape(weight.shape)}
        if "bias" in own:
            gradients["bias"] = gradient.sum(axis=(0, 2, 3))
        return [_cropped(_from_groups(of_x), node["padding"], inputs[0].shape)], gradients

    return result, backward


def linear(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """A matrix product with the transposed weight, at every position."""
    x, weight = inputs[0], own["weight"]
    result = x @ weight.T
    if "bias" in own:
        result = result + own["bias"]

    def backward(gradient: Array) -> Gradients:
        rows = gradient.reshape(-1, gradient.shape[-1])
        gradients = {"weight": rows.T @ x.reshape(-1, x.shape[-1])}
        if "bias" in own:
            gradients["bias"] = rows.sum(axis=0)
        return [gradient @ weight], gradients

    return result, backward


def batch_norm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Standardise each channel over the batch, then scale and shift it."""
    x = inputs[0]
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *[1] * (x.ndim - 2))
    standard, of_standard = standardised(x, axes)
    scale = own["weight"].reshape(shape)

    def backward(gradient: Array) -> Gradients:
        own_gradients = {
            "weight": (gradient * standard).sum(axis=axes),
            "bias": gradient.sum(axis=axes),
        }
        return [of_standard(gradient * scale)], own_gradients

    return standard * scale + own["bias"].reshape(shape), backward


def standardised(x: Array, axes: tuple[int, ...]) -> tuple[Array, Callable[[Array], Array]]:
    """``x`` standardised along some axes, and its backward function."""
    deviation = np.sqrt(x.var(axis=axes, keepdims=True) + NORM_EPSILON)
    standard = (x - x.mean(axis=axes, keepdims=True)) / deviation

    def backward(gradient: Array) -> Array:
        along = standard * (gradient * standard).mean(axis=axes, keepdims=True)
        of_x: Array = (gradient - gradient.mean(axis=axes, keepdims=True) - along) / deviation
        return of_x

    return standard, backward


def local_response_norm(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Local response normalisation over neighbouring channels (Krizhevsky et al., 2012)."""
    x, size = inputs[0], node["size"]
    before, after = size // 2, (size - 1) // 2
    share = RESPONSE_ALPHA / size
    level = RESPONSE_K + share * _sum_of_channels(x**2, before, after)
    factor = level**-RESPONSE_BETA

    def backward(gradient: Array) -> Gradients:
        of_level = -RESPONSE_BETA * gradient * x * factor / level
        of_squares = share * _sum_of_channels(of_level, after, before)
        return [gradient * factor + 2 * x * of_squares], {}

    return x * factor, backward


def _sum_of_channels(x: Array, before: int, after: int) -> Array:
    """For each channel, the sum of those at most ``before`` before it and ``after`` after it."""
    padded = np.pad(x, [(0, 0), (before, after), (0, 0), (0, 0)])
    return sum(
        (padded[:, first : first + x.shape[1]] for first in range(before + after + 1)),
        np.zeros(x.shape),
    )


def activation(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Elementwise function; its derivative is computed with its result."""
    result, slope = ACTIVATIONS[node["function"]](inputs[0])
    return result, lambda gradient: ([gradient * slope], {})


def _relu(x: Array) -> tuple[Array, Array]:
    return np.maximum(x, 0.0), (x > 0).astype(x.dtype)


def _relu6(x: Array) -> tuple[Array, Array]:
    return np.clip(x, 0.0, 6.0), ((x > 0) & (x < 6)).astype(x.dtype)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), which does not overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def _sigmoid(x: Array) -> tuple[Array, Array]:
    result = logistic(x)
    return result, result * (1.0 - result)


def _tanh(x: Array) -> tuple[Array, Array]:
    result = np.tanh(x)
    return result, 1.0 - result**2


def _silu(x: Array) -> tuple[Array, Array]:
    share, slope = _sigmoid(x)
    return x * share, share + x * slope


def _gelu(x: Array) -> tuple[Array, Array]:
    share = (1.0 + _erf(x / np.sqrt(2.0)).astype(x.dtype)) / 2.0
    density = np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi)
    return x * share, share + x * density


def _gelu_tanh(x: Array) -> tuple[Array, Array]:
    scale, cubic = np.sqrt(2.0 / np.pi), 0.044715
    result, slope = _tanh(scale * (x + cubic * x**3))
    share = (1.0 + result) / 2.0
    return x * share, share + x * slope * scale * (1.0 + 3.0 * cubic * x**2) / 2.0


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": _relu,
    "relu6": _relu6,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "tanh": _tanh,
}
"""Elementwise functions; each returns its result and its derivative."""


def max_pool(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Maximum of each window; the gradient goes to its first maximum."""
    x = inputs[0]
    ends = zip(node["padding"], beyond_end(node, x.shape[2:]), strict=True)
    padded = _padded(x, [(size, size + more) for size, more in ends], -np.inf)
    windows = list(_windows(node, padded).values())
    taken = np.stack([padded[:, :, down, right] for down, right in windows])
    chosen = taken.argmax(axis=0)

    def backward(gradient: Array) -> Gradients:
        of_x = np.zeros(padded.shape)
        for number, (down, right) in enumerate(windows):
            of_x[:, :, down, right] += gradient * (chosen == number)
        return [_cropped(of_x, node["padding"], x.shape)], {}

    return taken.max(axis=0), backward


def avg_pool(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """The mean of each window, padding counted as zeros."""
    x = inputs[0]
    padded = _padded(x, [(size, size) for size in node["padding"]])
    windows = list(_windows(node, padded).values())

    def backward(gradient: Array) -> Gradients:
        of_x = np.zeros(padded.shape)
        for down, right in windows:
            of_x[:, :, down, right] += gradient / len(windows)
        return [_cropped(of_x, node["padding"], x.shape)], {}

    return np.mean([padded[:, :, down, right] for down, right in windows], axis=0), backward


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
    return sum(inputs[1:], inputs[0]), lambda gradient: ([gradient] * len(inputs), {})


def multiply(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Elementwise product; the second input may have one number per channel."""
    x, y = inputs
    spread = tuple(range(y.ndim, x.ndim))
    factor = np.expand_dims(y, spread)

    def backward(gradient: Array) -> Gradients:
        return [gradient * factor, (gradient * x).sum(axis=spread)], {}

    return x * factor, backward


def concat(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    axis = _axis(node.get("axis", 0), inputs[0])
    borders = np.cumsum([value.shape[axis] for value in inputs])[:-1]
    result = np.concatenate(inputs, axis=axis)
    return result, lambda gradient: (np.split(gradient, borders, axis=axis), {})


def slice_(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    x = inputs[0]
    taken = [slice(None)] * x.ndim
    taken[_axis(node["axis"], x)] = slice(node["start"], node["stop"])
    selected = tuple(taken)

    def backward(gradient: Array) -> Gradients:
        of_x = np.zeros(x.shape)
        of_x[selected] = gradient
        return [of_x], {}

    return x[selected], backward


def flatten(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Flatten the axes of a sample from a given one on."""
    x = inputs[0]
    kept = x.shape[: 1 + node.get("start_axis", 0)]
    return x.reshape(*kept, -1), lambda gradient: ([gradient.reshape(x.shape)], {})


def transpose(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    order = (0, *(axis + 1 for axis in node["axes"]))
    back = np.argsort(order)
    return inputs[0].transpose(order), lambda gradient: ([gradient.transpose(back)], {})


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


LAYERS: dict[str, Layer] = {
    **named(activation, add, avg_pool, batch_norm, concat, conv, flatten, global_avg_pool, linear),
    **named(local_response_norm, max_pool, multiply, pad_shortcut, slice_, transpose),
}
"""The operations of this module by their names in a graph."""


def _axis(axis: int, x: Array) -> int:
    """An axis of a sample as one of the batch."""
    return 1 + axis % (x.ndim - 1)


def _padded(x: Array, sides: list[tuple[int, int]], value: float = 0.0) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *sides], constant_values=value)


def _cropped(x: Array, padding: list[int], shape: tuple[int, ...]) -> Array:
    (top, left), (height, width) = padding, shape[2:]
    return x[:, :, top : top + height, left : left + width]


def _windows(node: Node, padded: Array) -> dict[tuple[int, ...], tuple[slice, slice]]:
    """For each kernel position, the rows and columns of the input that it reads."""
    dilation = node.get("dilation", (1, 1))
    found = {}
    for position in itertools.product(*map(range, node["kernel"])):
        down, right = (
            slice(i * d, size - (k - 1 - i) * d, step)
            for i, d, k, size, step in zip(
                position, dilation, node["kernel"], padded.shape[2:], node["stride"], strict=True
            )
        )
        found[position] = down, right
    return found


def _by_group(x: Array, groups: int) -> Array:
    """Channels in groups: (group, sample, row, column, channel in the group)."""
    count, _, height, width = x.shape
    grouped = x.reshape(count, groups, -1, height, width)
    return np.ascontiguousarray(grouped.transpose(1, 0, 3, 4, 2))


def _from_groups(x: Array) -> Array:
    _, count, height, width, _ = x.shape
    return x.transpose(1, 0, 4, 2, 3).reshape(count, -1, height, width)


def _product(x: Array, matrices: Array) -> Array:
    """Every position of a group times the group's matrix."""
    rows = x.reshape(len(x), -1, x.shape[-1]) @ matrices
    return rows.reshape(*x.shape[:-1], -1)
