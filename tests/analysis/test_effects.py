"""Effects of a study's factors, from launches whose truth is known."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import a_launch, keep

from paceline.analysis.effect_tables import effects_tables
from paceline.analysis.effects import study_effects
from paceline.render.html_page import render
from paceline.report.study_page import study_page
from paceline.store import Outcome, RankSteps, Status, Store
from paceline.study import Study


def launches(replicates=3, noise=0.01, levels=((16, 32), (1, 2)), drop=0):
    """Seconds per sample: twice as fast with two threads, batch a factor of 0.9, no interaction."""
    random = np.random.default_rng(1)
    made = []
    cells = list(itertools.product(*levels)) * replicates
    for number, (batch, threads) in enumerate(cells[: len(cells) - drop]):
        seconds = batch * 0.01 * (0.9 if batch == 32 else 1.0) / threads
        seconds *= math.exp(random.normal(0, noise))
        made.append(
            a_launch(
                f"{number:015x}",
                world_size=1,
                batch_per_rank=batch,
                job={"factors": {"batch": batch, "threads": threads}},
                outcome=Outcome(Status.FINISHED, "", ranks=(RankSteps(0, (9.0, seconds)),)),
            )
        )
    return made


def test_effects_are_factors_on_seconds_per_sample():
    found = study_effects(launches())
    effects = {effect.name: effect for effect in found.two_level.effects}
    assert math.exp(2 * effects["threads"].value) == pytest.approx(0.5, rel=0.02)
    assert math.exp(2 * effects["batch"].value) == pytest.approx(0.9, rel=0.02)
    assert effects["threads"].share > 0.9
    assert effects["threads"].is_clear
    assert not effects["batch x threads"].is_clear
    rows = {row.name: row for row in found.variance.rows}
    assert rows["threads"].share == pytest.approx(effects["threads"].share, rel=1e-8)
    assert found.cells[32, 2] == pytest.approx(0.0045, rel=0.02)
    first, second = effects_tables(found)
    assert "16 to 32" in str(first)
    assert "Residuals: no assumption of the model rejected" in str(second)


def test_processes_outside_the_factors_are_no_noise():
    """A study with ``processes`` beside its factors: both are terms of the analysis."""
    found = [
        replace(one, world_size=world, id=f"{one.id}-{world}")
        for world in (1, 2)
        for one in launches(levels=((16, 32), (1,)))
    ]
    assert set(study_effects(found).levels) >= {"processes"}


def test_unequal_numbers_and_more_levels_have_an_analysis_of_variance():
    found = study_effects(launches(levels=((16, 32, 64), (1, 2)), drop=2))
    assert found.two_level is None
    assert [row.degrees for row in found.variance.rows] == [2, 1, 2]
    assert len(effects_tables(found)) == 1


def test_a_study_without_factors_has_no_effects():
    assert study_effects(launches(levels=((16,), (1,)))) is None
    assert study_effects([]) is None


def test_the_page_has_effects_interactions_and_the_spread_of_steps(tmp_path):
    with Store(tmp_path / "own.db") as store:
        keep(store, launches())
    page = render(study_page(Study.load("s", tmp_path / "own.db").analyse()))
    for words in (
        "Effects on seconds per sample",
        "Analysis of variance",
        "batch and threads",
        "Not controlled",
        "slowest 1 %",
    ):
        assert words in page, words
