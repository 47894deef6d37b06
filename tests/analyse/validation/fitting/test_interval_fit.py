"""Intervals of the predictor alone: by kind of work, each source with the same weight."""

import numpy as np
import pytest

from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.fitting.interval_fit import (
    HeldOutError,
    plain_rules,
    predictor_errors,
)
from paceline.analyse.validation.parts import StepTaker
from paceline.analyse.validation.reference import reference_table
from paceline.predictor.fitted.intervals import FAR, plain_distance

TEXT = plain_distance("text", "half")


def errors(family, residuals, work=TEXT):
    return [HeldOutError(residual, 0.1, FAR, family, work) for residual in residuals]


def test_a_large_source_does_not_outvote_small_ones():
    near, far = np.linspace(-0.05, 0.05, 1000), np.linspace(-0.5, 0.5, 20)
    rule = plain_rules(errors("a", near) + errors("b", far) + errors("c", far))[TEXT]
    low, high = rule.bounds(1.0, 0.1)
    assert high == pytest.approx(np.exp(0.46), rel=0.05)
    assert low == pytest.approx(np.exp(-0.46), rel=0.05)


def test_work_that_two_sources_measured_has_no_rule_of_its_own():
    assert plain_rules(errors("a", [0.1, -0.1]) + errors("b", [0.2, -0.2])) == {}


@pytest.mark.slow
def test_intervals_of_the_predictor_hold_on_sources_they_have_not_seen():
    """Rules of all other sources cover about as much as they say: 90 % of a source's rows."""
    measured = predictor_errors(reference_table().measurements, Mode.COLD, StepTaker())
    covered, ruled = 0, 0
    for family in {error.family for error in measured}:
        rules = plain_rules([error for error in measured if error.family != family])
        for error in (each for each in measured if each.family == family and each.work in rules):
            low, high = rules[error.work].bounds(1.0, error.share)
            covered += low <= np.exp(error.residual) <= high
            ruled += 1
    print(f"{covered / ruled:.1%} of {ruled} rows covered")
    assert ruled > 1500
    assert covered / ruled > 0.8
