"""State-space models: Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024)."""

import numpy as np

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Number, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    even_share,
    fixed_dimension,
    require_positive,
)
from paceline.workload.ops.work import FLOAT32_BYTES, Kept, Traffic, Work

# FLOP per state element and token (decay, input, sum, product: 9) over the 2 of the GEMM that is
# counted; backward recomputes the states.
_SCAN_EXECUTED = 4.5
_SCAN_EXECUTED_BACKWARD = 1.5 * _SCAN_EXECUTED


@operation("causal_conv")
class CausalConvolution(Op):
    """Depthwise causal convolution over ``kernel`` tokens of tokens x width."""

    kernel: int
    bias: bool = True

    def __post_init__(self) -> None:
        require_positive(kernel=self.kernel)

    def output(self, inputs: Shapes) -> Shape:
        _require_tokens(inputs)
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        width = fixed_dimension(inputs[0], -1)
        return {"weight": (width, self.kernel)} | ({"bias": (width,)} if self.bias else {})

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One GEMM per channel for each pass; saves the input."""
        tokens, width = inputs[0]
        weights = count_parameters(self.parameters(inputs))
        moved = 2 * elements(inputs[0])
        slid = Gemm(1, tokens, self.kernel, width)
        return Work(
            forward=(slid,),
            weight_gradient=(Gemm(1, self.kernel, tokens, width, "k"),),
            input_gradient=(slid,) if needs_input_gradient else (),
            forward_traffic=Traffic(moved, weights),
            backward_traffic=Traffic(moved, weights),
            weight_gradient_traffic=Traffic(moved, weight_gradients=weights),
            kept_for_weights=Kept(inputs=(0,)),
        )


@operation("selective_scan", inputs=4)
class SelectiveScan(Op):
    """The selective scan of Mamba.

    Reads values and step sizes (tokens x channels) and the matrices B and C (tokens x state). Only
    the GEMM with C counts as FLOP, as in ``torch.utils.flop_counter``; the state stays on chip and
    is recomputed in backward.
    """

    def output(self, inputs: Shapes) -> Shape:
        _require_tokens(inputs)
        values, steps, into, out = inputs
        if differs(values[1], steps[1]) or differs(into[1], out[1]):
            raise InputError(
                f"widths differ: values {describe(values)}, steps {describe(steps)}, "
                f"B {describe(into)}, C {describe(out)}"
            )
        return values

    def parameters(self, inputs: Shapes) -> Parameters:
        """A, the decay of the state, and D, the skip connection."""
        width, state = fixed_dimension(inputs[0], -1), fixed_dimension(inputs[2], -1)
        return {"decay": (width, state), "direct": (width,)}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One GEMM per token forward, two backward; saves its inputs."""
        (tokens, width), state = inputs[0], inputs[2][1]
        weights = count_parameters(self.parameters(inputs))
        moved = _read(inputs) + elements(inputs[0])
        return Work(
            forward=(Gemm(width, 1, state, tokens, "count", executed=_SCAN_EXECUTED),),
            input_gradient=(
                Gemm(width, state, 1, tokens, "count", executed=_SCAN_EXECUTED_BACKWARD),
                Gemm(state, 1, width, tokens, "count", executed=_SCAN_EXECUTED_BACKWARD),
            ),
            forward_traffic=Traffic(moved, weights),
            backward_traffic=Traffic(2 * moved, weights, weights),
            kept=Kept(inputs=(0, 1, 2, 3)),
        )


@operation("state_space_dual", inputs=4)
class StateSpaceDual(Op):
    """State-space duality of Mamba-2: GEMMs within chunks, one state per head between them.

    Reads values (tokens x width), a step size per head, and the matrices B and C with ``state``
    elements for each of ``groups`` groups of heads. Counts the four GEMMs of every chunk (Dao and
    Gu 2024) and their gradients.
    """

    heads: int
    groups: int
    state: int
    chunk: int

    def __post_init__(self) -> None:
        require_positive(heads=self.heads, groups=self.groups, state=self.state, chunk=self.chunk)
        if self.heads % self.groups:
            raise InputError(f"{self.heads} heads are not divisible by {self.groups} groups")

    def output(self, inputs: Shapes) -> Shape:
        _require_tokens(inputs)
        wanted = (None, self.heads, self.groups * self.state, self.groups * self.state)
        for shape, width in zip(inputs, wanted, strict=True):
            if width is not None and differs(shape[1], width):
                raise InputError(f"needs tokens x {width} (got {describe(shape)})")
        if fixed_dimension(inputs[0], -1) % self.heads:
            raise InputError(
                f"the width of {describe(inputs[0])} is not divisible by {self.heads} heads"
            )
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        """A, D and the bias of the step sizes, per head."""
        return dict.fromkeys(("decay", "direct", "step_bias"), (self.heads,))

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves its inputs; backward recomputes the states."""
        tokens, width = inputs[0]
        head_dim = fixed_dimension(inputs[0], -1) // self.heads
        length = _smaller(self.chunk, tokens)
        chunks = even_share(tokens, length)
        heads, groups = self.heads * chunks, self.groups * chunks
        forward = (
            Gemm(length, length, self.state, groups, "count"),
            Gemm(length, head_dim, length, heads, "count"),
            Gemm(self.state, head_dim, length, heads, "count"),
            Gemm(length, head_dim, self.state, heads, "count"),
        )
        backward = tuple(
            back
            for g in forward
            for back in (
                Gemm(g.m, g.k, g.n, g.count, "count"),
                Gemm(g.k, g.n, g.m, g.count, "count"),
            )
        )
        weights = count_parameters(self.parameters(inputs))
        # Kernels of state-spaces/mamba (ssd_combined.py): states are 32-bit and written, passed
        # from chunk to chunk and read; so are the products of B and C of every chunk.
        states = 4 * chunks * self.state * width
        scores = 2 * tokens * length * self.groups
        moved = 2 * _read(inputs) + elements(inputs[0])
        return Work(
            forward=forward,
            input_gradient=backward,
            forward_traffic=Traffic(moved, weights, other_bytes=FLOAT32_BYTES * (states + scores)),
            backward_traffic=Traffic(
                3 * moved, weights, weights, FLOAT32_BYTES * (2.5 * states + 2 * scores)
            ),
            kept=Kept(inputs=(0, 1, 2, 3)),
        )


def _require_tokens(inputs: Shapes) -> None:
    for shape in inputs:
        if len(shape) != 2 or differs(shape[0], inputs[0][0]):
            raise InputError(f"needs tokens x width (got {describe(shape)})")


def _read(inputs: Shapes) -> Number:
    return sum((elements(shape) for shape in inputs), 0)


def _smaller(size: int, tokens: Number) -> Number:
    return min(size, tokens) if isinstance(tokens, int) else np.minimum(size, tokens)
