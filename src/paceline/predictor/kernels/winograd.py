"""Winograd convolutions on the vector units of accelerators (Lavin and Gray 2016).

Overlapping tiles of 6 x 6 inputs are transformed, multiplied element by element over all channels,
and transformed back to 4 x 4 outputs for 3 x 3 windows, or 2 x 2 outputs for 5 x 5 windows (cuDNN's
non-fused kernels). One GEMM becomes 36 smaller ones with a quarter (or 9 of 25) of the
multiplications, and both tensors are read and written once more, one of them enlarged by the
overlap.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WINDOWS = (3, 5)
"""Window sizes for which libraries have such kernels."""
_TILE = 6


class TransformedProducts:
    """GEMMs of convolutions in Winograd form; `applies` marks the eligible ones.

    ``m``, ``n``, ``k`` and ``count`` are those of the smaller GEMMs, ``elements`` the number of
    values that the transforms read and write. All have the axes of the given sizes.
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
        # The input gradient has channels x window in m, the forward pass in k, the weight gradient
        # in n (im2col form): dividing by the window size leaves the channels.
        self.m = m / np.where(forward | weights, 1.0, numbers)
        self.n = n / np.where(weights, numbers, outputs)
        self.k = k / np.where(weights, outputs, np.where(forward, numbers, 1.0))
        self.count = count * _TILE**2
        # Each position of one tensor is expanded to 36 values per tile of ``outputs`` results.
        positions = np.where(weights, k, n)
        channels = np.where(weights, self.m + self.n, self.m + self.k)
        self.elements = (1.0 + _TILE**2 / outputs) * channels * positions * count

    @property
    def flops(self) -> Array:
        """FLOP of the smaller GEMMs."""
        return np.asarray(2.0 * self.m * self.n * self.k * self.count)
