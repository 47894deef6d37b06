"""Convolutions of one to three dimensions, plain, grouped, dilated and transposed."""

import math

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Number, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import describe, elements, fixed_dimension, require_positive
from paceline.workload.ops.windows import check_window, check_windows_fit, window_positions
from paceline.workload.ops.work import Kept, Traffic, Work


@operation("conv")
class Convolution(Op):
    """``out_channels`` filters over an input of channels x 1..3 spatial dimensions.

    With K = channels * kernel / groups and P = output positions * batch, forward is
    GEMM(out, P, K), the weight gradient GEMM(out, K, P), the input gradient GEMM(K, P, out),
    each once per group. An implementation through im2col moves K * P further elements.
    """

    out_channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    bias: bool = False
    transposed: bool = False
    output_padding: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_positive(out_channels=self.out_channels, groups=self.groups)
        check_window(self.kernel, self.stride, self.padding)
        require_positive(dilation=self.dilation)
        if len(self.dilation) != len(self.kernel):
            raise InputError(
                f"dilation {self.dilation} and kernel {self.kernel} must have equal length"
            )
        if len(self.output_padding) not in (0, len(self.kernel)):
            raise InputError(
                f"output_padding {self.output_padding} must be as long as kernel {self.kernel}"
            )
        if self.out_channels % self.groups:
            raise InputError(
                f"{self.out_channels} channels are not divisible by {self.groups} groups"
            )

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        if len(shape) != len(self.kernel) + 1:
            raise InputError(
                f"a {len(self.kernel)}-dimensional kernel does not match input {describe(shape)}",
                "give channels and one size per dimension of the kernel",
            )
        channels = fixed_dimension(shape, 0)
        if channels % self.groups:
            raise InputError(f"{channels} input channels are not divisible by {self.groups} groups")
        if self.transposed:
            return (self.out_channels, *self._transposed_positions(shape[1:]))
        reach = tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        check_windows_fit(shape[1:], reach, self.padding)
        positions = window_positions(shape[1:], reach, self.stride, self.padding)
        return (self.out_channels, *positions)

    def parameters(self, inputs: Shapes) -> Parameters:
        channels = fixed_dimension(inputs[0], 0)
        if self.transposed:
            weight = (channels, self.out_channels // self.groups, *self.kernel)
        else:
            weight = (self.out_channels, channels // self.groups, *self.kernel)
        return {"weight": weight} | ({"bias": (self.out_channels,)} if self.bias else {})

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Three GEMMs per group; saves the input."""
        (shape,) = inputs
        output = self.output(inputs)
        weights = count_parameters(self.parameters(inputs))
        read, written = elements(shape), elements(output)
        channels = fixed_dimension(shape, 0) // self.groups
        filters, window = self.out_channels // self.groups, math.prod(self.kernel)
        if self.transposed:
            positions = elements(shape[1:])
            rows, depth = filters * window, channels
        else:
            positions = elements(output[1:])
            rows, depth = filters, channels * window
        slides = self._sliding_window()
        forward = Gemm(rows, positions, depth, self.groups, "n", slides)
        input_gradient = Gemm(depth, positions, rows, self.groups, "n", slides)
        moved = read + written
        return Work(
            forward=(forward,),
            weight_gradient=(Gemm(rows, depth, positions, self.groups, "k", slides),),
            input_gradient=(input_gradient,) if needs_input_gradient else (),
            forward_traffic=Traffic(moved, weights=weights),
            backward_traffic=Traffic(moved, weights) if needs_input_gradient else Traffic(),
            weight_gradient_traffic=Traffic(moved, weight_gradients=weights),
            kept_for_weights=Kept(inputs=(0,)),
        )

    def _sliding_window(self) -> int:
        """Side of a square window of stride 1 over all channels (Winograd applies); else 0."""
        plain = len(self.kernel) == 2 and self.groups == 1 and not self.transposed
        single = set(self.stride) == set(self.dilation) == {1}
        return self.kernel[0] if plain and single and len(set(self.kernel)) == 1 else 0

    def _transposed_positions(self, sizes: Shape) -> tuple[Number, ...]:
        extra = self.output_padding or (0,) * len(self.kernel)
        return tuple(
            (size - 1) * s - 2 * p + d * (k - 1) + o + 1
            for size, k, s, p, d, o in zip(
                sizes, self.kernel, self.stride, self.padding, self.dilation, extra, strict=True
            )
        )
