"""Comparison constants of `spread.toml`, fitted to pairs of layouts of one job."""

import math
from itertools import combinations

import numpy as np

from paceline.constants import number
from paceline.errors import PacelineError
from paceline.predictor.predict import predict_job, with_corrections
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.plan_ranking import lost_apart, within_noise
from paceline.validation.cases import layout_groups
from paceline.validation.layouts import fitted_layouts
from paceline.validation.reference_data import layout_table
from paceline.validation.row_step_model import measured_seconds, row_step

_NORMAL_MEDIAN = 0.6745
"""Median distance from the mean, in standard deviations of a normal distribution."""
_LEAST_APART = 0.05
"""Least difference of losses of a pair that is used in the fit."""

Pair = tuple[Prediction, Prediction, float]
"""A plan, one that is predicted to be faster, and log(measured step of the first / second)."""


def measured_pairs() -> list[Pair]:
    """All pairs of usable layouts of one job."""
    pairs: list[Pair] = []
    for rows in layout_groups(fitted_layouts(layout_table().measurements)).values():
        known = []
        for row in rows:
            try:
                job = row_step(row.configuration).job
                found = predict_job(with_corrections(job))
            except PacelineError:
                continue
            known.append((found, math.log(measured_seconds(row))))
        known.sort(key=lambda own: -own[0].step_seconds)
        pairs += [(slow, fast, a - b) for (slow, a), (fast, b) in combinations(known, 2)]
    return pairs


def fitted_spread(pairs: list[Pair]) -> float:
    """Standard error of the ratio of two steps, relative to the difference of their losses.

    From the median, since some layouts ran into something that no other did.
    """
    ratios = [
        abs(measured - math.log(slow.step_seconds / fast.step_seconds)) / apart
        for slow, fast, measured in pairs
        if (apart := lost_apart(slow, fast)) >= _LEAST_APART
    ]
    return float(np.median(ratios)) / _NORMAL_MEDIAN


def comparison_table() -> str:
    """The fitted value, and how many pairs are ordered correctly."""
    pairs = measured_pairs()
    lines = [f"losses = {fitted_spread(pairs):.2g} (shipped {number('spread.comparison.losses')})"]
    for within, label in ((False, "distinguishable"), (True, "not distinguishable")):
        right = [took > 0 for slow, fast, took in pairs if within_noise(slow, fast) is within]
        lines.append(f"{len(right)} pairs {label}: {np.mean(right):.1%} as predicted")
    return "\n".join(lines)
