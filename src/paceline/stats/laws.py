"""Scaling laws fitted to launches on several numbers of processes, with intervals.

Every law is a sum of terms in the number of processes p with coefficients >= 0, fitted by least
squares of relative errors. Intervals of the coefficients come from resampling launches.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from paceline.errors import InputError

Matrix = npt.NDArray[np.float64]
RESAMPLES = 500


@dataclass(frozen=True)
class Law:
    """Step time of p processes as a sum of ``terms``, by name."""

    name: str
    of: str
    terms: Mapping[str, Callable[[Matrix], Matrix]]


def _one(p: Matrix) -> Matrix:
    return np.ones_like(p)


STRONG = {
    "Amdahl": Law(
        "Amdahl",
        "strong",
        {"serial": _one, "parallel": lambda p: 1.0 / p},
    ),
    # Universal scalability law, C(p) = p / (1 + a (p - 1) + b p (p - 1)) (Gunther, CMG 1993),
    # as time: 1 / C(p)
    "USL": Law(
        "USL",
        "strong",
        {
            "work": lambda p: 1.0 / p,
            "contention": lambda p: (p - 1.0) / p,
            "coherency": lambda p: p - 1.0,
        },
    ),
}
WEAK = {
    "Gustafson": Law("Gustafson", "weak", {"step": _one, "serial": lambda p: p - 1.0}),
    "ring": Law(
        "ring",
        "weak",
        {"step": _one, "bandwidth": lambda p: (p - 1.0) / p, "latency": lambda p: p - 1.0},
    ),
    "tree": Law("tree", "weak", {"step": _one, "rounds": np.log2}),
}
LAWS = {"strong": STRONG, "weak": WEAK}
"""Laws by scaling: constant work of all processes (strong) or of each process (weak)."""


@dataclass(frozen=True)
class FittedLaw:
    """A law with the seconds of each term, their intervals, and its error.

    ``relative_error`` is the root mean square of the relative errors of launches; ``criterion`` is
    the corrected Akaike information criterion (AICc): the lower, the better the law.
    """

    law: Law
    seconds: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    base_seconds: float
    relative_error: float
    criterion: float

    def predicted(self, processes: int) -> float:
        """Step time of ``processes`` in seconds."""
        p = np.asarray([float(processes)])
        return float(sum(self.seconds[name] * term(p)[0] for name, term in self.law.terms.items()))

    def share(self, term: str) -> float:
        """Fraction of a term in the sum of all terms: for Amdahl, the serial fraction."""
        return self.seconds[term] / math.fsum(self.seconds.values())


def fit_law(law: Law, seconds: Mapping[int, Sequence[float]], seed: int = 1) -> FittedLaw:
    """Fit a law to the step times of launches by number of processes; one process is the base."""
    if len(seconds) < len(law.terms):
        raise InputError(
            f"{law.name} has {len(law.terms)} terms, but {len(seconds)} "
            f"number{'s' * (len(seconds) != 1)} of processes ran",
            "measure more numbers of processes",
        )
    if 1 not in seconds:
        raise InputError(
            "no launch ran on one process, the base of the law", "measure -j 1x1 as well"
        )
    terms = list(law.terms)
    random = np.random.default_rng(seed)
    found = _fitted(law, seconds)
    drawn = np.asarray(
        [
            _fitted(law, {p: random.choice(own, len(own)).tolist() for p, own in seconds.items()})
            for _ in range(RESAMPLES if min(map(len, seconds.values())) > 1 else 0)
        ]
    )
    intervals = {
        name: (float(np.quantile(drawn[:, i], 0.025)), float(np.quantile(drawn[:, i], 0.975)))
        if len(drawn)
        else (math.nan, math.nan)
        for i, name in enumerate(terms)
    }
    p, y = _columns(seconds)
    relative_errors = (_design(law, p) @ found - y) / y
    error = float(np.mean(relative_errors**2))
    return FittedLaw(
        law,
        dict(zip(terms, map(float, found), strict=True)),
        intervals,
        math.fsum(seconds[1]) / len(seconds[1]),
        math.sqrt(error),
        _criterion(error, len(y), len(terms)),
    )


def _criterion(error: float, count: int, terms: int) -> float:
    """AICc; the variance of the errors is a parameter too."""
    parameters = terms + 1
    if count <= parameters + 1 or error <= 0.0:
        return math.inf if error > 0.0 else -math.inf
    small = 2.0 * parameters * (parameters + 1) / (count - parameters - 1)
    return count * math.log(error) + 2.0 * parameters + small


def _columns(seconds: Mapping[int, Sequence[float]]) -> tuple[Matrix, Matrix]:
    pairs = [(float(p), value) for p, own in sorted(seconds.items()) for value in own]
    p, y = np.asarray(pairs).T
    return p, y


def _design(law: Law, p: Matrix) -> Matrix:
    return np.column_stack([term(p) for term in law.terms.values()])


def _fitted(law: Law, seconds: Mapping[int, Sequence[float]]) -> Matrix:
    """Coefficients >= 0 with the least sum of squared relative errors.

    Tries every subset of terms: with up to three terms, this is exact non-negative least squares.
    """
    p, y = _columns(seconds)
    design = _design(law, p) / y[:, None]
    best, least = np.zeros(design.shape[1]), math.inf
    for size in range(1, design.shape[1] + 1):
        for chosen in combinations(range(design.shape[1]), size):
            found, *_ = np.linalg.lstsq(design[:, chosen], np.ones(len(y)), rcond=None)
            squares = float(np.sum((design[:, chosen] @ found - 1.0) ** 2))
            if found.min() >= 0.0 and squares < least:
                least, best = squares, np.zeros(design.shape[1])
                best[list(chosen)] = found
    return best
