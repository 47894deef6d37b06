"""Residual checks on data whose spread grows with a known power of the level (Box and Cox 1964)."""

import pytest

from paceline.stats.anova import check_residuals

LEVELS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]


@pytest.mark.parametrize(
    ("power", "transformation"),
    [(0.5, "square root"), (1.0, "logarithm"), (2.0, "reciprocal")],
)
def test_spread_that_grows_with_the_level(power, transformation):
    signs = [1, -1] * 5
    residuals = [0.1 * sign * level**power for sign, level in zip(signs, LEVELS, strict=True)]
    assert check_residuals(residuals, LEVELS).transformation == transformation


def test_equal_spread_needs_no_transformation():
    residuals = [0.5, -1.0, 0.7, -0.6, 0.9, -0.8, 1.0, -0.5, 0.6, -0.7]
    assert check_residuals(residuals, LEVELS).transformation == "none"


def test_levels_below_zero_cannot_be_transformed():
    levels = [-1.0, *LEVELS[1:]]
    residuals = [0.1 * abs(level) for level in levels]
    assert check_residuals(residuals, levels).transformation == "none"
