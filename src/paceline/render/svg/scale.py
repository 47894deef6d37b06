"""Scales from values to pixels; every position is finite and on the scale."""

import math
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class LinearScale:
    """Maps ``low`` to ``high`` onto pixels; equal differences are equally far apart.

    A value beyond the scale is drawn at its edge.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return _between(self.start, self.end, share)


@dataclass(frozen=True)
class LogScale:
    """Maps ``low`` to ``high`` onto pixels; equal ratios are equally far apart.

    A value beyond the scale is drawn at its edge; a value that is not positive at the lower one.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if not value > 0:
            return self.start
        if math.isinf(value):
            return self.end
        span = math.log(self.high) - math.log(self.low)
        share = (math.log(value) - math.log(self.low)) / span if span > 0 else 0.5
        return _between(self.start, self.end, share)


Scale: TypeAlias = LinearScale | LogScale


@dataclass(frozen=True)
class BandScale:
    """``count`` bands side by side, with ``gap`` as a share of each."""

    count: int
    start: float
    end: float
    gap: float = 0.3

    @property
    def pitch(self) -> float:
        """Pixels from one band to the next."""
        return (self.end - self.start) / max(self.count, 1)

    @property
    def width(self) -> float:
        return self.pitch * (1 - self.gap)

    def edge(self, index: int) -> float:
        """First pixel of a band."""
        return self.start + self.pitch * (index + self.gap / 2)

    def centre(self, index: int) -> float:
        return self.start + self.pitch * (index + 0.5)


def _between(start: float, end: float, share: float) -> float:
    if math.isnan(share):
        return start
    return start + (end - start) * min(max(share, 0.0), 1.0)
