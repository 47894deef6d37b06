"""Accuracy of launches that trained by epochs, from launches whose truth is known."""

import math

import pytest
from builders import a_launch, keep

from paceline.analysis.accuracy import study_accuracy
from paceline.analysis.accuracy_tables import accuracy_json, accuracy_tables
from paceline.render.html_page import render
from paceline.report.study_page import study_page
from paceline.stats.pairs import paired_difference
from paceline.store import Outcome, RankSteps, Status, Store
from paceline.study import Study


def trained(processes, accuracies, factors=()):
    """A launch a seed: two epochs of two steps of a second each, which end at an accuracy."""
    for seed, accuracy in enumerate(accuracies):
        epochs = [
            {
                "steps": 2,
                "train_loss": 1.0 / (number + 1),
                "test_loss": 0.5,
                "test_accuracy": share,
                "test_samples": 1000,
                "evaluation_seconds": 0.1,
            }
            for number, share in enumerate((accuracy / 2, accuracy))
        ]
        yield a_launch(
            f"{processes:07x}{seed:08x}",
            world_size=processes,
            warmup_steps=1,
            job={
                "replicate": seed,
                "epochs": 2,
                "data": {"kind": "digits"},
                "factors": {"processes": processes, **dict(factors)},
            },
            outcome=Outcome(
                Status.FINISHED,
                "",
                ranks=tuple(RankSteps(rank, (1.0,) * 4) for rank in range(processes)),
                facts={"epochs": epochs},
            ),
        )


def test_pairs_with_one_seed_detect_smaller_differences():
    base = [0.90, 0.93, 0.96, 0.99]
    found = study_accuracy([*trained(1, base), *trained(2, [one - 0.001 for one in base])])
    (loss,) = found.losses
    assert loss.pairs == 4
    assert loss.difference.difference == pytest.approx(-0.001)
    assert loss.verdict == "the same"
    low, high = loss.interval
    assert -0.01 < low < high < 0.01


def test_a_loss_of_accuracy_is_not_equivalent():
    lower = study_accuracy([*trained(1, [0.95, 0.96, 0.97]), *trained(2, [0.91, 0.92, 0.935])])
    assert lower.losses[0].verdict == "lower"
    noisy = study_accuracy([*trained(1, [0.95, 0.96, 0.97]), *trained(2, [0.99, 0.90, 0.97])])
    assert noisy.losses[0].verdict == "inconclusive: add launches"
    single = study_accuracy([*trained(1, [0.95]), *trained(2, [0.95])])
    assert single.losses[0].verdict == "unchecked: needs 2 seeds or more"
    assert math.isnan(single.groups[0].accuracies[-1].low)


def test_seeds_that_agree_to_the_last_sample_still_have_an_error():
    exact = paired_difference([0.95, 0.97], [0.95, 0.97], resolution=0.001)
    assert exact.error > 0.0
    assert exact.tost_p_value(0.01) < 0.05
    assert exact.tost_p_value(0.0005) > 0.05


def test_time_to_target_has_no_mean_if_a_launch_missed_it():
    launches = [*trained(1, [0.96, 0.97]), *trained(2, [0.96, 0.90])]
    alone, both = study_accuracy(launches, {"target": 0.95, "margin": 0.02}).groups
    assert alone.seconds_to_target.mean == 4.0
    assert (both.reached, both.seconds_to_target) == (1, None)
    early = study_accuracy(launches, {"target": 0.44}).groups[0]
    assert early.seconds_to_target.mean == 2.0


def test_only_numbers_of_processes_are_compared():
    launches = [
        one
        for rule in ("constant", "linear")
        for processes in (1, 2, 3)
        for one in trained(processes, [0.95, 0.96], {"learning_rate_rule": rule})
    ]
    losses = study_accuracy(launches).losses
    assert len(losses) == 4
    assert all(
        loss.base.split("rule ")[1] == loss.configuration.split("rule ")[1] for loss in losses
    )


def test_launches_without_epochs_have_no_accuracy():
    assert study_accuracy([a_launch()]) is None


def test_page_and_json_agree(tmp_path):
    with Store(tmp_path / "s.db", create=True) as store:
        keep(store, [*trained(1, [0.95, 0.96]), *trained(2, [0.95, 0.96])])
    analysis = Study.load("s", tmp_path / "s.db").analyse()
    page = render(study_page(analysis))
    assert "Equivalence of accuracy" in page
    assert "Test accuracy by epoch" in page
    document = accuracy_json(analysis.accuracy)
    assert document["losses"][0]["verdict"] == "the same"
    assert document["configurations"][0]["epochs"][1]["test_accuracy"] == pytest.approx(0.955)
    assert "2 of" not in str(accuracy_tables(analysis.accuracy)[0])
