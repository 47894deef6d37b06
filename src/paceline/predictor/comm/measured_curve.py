"""Measured time of a collective by size, with interpolation and extrapolation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import InputError
from paceline.predictor.comm.rank_group import Numbers


@dataclass(frozen=True)
class MeasuredCurve:
    """Points (bytes, seconds), increasing in both.

    Interpolation is linear on logarithmic axes. Below the first point the time is constant
    (latency). Beyond the last point the curve continues with the bandwidth between the last point
    and the nearest one of at most half its size: closer points differ mostly by noise.
    """

    sizes: tuple[float, ...]
    times: tuple[float, ...]

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> "MeasuredCurve":
        """The curve through measured points.

        Repetitions of a size are replaced by their median. Time never decreases with size: a
        smaller value to the right of a point is noise and is raised to that point.
        """
        repetitions: dict[float, list[float]] = {}
        for size, seconds in points:
            if size > 0 and seconds > 0:
                repetitions.setdefault(float(size), []).append(seconds)
        if not repetitions:
            raise InputError(
                "the all-reduce curve has no measured point", "run 'paceline calibrate' again"
            )
        sizes = tuple(sorted(repetitions))
        times = np.maximum.accumulate([float(np.median(repetitions[size])) for size in sizes])
        return cls(sizes, tuple(float(seconds) for seconds in times))

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Seconds of one call with ``size_bytes`` of payload; 0 for an empty message."""
        sizes = np.asarray(size_bytes, dtype=float)
        inside = np.exp(
            np.interp(np.log(np.maximum(sizes, 1e-300)), np.log(self.sizes), np.log(self.times))
        )
        beyond = self.times[-1] + (sizes - self.sizes[-1]) * self._last_seconds_per_byte
        result = np.where(sizes > self.sizes[-1], beyond, inside)
        result = np.where(sizes <= 0, 0.0, result)
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
