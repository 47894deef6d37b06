"""A collective's time by size as it was measured, between and beyond the sizes measured."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import InputError
from paceline.predictor.collectives.group import Numbers


@dataclass(frozen=True)
class MeasuredCurve:
    """Points (bytes, seconds) in rising order of both.

    Between points the curve is straight on logarithmic axes; below the first it is level, since
    latency is all there is; beyond the last it goes on with the rate between the last point and
    the nearest at no more than half its size, since a short run of points is mostly noise.
    """

    sizes: tuple[float, ...]
    times: tuple[float, ...]

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> "MeasuredCurve":
        """The curve through measured points.

        Repetitions of a size count by their median. A larger message never takes less than a
        smaller one: a point below one to its left is noise, and is lifted to it.
        """
        repetitions: dict[float, list[float]] = {}
        for size, seconds in points:
            if size > 0 and seconds > 0:
                repetitions.setdefault(float(size), []).append(seconds)
        if not repetitions:
            raise InputError("a curve needs at least one measured point", "probe again")
        sizes = tuple(sorted(repetitions))
        times = np.maximum.accumulate([float(np.median(repetitions[size])) for size in sizes])
        return cls(sizes, tuple(float(seconds) for seconds in times))

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Seconds of one call with ``size_bytes`` of payload; nothing to send takes none."""
        asked = np.asarray(size_bytes, dtype=float)
        inside = np.exp(
            np.interp(np.log(np.maximum(asked, 1e-300)), np.log(self.sizes), np.log(self.times))
        )
        beyond = self.times[-1] + (asked - self.sizes[-1]) * self._last_seconds_per_byte
        result = np.where(asked > self.sizes[-1], beyond, inside)
        result = np.where(asked <= 0, 0.0, result)
        return float(result) if result.ndim == 0 else result

    __call__ = seconds

    def slower(self, factor: float) -> "MeasuredCurve":
        """The same curve with every time multiplied."""
        return MeasuredCurve(self.sizes, tuple(factor * seconds for seconds in self.times))

    @property
    def _last_seconds_per_byte(self) -> float:
        base = max(
            (i for i, size in enumerate(self.sizes) if size <= self.sizes[-1] / 2), default=0
        )
        rise = self.times[-1] - self.times[base]
        if rise <= 0:
            return self.times[-1] / self.sizes[-1]
        return rise / (self.sizes[-1] - self.sizes[base])
