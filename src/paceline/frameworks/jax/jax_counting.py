"""FLOPs of a function as traced by JAX: its convolutions and GEMMs."""

import math
from collections.abc import Iterator
from typing import Any


def product_flops(program: Any) -> float:
    """FLOPs (2 per multiply-add) of a traced program and all programs it calls.

    The body of a scan counts once per iteration.
    """
    total = 0.0
    for equation in getattr(program, "jaxpr", program).eqns:
        inner = sum(product_flops(called) for called in _called(equation))
        total += _flops(equation) + inner * equation.params.get("length", 1)
    return total


def _called(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        for inner in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield inner


def _flops(equation: Any) -> int:
    name, results = equation.primitive.name, math.prod(equation.outvars[0].aval.shape)
    if name == "dot_general":
        (summed, _), _ = equation.params["dimension_numbers"]
        return 2 * results * math.prod(equation.invars[0].aval.shape[axis] for axis in summed)
    if name == "conv_general_dilated":
        weight = equation.invars[1].aval.shape
        channels = weight[equation.params["dimension_numbers"].rhs_spec[0]]
        return 2 * results * math.prod(weight) // channels
    return 0
