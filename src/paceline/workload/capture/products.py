"""Matrix products inside PyTorch's operations, from the shapes of their arguments.

Needs no PyTorch: arguments are anything with a ``shape``. The counts are those of PyTorch's own
counter with three differences, each held by a test: attention on CPU, which that counter drops,
is counted; its backward has the four products of the gradient and not the scores that a fused
kernel computes again; and the weight gradient of a grouped convolution is not counted once for
every group.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["plain", "input_gradient", "weight_gradient"]


@dataclass(frozen=True, slots=True)
class Product:
    """``count`` products of (m x k) and (k x n) matrices.

    ``role`` is ``plain`` where only the context tells which gradient a product belongs to.
    """

    m: int
    n: int
    k: int
    count: int = 1
    role: Role = "plain"

    @property
    def flops(self) -> int:
        """Two for each multiplication with its addition."""
        return 2 * self.m * self.n * self.k * self.count


Arguments: TypeAlias = Sequence[Any]
Formula: TypeAlias = Callable[[Arguments, Any], list[Product]]


def products_of(name: str, arguments: Arguments, result: Any) -> list[Product] | None:
    """Matrix products of the operation ``name`` (``aten::mm``); None where it is no product."""
    formula = FORMULAS.get(name)
    return None if formula is None else formula(arguments, result)


def _matrix_product(first: Any, second: Any) -> list[Product]:
    *outer, m, k = first.shape
    return [Product(m, second.shape[-1], k, math.prod(outer))]


def _vector_product(matrix: Any) -> list[Product]:
    return [Product(matrix.shape[0], 1, matrix.shape[-1])]


def _linear(arguments: Arguments, _: Any) -> list[Product]:
    inputs, weight = arguments[0], arguments[1]
    return [Product(math.prod(inputs.shape[:-1]), weight.shape[0], weight.shape[1])]


def _grouped_product(first: Any, second: Any) -> list[Product]:
    """Products of groups of rows (or columns) with a matrix each: every row is in one group."""
    rows, depth = first.shape[-2:]
    together = first.shape[0] if first.dim() == second.dim() == 3 else 1
    return [Product(rows, second.shape[-1], depth, together)]


def _convolution_sizes(
    images: Any, weight: Any, output: Any, transposed: bool, groups: int
) -> tuple[int, int, int]:
    """Rows, depth and positions of a convolution seen as one product per group."""
    window = math.prod(weight.shape[2:])
    if transposed:
        positions = images.shape[0] * math.prod(images.shape[2:])
        return weight.shape[1] * window, weight.shape[0] // groups, positions
    positions = output.shape[0] * math.prod(output.shape[2:])
    return weight.shape[0] // groups, weight.shape[1] * window, positions


def _convolution(arguments: Arguments, result: Any) -> list[Product]:
    images, weight, transposed, groups = (arguments[i] for i in (0, 1, 6, 8))
    rows, depth, positions = _convolution_sizes(images, weight, result, transposed, groups)
    return [Product(rows, positions, depth, groups)]


def _convolution_backward(arguments: Arguments, _: Any) -> list[Product]:
    gradient, images, weight, transposed, groups, wanted = (
        arguments[i] for i in (0, 1, 2, 7, 9, 10)
    )
    rows, depth, positions = _convolution_sizes(images, weight, gradient, transposed, groups)
    products = []
    if wanted[0]:
        products.append(Product(depth, positions, rows, groups, "input_gradient"))
    if wanted[1]:
        products.append(Product(rows, depth, positions, groups, "weight_gradient"))
    return products


def _attention_products(query: Any, key: Any, value: Any) -> tuple[Product, Product]:
    """Scores and weighted values; fewer key heads than query heads are used several times."""
    batch, heads, queries, width = query.shape
    keys, value_width = key.shape[2], value.shape[3]
    count = batch * heads
    return Product(queries, keys, width, count), Product(queries, value_width, keys, count)


def _attention(arguments: Arguments, _: Any) -> list[Product]:
    return list(_attention_products(*arguments[:3]))


def _attention_backward(arguments: Arguments, _: Any) -> list[Product]:
    scores, values = _attention_products(*arguments[1:4])
    role: Role = "input_gradient"
    queries, keys, width = scores.m, scores.n, scores.k
    return [
        Product(queries, keys, values.n, scores.count, role),
        Product(keys, values.n, queries, scores.count, role),
        Product(queries, width, keys, scores.count, role),
        Product(keys, width, queries, scores.count, role),
    ]


def _lstm(arguments: Arguments, _: Any) -> list[Product]:
    """One direction of one layer: all tokens at once, then the state token by token."""
    (tokens, batch, features), (rows, hidden) = arguments[0].shape, arguments[2].shape
    return [Product(rows, tokens * batch, features), Product(rows, batch, hidden, tokens)]


def _lstm_backward(arguments: Arguments, _: Any) -> list[Product]:
    (tokens, batch, features), (rows, hidden) = arguments[0].shape, arguments[2].shape
    return [
        Product(rows, features, tokens * batch, 1, "weight_gradient"),
        Product(rows, hidden, tokens * batch, 1, "weight_gradient"),
        Product(hidden, batch, rows, tokens, "input_gradient"),
        Product(features, tokens * batch, rows, 1, "input_gradient"),
    ]


_ATTENTION_KERNELS = (
    "flash_attention_for_cpu",
    "flash_attention",
    "efficient_attention",
    "cudnn_attention",
    "fused_attention_overrideable",
)

FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "aten::mm": lambda a, _: _matrix_product(a[0], a[1]),
        "aten::addmm": lambda a, _: _matrix_product(a[1], a[2]),
        "aten::_addmm_activation": lambda a, _: _matrix_product(a[1], a[2]),
        "aten::bmm": lambda a, _: _matrix_product(a[0], a[1]),
        "aten::baddbmm": lambda a, _: _matrix_product(a[1], a[2]),
        "aten::_scaled_mm": lambda a, _: _matrix_product(a[0], a[1]),
        "aten::_grouped_mm": lambda a, _: _grouped_product(a[0], a[1]),
        "aten::mv": lambda a, _: _vector_product(a[0]),
        "aten::addmv": lambda a, _: _vector_product(a[1]),
        "aten::linear": _linear,
        "aten::convolution": _convolution,
        "aten::_convolution": _convolution,
        "aten::convolution_backward": _convolution_backward,
        "aten::mkldnn_rnn_layer": _lstm,
        "aten::mkldnn_rnn_layer_backward": _lstm_backward,
    }
    | {f"aten::_scaled_dot_product_{kernel}": _attention for kernel in _ATTENTION_KERNELS}
    | {
        f"aten::_scaled_dot_product_{kernel}_backward": _attention_backward
        for kernel in _ATTENTION_KERNELS
    }
)
"""Products of each operation, from its positional arguments and its result."""
