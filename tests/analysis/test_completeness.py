"""Incomplete designs: what is missing is stated, and conclusions that need it are withheld."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.test_effects import launches
from paceline.analysis.completeness import completeness
from paceline.analysis.effects import study_effects
from paceline.stats.anova import SplitPlot, analyse_variance

FULL = {"jobs": [{}] * 4, "order": [0, 1, 2, 3] * 3, "seed": 1, "order_kind": "random"}


def test_a_complete_design_has_no_notes():
    found = completeness(FULL, launches())
    assert found.notes == ()
    assert completeness({}, launches()) is None


def test_missing_launches_and_configurations_are_stated():
    unequal = completeness(FULL, launches(drop=1))
    assert unequal.notes == (
        "Unequal replication: 2 to 3 launches per configuration (11 of 12 planned).",
    )
    lost = [one for one in launches() if one.job["factors"] != {"batch": 32, "threads": 2}]
    (first,) = completeness(FULL, lost).notes
    assert first.startswith("Incomplete design: 1 of 4 configurations have no result.")
    effects = study_effects(lost, FULL)
    assert [row.name for row in effects.variance.rows] == ["batch", "threads"]
    assert effects.two_level is None


def test_levels_that_were_added_later_are_stated():
    later = [
        replace(one, created_at=f"2026-11-{10 + one.job['factors']['batch']:02d}T00:00:00")
        for one in launches(levels=((8, 16), (1, 2)))
    ]
    assert "batch 16 ran only after batch 8" in completeness(FULL, later).notes[-1]


@pytest.mark.parametrize("split", [False, True])
def test_a_blocked_order_is_a_split_plot(split):
    """Plots vary more than launches: one error term finds effects that do not exist."""
    random = np.random.default_rng(1)
    false = 0
    for _ in range(300):
        rows = [(block, a, b) for block in range(5) for a in range(3) for b in range(2)]
        plots = random.normal(0.0, 0.05, (5, 3))
        values = [plots[block, a] + random.normal(0.0, 0.02) for block, a, _ in rows]
        blocks, first, second = zip(*rows, strict=True)
        found = analyse_variance(
            {"a": first, "b": second}, values, plots=SplitPlot("a", blocks) if split else None
        )
        false += found.rows[0].p_value < 0.05
    assert (false / 300 <= 0.08) if split else (false / 300 >= 0.10)


def test_a_blocked_design_tests_its_factor_against_plots():
    marked = [
        replace(one, job={**one.job, "replicate": number // 4})
        for number, one in enumerate(launches())
    ]
    design = {**FULL, "order_kind": "blocked", "block_by": "batch"}
    found = study_effects(marked, design).variance
    assert found.plot_degrees == 2
    assert study_effects(marked, FULL).variance.plot_degrees == 0
