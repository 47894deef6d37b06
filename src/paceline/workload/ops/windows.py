"""Arithmetic of windows that slide over an input: shared by convolutions and pools."""

from paceline.errors import InputError
from paceline.workload.cost import Number, Shape
from paceline.workload.ops.sizes import describe, exceeds, require_positive


def check_window(
    kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> None:
    """Refuse windows that no input could have."""
    require_positive(kernel=kernel, stride=stride)
    if not 1 <= len(kernel) <= 3:
        raise InputError(f"a kernel has 1 to 3 dimensions, not {len(kernel)}")
    if not len(kernel) == len(stride) == len(padding):
        raise InputError(
            f"kernel {kernel}, stride {stride} and padding {padding} differ in dimensions"
        )
    if any(p < 0 for p in padding):
        raise InputError(f"padding must not be negative: {padding}")


def check_windows_fit(sizes: Shape, reach: tuple[int, ...], padding: tuple[int, ...]) -> None:
    """Refuse an input that is smaller than the window that slides over it."""
    for size, window, pad in zip(sizes, reach, padding, strict=True):
        if exceeds(window, size + 2 * pad):
            raise InputError(
                f"a window of {describe(reach)} does not fit into {describe(sizes)} "
                f"padded by {describe(padding)}",
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

    With ``ceil`` a last window that is only partly inside counts too, unless it would start in
    the padding beyond the end.
    """
    positions: list[Number] = []
    for size, window, step, pad in zip(sizes, reach, stride, padding, strict=True):
        span = size + 2 * pad - window
        count = (-(-span // step) if ceil else span // step) + 1
        if ceil and not exceeds(size + pad, (count - 1) * step):
            count = count - 1
        positions.append(count)
    return tuple(positions)
