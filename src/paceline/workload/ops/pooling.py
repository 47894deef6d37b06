"""Max and average pooling."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload.cost import Shape
from paceline.workload.ops.base import Op, Shapes, operation
from paceline.workload.ops.dimensions import describe, elements, require_rank
from paceline.workload.ops.windows import check_window, check_windows_fit, window_positions
from paceline.workload.ops.work import INDEX_BYTES, Kept, Traffic, Work


@dataclass(frozen=True, slots=True)
class _Pool(Op):
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    ceil: bool = False

    def __post_init__(self) -> None:
        check_window(self.kernel, self.stride, self.padding)

    def output(self, inputs: Shapes) -> Shape:
        (shape,) = inputs
        if len(shape) != len(self.kernel) + 1:
            raise InputError(
                f"a {len(self.kernel)}-dimensional window does not match input {describe(shape)}"
            )
        check_windows_fit(shape[1:], self.kernel, self.padding)
        sizes = window_positions(shape[1:], self.kernel, self.stride, self.padding, self.ceil)
        return (shape[0], *sizes)


@operation("max_pool")
class MaxPool(_Pool):
    """The largest value of each window."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves its input and the int64 indices of the maxima, as PyTorch does."""
        written = elements(self.output(inputs))
        moved = Traffic(elements(inputs[0]) + written, other_bytes=written * INDEX_BYTES)
        kept = Kept(inputs=(0,), other_bytes=written * INDEX_BYTES)
        return Work(forward_traffic=moved, backward_traffic=moved, kept=kept)


@operation("avg_pool")
class AveragePool(_Pool):
    """The mean of each window."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves its input, as PyTorch does."""
        moved = Traffic(elements(inputs[0]) + elements(self.output(inputs)))
        return Work(forward_traffic=moved, backward_traffic=moved, kept=Kept(inputs=(0,)))


@operation("global_avg_pool")
class GlobalAveragePool(Op):
    """The mean of each channel over all its positions."""

    def output(self, inputs: Shapes) -> Shape:
        require_rank(inputs[0], 2, "channels and positions")
        return inputs[0][:1]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves nothing: the gradient is one value per channel, broadcast."""
        moved = Traffic(elements(inputs[0]) + inputs[0][0])
        return Work(forward_traffic=moved, backward_traffic=moved)
