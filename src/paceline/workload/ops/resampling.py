"""Upsampling and RoI align."""

from paceline.errors import InputError
from paceline.workload.cost import Shape
from paceline.workload.ops.base import Op, Shapes, operation
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    require_positive,
    require_rank,
)
from paceline.workload.ops.work import FLOAT32_BYTES, Kept, Traffic, Work


@operation("upsample")
class Upsample(Op):
    """Nearest-neighbour upsampling by ``scale`` along each spatial dimension."""

    scale: int = 2

    def __post_init__(self) -> None:
        require_positive(scale=self.scale)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        require_rank(shape, 2, "channels and positions")
        return (shape[0], *(size * self.scale for size in shape[1:]))

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves nothing: the gradient is a sum over the repeated values."""
        moved = Traffic(elements(inputs[0]) + elements(self.output(inputs)))
        return Work(forward_traffic=moved, backward_traffic=moved)


@operation("roi_align", inputs=(2, None))
class RoiAlign(Op):
    """A map of ``size`` positions for each box, interpolated from feature maps (Mask R-CNN).

    Reads boxes x 4 corners, then feature maps of equal channels, coarser from one to the next;
    each map serves an even share of the boxes. Each position is the mean of ``samples`` squared
    points, each of them interpolated from its four neighbours. The result is channels x boxes x
    rows x columns, so that a convolution with a kernel of one in the second dimension treats
    every box by itself.
    """

    size: tuple[int, int]
    samples: int = 2

    def __post_init__(self) -> None:
        require_positive(size=self.size, samples=self.samples)

    def output(self, inputs: Shapes) -> Shape:
        boxes, *maps = inputs
        if len(boxes) != 2 or differs(boxes[1], 4):
            raise InputError(f"boxes must be boxes x 4 (got {describe(boxes)})")
        for shape in maps:
            if len(shape) != 3 or differs(shape[0], maps[0][0]):
                raise InputError(
                    f"maps must be channels x rows x columns with equal channels "
                    f"(got {describe(shape)})"
                )
        return (maps[0][0], boxes[0], *self.size)

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Reads four neighbours of every point; backward adds to them. Saves the boxes."""
        result = elements(self.output(inputs))
        neighbours = 4 * self.samples**2 * result
        whole = sum((elements(shape) for shape in inputs[1:]), 0)
        corners = elements(inputs[0]) * FLOAT32_BYTES
        return Work(
            forward_traffic=Traffic(result + neighbours, other_bytes=corners),
            backward_traffic=Traffic(result + 2 * neighbours + whole, other_bytes=corners),
            kept=Kept(inputs=(0,)),
        )
