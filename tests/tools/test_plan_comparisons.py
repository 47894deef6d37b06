import numpy as np
import pytest

from fitting.plan_comparisons import fitted_spread, measured_pairs
from paceline.constants import number
from paceline.predictor.search.plan_ranking import within_noise


@pytest.mark.slow
def test_distinguishable_plans_are_mostly_in_the_predicted_order():
    pairs = measured_pairs()
    assert number("spread.comparison.losses") == pytest.approx(fitted_spread(pairs), abs=0.05)
    told = [took > 0 for slow, fast, took in pairs if not within_noise(slow, fast)]
    guessed = [took > 0 for slow, fast, took in pairs if within_noise(slow, fast)]
    assert np.mean(told) > 0.85
    assert np.mean(guessed) < 0.75
