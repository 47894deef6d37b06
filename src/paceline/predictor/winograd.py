"""Convolutions with fewer multiplications (Winograd), as plain units of accelerators run them.

Overlapping tiles of 6 x 6 inputs are transformed, multiplied place by place over all channels,
and transformed back, to 4 x 4 outputs of a window of 3 or 2 x 2 of one of 5 (cuDNN's kernels that
are not fused). So one product becomes 36 smaller ones with a quarter of the multiplications (or
9 of 25), and both tensors are read and written once more, one of them swollen by what overlaps.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WINDOWS = (3, 5)
"""Sides of windows that libraries have such kernels for."""
_TILE = 6


class TransformedProducts:
    """What some products of convolutions become; `applies` says which are such.

    ``m``, ``n``, ``k`` and ``count`` are those of the smaller products, ``elements`` how many
    numbers the transforms read and write. All have the axes of the given sizes.
    """

    def __init__(
        self,
        sizes: tuple[Array, Array, Array, Array],
        roles: Sequence[str],
        windows: Sequence[int],
    ) -> None:
        by_row = (-1, *[1] * (sizes[0].ndim - 1))

        def rows(values: Sequence[float]) -> Array:
            return np.array(values, dtype=np.float64).reshape(by_row)

        m, n, k, count = sizes
        windowed = [window if window in WINDOWS else 1 for window in windows]
        self.applies = rows(windowed) > 1
        numbers = rows(windowed) ** 2
        outputs = (_TILE + 1.0 - rows(windowed)) ** 2
        forward = rows([role == "forward" for role in roles]) > 0
        weights = rows([role == "weight_gradient" for role in roles]) > 0
        self.m = m / np.where(forward | weights, 1.0, numbers)
        self.n = n / np.where(weights, numbers, outputs)
        self.k = k / np.where(weights, outputs, np.where(forward, numbers, 1.0))
        self.count = count * _TILE**2
        positions = np.where(weights, k, n)
        channels = np.where(weights, self.m + self.n, self.m + self.k)
        self.elements = (1.0 + _TILE**2 / outputs) * channels * positions * count

    @property
    def flops(self) -> Array:
        """FLOP of the smaller products."""
        return np.asarray(2.0 * self.m * self.n * self.k * self.count)
