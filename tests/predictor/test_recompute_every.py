"""Recomputation of one block in so many: between keeping everything and nothing."""

from dataclasses import replace
from itertools import pairwise

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.hardware import catalogue
from paceline.predictor.api import predict as predict_words
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.predict import predict, prepare, schedule_job
from paceline.predictor.search import PlanSearch
from paceline.predictor.whatif import what_if
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-a100").with_nodes(1)
WORKLOAD = Workload.of("gpt2", 8, 1024, "bf16", "adam")
FULL = Plan(dp=8, recompute=Recompute.FULL)


def every(count, plan=FULL):
    return predict(WORKLOAD, CLUSTER, replace(plan, recompute_every=count))


def recomputed(count, plan=FULL):
    found = schedule_job(prepare(WORKLOAD, CLUSTER, replace(plan, recompute_every=count)))
    return found.step.parts.total(found.times.recompute)


def test_so_many_blocks_are_computed_again():
    whole = recomputed(1)
    for count, blocks in ((2, 6), (3, 4), (5, 2), (12, 1)):
        assert recomputed(count) == pytest.approx(whole * blocks / 12)


def test_fewer_blocks_take_less_time_and_more_memory():
    nothing = predict(WORKLOAD, CLUSTER, Plan(dp=8))
    found = [every(1), every(2), every(4), every(12), nothing]
    for fewer, more in pairwise(found):
        assert more.step_seconds < fewer.step_seconds
    for fewer, more in pairwise(found[:-1]):
        assert more.memory.activations_bytes > fewer.memory.activations_bytes


def test_stages_keep_what_their_own_blocks_keep():
    plan = Plan(dp=2, pp=4, micro_batch=1, recompute=Recompute.FULL)
    found = [every(count, plan) for count in (1, 3, 12)]
    assert [own.step_seconds for own in found] == sorted(
        (own.step_seconds for own in found), reverse=True
    )


def test_changes_of_it_are_asked_for_in_whatif():
    case = prepare(WORKLOAD, CLUSTER, replace(FULL, recompute_every=2))
    names = {own.change for own in what_if(case)}
    assert {"recompute none", "recompute full"} <= names


def test_words_say_it():
    words = {"batch": 8, "seq": 1024, "precision": "bf16", "nodes": 1, "optimizer": "adam"}
    found = predict_words("gpt2", "dgx-a100", recompute="every:2", **words)
    assert found.plan.recompute_every == 2
    assert found.step_seconds == every(2).step_seconds


@pytest.mark.parametrize("text", ["every:0", "every:", "every:two", "some", "full:2"])
def test_other_words_are_refused(text):
    with pytest.raises(UnknownNameError) as caught:
        predict_words("gpt2", "dgx-a100", recompute=text)
    assert "every:2" in caught.value.hint


def test_impossible_numbers_are_refused():
    with pytest.raises(InputError, match="needs full recomputation"):
        Plan(recompute_every=2)
    with pytest.raises(InputError, match="every:13 selects none of the 12"):
        check_recomputation(replace(FULL, recompute_every=13), WORKLOAD.graph)
    with pytest.raises(InputError, match="at least 1"):
        replace(FULL, recompute_every=0)
    with pytest.raises(InputError, match="do not model recompute_every"):
        PlanSearch(WORKLOAD, CLUSTER, 64, like=replace(FULL, recompute_every=2))
