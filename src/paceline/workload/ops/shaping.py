"""Flatten, reshape, transpose, slice, expand, concatenate, pad."""

import math
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload.cost import Number, Shape
from paceline.workload.ops.base import Op, Shapes, operation
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    exceeds,
    fixed_dimension,
    require_positive,
    require_rank,
)
from paceline.workload.ops.work import Traffic, Work


@dataclass(frozen=True, slots=True)
class _View(Op):
    @property
    def is_view(self) -> bool:
        return True

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        return Work()


@operation("flatten")
class Flatten(_View):
    """Joins all dimensions of a sample from ``start_axis`` on into one."""

    start_axis: int = 0

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, self.start_axis + 1, f"more than {self.start_axis} dimensions")
        return (*shape[: self.start_axis], elements(shape[self.start_axis :]))


@operation("reshape")
class Reshape(_View):
    """Changes the shape of a sample; one size may be -1, which is inferred."""

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(size == -1 for size in self.shape) > 1 or any(
            size < 1 and size != -1 for size in self.shape
        ):
            raise InputError(
                f"shape must have positive sizes and at most one -1 (got {self.shape})"
            )

    def output(self, inputs: Shapes) -> Shape:
        total = elements(inputs[0])
        known = math.prod(size for size in self.shape if size != -1)
        rest = total // known
        result = tuple(rest if size == -1 else size for size in self.shape)
        if differs(elements(result), total):
            raise InputError(f"cannot reshape {describe(inputs[0])} to {self.shape}")
        return result


@operation("transpose")
class Transpose(_View):
    """Reorders the dimensions of a sample: result i is input ``axes[i]``."""

    axes: tuple[int, ...]

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        if sorted(self.axes) != list(range(len(shape))):
            raise InputError(
                f"axes {self.axes} are not a permutation of those of {describe(shape)}"
            )
        return tuple(shape[axis] for axis in self.axes)


@operation("slice")
class Slice(_View):
    """Positions ``start`` to ``stop`` (excluded) of one dimension."""

    axis: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(f"slice must have 0 <= start < stop (got {self.start}, {self.stop})")

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        axis = _axis(self.axis, shape)
        if exceeds(self.stop, shape[axis]):
            raise InputError(f"stop {self.stop} exceeds axis {axis} of {describe(shape)}")
        return (*shape[:axis], self.stop - self.start, *shape[axis + 1 :])


@operation("expand")
class Expand(_View):
    """Repeats a dimension of size 1 ``count`` times without a copy: one key for all heads."""

    axis: int
    count: int

    def __post_init__(self) -> None:
        require_positive(count=self.count)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        axis = _axis(self.axis, shape)
        if differs(shape[axis], 1):
            raise InputError(f"axis {axis} of {describe(shape)} must have size 1")
        return (*shape[:axis], self.count, *shape[axis + 1 :])

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """No forward work; backward sums the gradients of the repeats."""
        size = elements(inputs[0])
        return Work(backward_traffic=Traffic((self.count + 1) * size))


@operation("concat", inputs=(1, None))
class Concatenate(Op):
    """Inputs concatenated along ``axis`` (0 is the channels)."""

    axis: int = 0

    def output(self, inputs: Shapes) -> Shape:
        first = inputs[0]
        axis = _axis(self.axis, first)
        total: Number = 0
        for shape in inputs:
            if len(shape) != len(first) or any(
                differs(a, b)
                for i, (a, b) in enumerate(zip(shape, first, strict=True))
                if i != axis
            ):
                raise InputError(
                    f"cannot concatenate {describe(first)} and {describe(shape)} on axis {axis}",
                    "make all other dimensions equal",
                )
            total = total + shape[axis]
        return (*first[:axis], total, *first[axis + 1 :])

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """A copy forward; the gradients are views of one tensor."""
        size: Number = 0
        for shape in inputs:
            size = size + elements(shape)
        return Work(forward_traffic=Traffic(2 * size))


@operation("pad_shortcut")
class PadShortcut(Op):
    """The shortcut without weights of CIFAR ResNets (option A of He et al. 2015).

    Takes every ``stride``-th position and pads the channels with zeros on both sides to
    ``out_channels``.
    """

    out_channels: int
    stride: int = 1

    def __post_init__(self) -> None:
        require_positive(out_channels=self.out_channels, stride=self.stride)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, 2, "channels and positions")
        if fixed_dimension(shape, 0) > self.out_channels:
            raise InputError(f"cannot pad {describe(shape)} to {self.out_channels} channels")
        return (self.out_channels, *(-(-size // self.stride) for size in shape[1:]))

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        taken = self.output(inputs)
        read = elements((inputs[0][0], *taken[1:]))
        return Work(
            forward_traffic=Traffic(read + elements(taken)),
            backward_traffic=Traffic(read + elements(inputs[0])),
        )


def _axis(axis: int, shape: Shape) -> int:
    if not -len(shape) <= axis < len(shape):
        raise InputError(f"{describe(shape)} has no axis {axis}")
    return axis % len(shape)
