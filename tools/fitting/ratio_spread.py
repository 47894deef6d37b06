"""Ratio constants of `spread.toml`, fitted to pairs of published rows under every hold-out.

The error of a ratio is the difference of the errors of two rows of one program, network and
device, each predicted without its own source, generation, framework, model, network or scale.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from fitting.interval_calibration import left_out_rows
from paceline.predictor.predict import predict_job, with_corrections
from paceline.predictor.uncertainty.correction_model import COLD
from paceline.predictor.uncertainty.correction_table import shipped_corrections
from paceline.predictor.uncertainty.intervals import NORMAL_QUANTILE
from paceline.predictor.uncertainty.ratios import apart, loss_shares
from paceline.validation.hold_out import HoldOut, fitted_rows
from paceline.validation.published_row import Configuration
from paceline.validation.refit.statements import shipped_statements
from paceline.validation.row_step_model import row_covariates, row_step

_MOST_PAIRS = 300
"""Pairs of one group of rows; more are drawn at random."""
_DEGREES_OF_FREEDOM = 4.0
"""Of Student's distribution of the errors, which have heavy tails."""
_COVERED = 0.9
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Errors of ratios, the squares of their terms, and the source and hold-out of each."""

    errors: Array
    terms: Array
    sources: Array
    protocols: Array

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Pairs":
        """Some of the pairs."""
        return Pairs(*(own[chosen] for own in vars(self).values()))


def measured_pairs() -> Pairs:
    """All pairs of rows that share program, network, device, version and tuning."""
    model, rows = shipped_corrections(), fitted_rows()
    statements = shipped_statements(False)
    errors: dict[HoldOut, dict[str, float]] = defaultdict(dict)
    for one in left_out_rows(model, list(statements.values()), list(rows.values()), COLD):
        errors[one[1].protocol][one[0]] = one[1].error
    groups: dict[tuple[str, ...], list[Configuration]] = defaultdict(list)
    for name in statements:
        own = rows[name].configuration
        key = row_covariates(own).program, own.device, own.framework_version, own.tuning
        groups[key].append(own)
    shares = {name: _shares(rows[name].configuration) for name in statements}
    generator = np.random.default_rng(0)
    found = []
    for group in groups.values():
        pairs = list(combinations(sorted(group, key=lambda row: row.id), 2))
        if len(pairs) > _MOST_PAIRS:
            chosen = generator.choice(len(pairs), _MOST_PAIRS, replace=False)
            pairs = [pairs[number] for number in chosen]
        for first, second in pairs:
            terms = (
                1.0,
                apart(shares[first.id], shares[second.id]) ** 2,
                math.log(first.batch_per_device / second.batch_per_device) ** 2,
                float(first.precision != second.precision),
            )
            if sum(terms) > 1.0:  # others are repetitions of one configuration
                found += [
                    (own[first.id] - own[second.id], terms, first.family, str(protocol))
                    for protocol, own in errors.items()
                    if first.id in own and second.id in own
                ]
    return Pairs(*(np.array(column) for column in zip(*found, strict=True)))


def fitted_ratio(pairs: Pairs) -> Array:
    """Standard deviations of the terms, scaled so that 90 % intervals cover 90 % of the pairs.

    Each source counts the same under each hold-out.
    """
    counts = Counter(zip(pairs.protocols, pairs.sources, strict=True))
    weights = np.array(
        [1.0 / counts[key] for key in zip(pairs.protocols, pairs.sources, strict=True)]
    )
    weights /= weights.sum()

    def loss(logarithms: Array) -> float:
        variance = pairs.terms @ np.exp(2.0 * logarithms)
        tail = np.log1p(pairs.errors**2 / variance / _DEGREES_OF_FREEDOM)
        return float(weights @ (np.log(variance) + (_DEGREES_OF_FREEDOM + 1.0) * tail) / 2.0)

    start = np.log([0.05, 0.2, 0.05, 0.2])
    deviations = np.exp(minimize(loss, start, method="Nelder-Mead", options={"maxiter": 2000}).x)
    scaled = np.abs(pairs.errors) / np.sqrt(pairs.terms @ deviations**2)
    order = np.argsort(scaled)
    quantile = scaled[order][np.searchsorted(np.cumsum(weights[order]), _COVERED)]
    return np.asarray(deviations * quantile / NORMAL_QUANTILE)


def ratio_table() -> str:
    """The fitted values, and the coverage of each hold-out with each source left out of the fit."""
    pairs = measured_pairs()
    names = ("base", "losses", "batch", "precision")
    fitted = fitted_ratio(pairs)
    lines = [f"{name} = {value:.2g}" for name, value in zip(names, fitted, strict=True)]
    inside = np.zeros(len(pairs.errors), dtype=bool)
    widths = np.zeros(len(pairs.errors))
    for source in sorted(set(pairs.sources)):
        own = pairs.sources == source
        deviations = fitted_ratio(pairs.only(~own))
        widths[own] = NORMAL_QUANTILE * np.sqrt(pairs.terms[own] @ deviations**2)
        inside[own] = np.abs(pairs.errors[own]) <= widths[own]
    for protocol in sorted(set(pairs.protocols)):
        own = pairs.protocols == protocol
        lines.append(
            f"{protocol}: {own.sum():,} pairs, {inside[own].mean():.1%} covered, median interval "
            f"x/ {np.exp(np.median(widths[own])):.3f}"
        )
    return "\n".join(lines)


def _shares(configuration: Configuration) -> dict[str, float]:
    return loss_shares(predict_job(with_corrections(row_step(configuration).job)))
