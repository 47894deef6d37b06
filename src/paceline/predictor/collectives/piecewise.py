"""Piecewise alpha-beta fits of a measured collective, with the switch points found."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.predictor.collectives.group import Numbers

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Piece:
    """From ``from_bytes`` on a call takes ``alpha_seconds + size * beta_seconds_per_byte``."""

    from_bytes: float
    alpha_seconds: float
    beta_seconds_per_byte: float

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Time of one call."""
        return self.alpha_seconds + size_bytes * self.beta_seconds_per_byte


@dataclass(frozen=True)
class PiecewiseCost:
    """Pieces in rising order of size; the first begins at 0, the last has no end.

    ``relative_error`` is the root mean square of the residuals over the measured times. Time
    never falls as the size grows: after a switch downwards the curve stays level for a while.
    """

    pieces: tuple[Piece, ...]
    relative_error: float

    @property
    def switch_bytes(self) -> tuple[float, ...]:
        """Sizes at which the library changes its algorithm."""
        return tuple(piece.from_bytes for piece in self.pieces[1:])

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Time of one call; nothing to send takes none."""
        sizes = np.asarray(size_bytes, dtype=np.float64)
        result, floor = np.zeros_like(sizes), 0.0
        for index, piece in enumerate(self.pieces):
            inside = sizes >= piece.from_bytes
            result = np.where(inside, np.maximum(piece.seconds(sizes), floor), result)
            if index + 1 < len(self.pieces):
                floor = max(floor, float(piece.seconds(self.pieces[index + 1].from_bytes)))
        result = np.where(sizes <= 0, 0.0, result)
        return float(result) if result.ndim == 0 else result

    def __call__(self, size_bytes: Any) -> Any:
        """As `seconds`: a cost is the function of size that step builders take."""
        return self.seconds(size_bytes)


def fit_piecewise(
    points: Sequence[tuple[float, float]], most_pieces: int = 4, least_points: int = 3
) -> PiecewiseCost:
    """The pieces that fit measured (bytes, seconds) best, as many as the points bear out.

    Every split of the points into at most ``most_pieces`` runs of at least ``least_points`` is
    considered; each run has the line with the least relative squares, neither constant below
    zero. The number of pieces is the one with the lowest Bayesian information criterion.
    """
    usable = sorted((size, seconds) for size, seconds in points if size > 0 and seconds > 0)
    if len(usable) < 2:
        raise InputError("a fit needs at least two measured sizes", "measure more sizes")
    sizes = np.array([size for size, _ in usable])
    times = np.array([seconds for _, seconds in usable])
    least = min(least_points, len(usable))
    squares = _squares_of_runs(sizes, times, least)
    best: tuple[float, list[int]] | None = None
    for count, (total, starts) in enumerate(_splits(squares, most_pieces), start=1):
        criterion = _criterion(total, len(usable), count)
        if math.isfinite(total) and (best is None or criterion < best[0]):
            best = (criterion, starts)
    assert best is not None
    return _pieces(sizes, times, best[1])


def _pieces(sizes: Array, times: Array, starts: list[int]) -> PiecewiseCost:
    ends = [*starts[1:], len(sizes)]
    pieces: list[Piece] = []
    residual = 0.0
    for start, end in zip(starts, ends, strict=True):
        alpha, beta, squares = _line(sizes[start:end], times[start:end])
        begin = 0.0 if start == 0 else math.sqrt(sizes[start - 1] * sizes[start])
        pieces.append(Piece(begin, alpha, beta))
        residual += squares
    return PiecewiseCost(tuple(pieces), math.sqrt(residual / len(sizes)))


def _line(sizes: Array, times: Array) -> tuple[float, float, float]:
    """Alpha, beta of the least relative squares with neither below zero, and the squares."""
    inverse, slope = 1.0 / times, sizes / times
    design = np.stack([inverse, slope], axis=1)
    candidates = [np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)[0]]
    candidates.append(np.array([float(inverse.sum() / (inverse**2).sum()), 0.0]))
    candidates.append(np.array([0.0, float(slope.sum() / (slope**2).sum())]))
    feasible = [c for c in candidates if (c >= 0).all()]
    squares = [float(((design @ c - 1.0) ** 2).sum()) for c in feasible]
    best = int(np.argmin(squares))
    return float(feasible[best][0]), float(feasible[best][1]), squares[best]


def _squares_of_runs(sizes: Array, times: Array, least: int) -> Array:
    """Squares of the line through points i..j-1 at [i, j]; infinite for too short runs."""
    count = len(sizes)
    squares = np.full((count + 1, count + 1), np.inf)
    for start in range(count):
        for end in range(start + least, count + 1):
            squares[start, end] = _line(sizes[start:end], times[start:end])[2]
    return squares


def _splits(squares: Array, most: int) -> list[tuple[float, list[int]]]:
    """For 1, 2, ... pieces: the least squares, and where each piece starts."""
    count = len(squares) - 1
    totals = squares[0].copy()
    starts: list[list[int]] = [[0] for _ in range(count + 1)]
    found = [(float(totals[count]), starts[count])]
    for _ in range(1, most):
        candidates = totals[:, None] + squares
        chosen = candidates.argmin(axis=0)
        totals = candidates.min(axis=0)
        starts = [[*starts[cut], int(cut)] for cut in chosen]
        found.append((float(totals[count]), starts[count]))
    return found


def _criterion(squares: float, points: int, pieces: int) -> float:
    """Bayesian information criterion: two constants per piece and one size per switch."""
    noise = max(squares / points, 1e-6)
    return points * math.log(noise) + (3 * pieces - 1) * math.log(points)
