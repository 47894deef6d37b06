"""Where variation arises and how a study scales, from launches whose truth is known."""

import numpy as np
import pytest
from builders import a_launch

from paceline.analysis.configurations import grouped
from paceline.analysis.variation import fitted_laws, variation_of
from paceline.report.study_sections.factors_section import statistics_tables
from paceline.store import Outcome, RankSteps, Status


def launches(processes, mean, launch_noise, count=6, seconds=10.0, **changes):
    random = np.random.default_rng(processes)
    made = []
    for number in range(count):
        own = mean * float(np.exp(random.normal(0, launch_noise)))
        ranks = tuple(
            RankSteps(rank, (9.0, *(own * np.exp(random.normal(0, 0.01, 20))).tolist()))
            for rank in range(processes)
        )
        facts = {} if seconds is None else {"seconds": seconds}
        outcome = Outcome(Status.FINISHED, "", ranks=ranks, facts=facts)
        name = f"{processes}-{number}"
        made.append(a_launch(name, world_size=processes, outcome=outcome, **changes))
    return made


def test_variance_between_launches_recommends_launches():
    (noisy,) = grouped(launches(2, 0.1, 0.1))
    found = variation_of(noisy)
    assert found.components.shares[0] > 0.9
    assert found.available_seconds == pytest.approx(60.0)
    assert found.best.steps < 20
    (quiet,) = grouped(launches(1, 0.1, 0.0))
    assert variation_of(quiet).components.shares[2] > 0.8


def test_groups_without_information_are_omitted():
    assert variation_of(grouped(launches(1, 0.1, 0.1, count=1))[0]) is None
    assert variation_of(grouped(launches(1, 0.1, 0.1, seconds=None))[0]) is None
    assert statistics_tables([]) == []


def test_a_study_of_several_numbers_of_processes_has_laws_with_their_base():
    every = [
        launch
        for processes in (1, 2, 4, 8)
        for launch in launches(processes, 0.1 + 0.02 * np.log2(processes), 0.002)
    ]
    laws = fitted_laws(grouped(every))
    assert laws[0].law.name == "tree"
    assert laws[0].seconds["rounds"] == pytest.approx(0.02, rel=0.1)
    assert laws[0].base_seconds == pytest.approx(0.1, rel=0.02)
    text = " ".join(" ".join(map(str, statistics_tables(grouped(every)))).split())
    assert "Sources of variance" in text
    assert "Base: one process" in text
    other = launches(1, 0.1, 0.002, framework="jax")
    assert fitted_laws(grouped([*every, *other])) == [], "two jobs have no law in common"
