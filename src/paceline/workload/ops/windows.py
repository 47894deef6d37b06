"""Window arithmetic of convolutions and pooling."""

from paceline.errors import InputError
from paceline.workload.cost import Number, Shape
from paceline.workload.ops.dimensions import describe, exceeds, require_positive


def check_window(
    kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> None:
    require_positive(kernel=kernel, stride=stride)
    if not 1 <= len(kernel) <= 3:
        raise InputError(f"kernel must have 1 to 3 dimensions (got {len(kernel)})")
    if not len(kernel) == len(stride) == len(padding):
        raise InputError(
            f"kernel {kernel}, stride {stride} and padding {padding} must have equal length"
        )
    if any(p < 0 for p in padding):
        raise InputError(f"padding must not be negative (got {padding})")


def check_windows_fit(sizes: Shape, reach: tuple[int, ...], padding: tuple[int, ...]) -> None:
    for size, window, pad in zip(sizes, reach, padding, strict=True):
        if exceeds(window, size + 2 * pad):
            raise InputError(
                f"the window {describe(reach)} is larger than the input {describe(sizes)} "
                f"with padding {describe(padding)}",
                "use a larger input or a smaller kernel",
            )


def window_positions(
    sizes: Shape,
    reach: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil: bool = False,
) -> tuple[Number, ...]:
    """Positions of the window along each dimension.

    With ``ceil`` a last partial window counts unless it starts in the padding beyond the end, as
    in PyTorch's ``ceil_mode``.
    """
    positions: list[Number] = []
    for size, window, step, pad in zip(sizes, reach, stride, padding, strict=True):
        span = size + 2 * pad - window
        count = (-(-span // step) if ceil else span // step) + 1
        if ceil and not exceeds(size + pad, (count - 1) * step):
            count = count - 1
        positions.append(count)
    return tuple(positions)
