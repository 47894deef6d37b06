"""Whole trainings: time, price and energy of steps with failures and checkpoints."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paceline
from paceline.errors import InputError
from paceline.predictor.training_run import Interruptions, RunConditions

DAY = 86400.0


def predicted(**words):
    return paceline.predict(
        "gpt_h1024_l4_a16", "p4d.24xlarge", batch=8, seq=512, precision="bf16", nodes=4, **words
    )


@given(st.floats(1e3, 1e7), st.floats(1.0, 500.0), st.floats(0.0, 2000.0))
def test_the_best_interval_loses_no_more_than_any_other(between, checkpoint, restart):
    stops = Interruptions(between, checkpoint, restart)
    others = [stops.goodput(every) for every in np.geomspace(checkpoint / 10, 20 * between, 400)]
    assert stops.goodput() >= max(others) - 0.004
    assert 0 <= stops.goodput() <= 1


def test_young_is_the_limit_of_rare_failures():
    stops = Interruptions(1e9, 60.0, 600.0)
    assert stops.best_interval == pytest.approx(math.sqrt(2 * 60.0 * 1e9), rel=1e-3)
    assert stops.goodput() == pytest.approx(1.0, abs=1e-3)


def test_goodput_is_that_of_a_played_through_job():
    stops, draws = Interruptions(4000.0, 60.0, 300.0), random.Random(3)
    every, clock, trained = stops.best_interval, 0.0, 0.0
    failure = draws.expovariate(1 / stops.between_failures)
    while trained < 4e7:
        end = clock + every + stops.checkpoint
        if end < failure:
            clock, trained = end, trained + every
            continue
        clock = failure
        while True:
            up = clock + stops.restart
            failure = clock + draws.expovariate(1 / stops.between_failures)
            if failure > up:
                clock = up
                break
            clock = failure
    assert trained / clock == pytest.approx(stops.goodput(), rel=0.01)


def test_time_price_and_energy_follow_from_steps():
    found = predicted()
    run = found.training(tokens=1e11, conditions=RunConditions(without_failures=True))
    assert run.steps == math.ceil(1e11 / 512 / found.samples_per_step)
    assert run.seconds.value == pytest.approx(run.steps * found.step_seconds)
    assert run.device_hours.value == pytest.approx(32 * run.seconds.value / 3600)
    assert run.price is not None
    assert run.price.value == pytest.approx(1.844 * run.device_hours.value)
    assert run.energy_joules is not None
    assert run.energy_joules.value == pytest.approx(1.5 * 400 * 3600 * run.device_hours.value)
    shortest, longest = found.step_interval_seconds
    assert run.seconds.low == pytest.approx(run.steps * shortest)
    assert run.seconds.high == pytest.approx(run.steps * longest)


def test_failures_lengthen_a_training_and_widen_its_interval():
    found = predicted()
    calm = found.training(tokens=1e11, conditions=RunConditions(without_failures=True))
    assumed = found.training(tokens=1e11)
    rough = found.training(tokens=1e11, conditions=RunConditions(100 * 3600.0, 30.0, 300.0))
    assert calm.seconds.value < assumed.seconds.value < rough.seconds.value
    assert rough.failures == pytest.approx(rough.seconds.value * 32 / 360000.0)
    assert assumed.seconds.high / assumed.seconds.value >= (calm.seconds.high / calm.seconds.value)
    assert any("assumes" in note for note in assumed.notes)
    assert not any("assumes" in note for note in rough.notes)


def test_a_chosen_interval_is_never_better_than_the_best():
    found = predicted()
    best = found.training(tokens=1e11)
    for every in (60.0, 86400.0):
        other = found.training(tokens=1e11, conditions=RunConditions(checkpoint_every=every))
        assert other.goodput.value <= best.goodput.value
        assert other.checkpoint_every_seconds == every


def test_epochs_of_imagenet_networks_are_known_and_others_asked_for():
    images = paceline.predict("resnet50", "hkbu-v100-pcie", batch=64)
    assert images.training(epochs=90).samples == 90 * 1_281_167
    assert images.training(epochs=2, samples_per_epoch=1000).samples == 2000
    with pytest.raises(InputError, match="does not train on tokens"):
        images.training(tokens=1e9)
    with pytest.raises(InputError, match="samples per epoch"):
        predicted().training(epochs=3)
    with pytest.raises(InputError, match="amount of training"):
        predicted().training()


@pytest.mark.parametrize(
    "conditions",
    [
        RunConditions(device_time_between_failures=60.0),
        RunConditions(checkpoint_every=0.0),
        RunConditions(checkpoint=-1.0),
        RunConditions(restart=math.nan),
    ],
)
def test_impossible_jobs_are_refused(conditions):
    with pytest.raises(InputError):
        predicted().training(tokens=1e11, conditions=conditions)


def test_the_bandwidth_asked_for_gives_the_efficiency_asked_for():
    words = {"batch": 64, "nodes": 8}
    now = paceline.predict("resnet50", "hkbu-v100-pcie", **words)
    target = now.efficiency - 0.1
    across, inside = paceline.bandwidth_for(
        "resnet50", "hkbu-v100-pcie", target_efficiency=target, **words
    )
    assert across.scope == "between nodes"
    assert across.needed is not None
    assert across.needed < across.now
    assert across.reached == pytest.approx(target, abs=1e-3)
    assert inside.now_efficiency == pytest.approx(now.efficiency)


def test_efficiencies_that_no_link_gives_are_said_so():
    found = paceline.bandwidth_for("resnet50", "hkbu-v100-pcie", target_efficiency=1.0, batch=64)
    assert all(own.needed is None for own in found)
    with pytest.raises(InputError):
        paceline.bandwidth_for("resnet50", "hkbu-v100-pcie", target_efficiency=1.5, batch=64)


@pytest.mark.thorough
def test_recomputation_does_not_count_against_a_link():
    plan = {"batch": 4, "nodes": 4, "precision": "bf16", "zero": 3}
    again, kept = (
        paceline.bandwidth_for(
            "gpt2_xl", "dgx-a100", target_efficiency=0.85, recompute=recompute, **plan
        )[0]
        for recompute in ("full", "none")
    )
    assert again.needed is not None
    assert again.now_efficiency > kept.now_efficiency - 0.01
    assert again.needed < 1.1 * kept.needed, "more work hides more of the messages"
