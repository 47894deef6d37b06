"""GEMMs of PyTorch's operations, from the shapes of their arguments.

Needs no PyTorch: arguments are objects with a ``shape``. The counts are those of
``torch.utils.flop_counter`` with three differences, each tested: attention on the CPU, which that
counter omits, is counted; its backward pass has the four GEMMs of the gradient without the scores
that a fused kernel recomputes; and the weight gradient of a grouped convolution, which that counter
multiplies by the groups, is counted once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["plain", "input_gradient", "weight_gradient"]


@dataclass(frozen=True, slots=True)
class CapturedGemm:
    """``count`` GEMMs of (m x k) and (k x n) matrices.

    ``role`` is ``plain`` if the operation does not determine which gradient it computes.
    """

    m: int
    n: int
    k: int
    count: int = 1
    role: Role = "plain"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k * self.count


Arguments: TypeAlias = Sequence[Any]
Formula: TypeAlias = Callable[[Arguments, Any], list[CapturedGemm]]


def products_of(name: str, arguments: Arguments, result: Any) -> list[CapturedGemm] | None:
    """GEMMs of the operation ``name`` (``aten::mm``); None if it has none."""
    formula = FORMULAS.get(name)
    return None if formula is None else formula(arguments, result)


def _matrix_product(first: Any, second: Any) -> list[CapturedGemm]:
    *outer, m, k = first.shape
    return [CapturedGemm(m, second.shape[-1], k, math.prod(outer))]


def _vector_product(matrix: Any) -> list[CapturedGemm]:
    return [CapturedGemm(matrix.shape[0], 1, matrix.shape[-1])]


def _linear(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    inputs, weight = arguments[0], arguments[1]
    return [CapturedGemm(math.prod(inputs.shape[:-1]), weight.shape[0], weight.shape[1])]


def _grouped_product(first: Any, second: Any) -> list[CapturedGemm]:
    """Each group of rows (or columns) has its own matrix; every row is in one group."""
    rows, depth = first.shape[-2:]
    together = first.shape[0] if first.dim() == second.dim() == 3 else 1
    return [CapturedGemm(rows, second.shape[-1], depth, together)]


def _convolution_sizes(
    images: Any, weight: Any, output: Any, transposed: bool, groups: int
) -> tuple[int, int, int]:
    """Rows, depth and positions of a convolution as one GEMM per group."""
    window = math.prod(weight.shape[2:])
    if transposed:
        positions = images.shape[0] * math.prod(images.shape[2:])
        return weight.shape[1] * window, weight.shape[0] // groups, positions
    positions = output.shape[0] * math.prod(output.shape[2:])
    return weight.shape[0] // groups, weight.shape[1] * window, positions


def _convolution(arguments: Arguments, result: Any) -> list[CapturedGemm]:
    images, weight, transposed, groups = (arguments[i] for i in (0, 1, 6, 8))
    rows, depth, positions = _convolution_sizes(images, weight, result, transposed, groups)
    return [CapturedGemm(rows, positions, depth, groups)]


def _convolution_backward(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    gradient, images, weight, transposed, groups, wanted = (
        arguments[i] for i in (0, 1, 2, 7, 9, 10)
    )
    rows, depth, positions = _convolution_sizes(images, weight, gradient, transposed, groups)
    products = []
    if wanted[0]:
        products.append(CapturedGemm(depth, positions, rows, groups, "input_gradient"))
    if wanted[1]:
        products.append(CapturedGemm(rows, depth, positions, groups, "weight_gradient"))
    return products


def _attention_products(query: Any, key: Any, value: Any) -> tuple[CapturedGemm, CapturedGemm]:
    """Scores and weighted values; query heads share key heads if there are fewer of them."""
    batch, heads, queries, width = query.shape
    keys, value_width = key.shape[2], value.shape[3]
    count = batch * heads
    return CapturedGemm(queries, keys, width, count), CapturedGemm(
        queries, value_width, keys, count
    )


def _attention(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    return list(_attention_products(*arguments[:3]))


def _attention_backward(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    scores, values = _attention_products(*arguments[1:4])
    role: Role = "input_gradient"
    queries, keys, width = scores.m, scores.n, scores.k
    return [
        CapturedGemm(queries, keys, values.n, scores.count, role),
        CapturedGemm(keys, values.n, queries, scores.count, role),
        CapturedGemm(queries, width, keys, scores.count, role),
        CapturedGemm(keys, width, queries, scores.count, role),
    ]


def _lstm(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    """One direction of one layer: inputs of all tokens at once, the state token by token."""
    (tokens, batch, features), (rows, hidden) = arguments[0].shape, arguments[2].shape
    return [CapturedGemm(rows, tokens * batch, features), CapturedGemm(rows, batch, hidden, tokens)]


def _lstm_backward(arguments: Arguments, _: Any) -> list[CapturedGemm]:
    (tokens, batch, features), (rows, hidden) = arguments[0].shape, arguments[2].shape
    return [
        CapturedGemm(rows, features, tokens * batch, 1, "weight_gradient"),
        CapturedGemm(rows, hidden, tokens * batch, 1, "weight_gradient"),
        CapturedGemm(hidden, batch, rows, tokens, "input_gradient"),
        CapturedGemm(features, tokens * batch, rows, 1, "input_gradient"),
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
"""GEMMs of each operation, from its positional arguments and its result."""
