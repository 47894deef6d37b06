"""The plan search against the scheduler, and the advice made from it."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import SEARCHED_RECOMPUTATIONS, WHOLE_BACKWARD
from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.search import PlanSearch, advise
from paceline.predictor.search.search_space import divisors
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.workload.workload import Workload

pytestmark = pytest.mark.thorough

CASES = {
    "gpt2 on 2 DGX A100": ("gpt2", 1024, "dgx-a100", 2, 64, "torch-ddp"),
    "gpt2 in Megatron": ("gpt2", 1024, "dgx-h100", 4, 96, "megatron-lm"),
    "llama 7B fully sharded": ("llama2-7b", 4096, "dgx-h100", 2, 128, "torch-fsdp"),
    "resnet50 by filter": ("resnet50", None, "dgx-1", 2, 256, "torch-ddp"),
}
_RESULTS = {}


def search_of(name):
    """The search of a case with its result, made once."""
    if name not in _RESULTS:
        model, sequence, cluster, nodes, batch, framework = CASES[name]
        workload = Workload.of(model, 1, sequence, "fp16", "adam")
        place = catalogue.cluster(cluster).with_nodes(nodes)
        search = PlanSearch(workload, place, batch, (), Plan(framework=framework))
        _RESULTS[name] = search, search.run()
    return _RESULTS[name]


@cache
def slow_search_of(model, policy, pipeline):
    """A search on four nodes with 10 Gb/s between them, where nothing hides messages."""
    sequence = {"gpt2": 512, "bert_base": 128}.get(model)
    workload = Workload.of(model, 1, sequence, "fp32", "sgd")
    place = catalogue.cluster("hkbu-v100-pcie").with_nodes(4)
    like = Plan(synchronisation=synchronisation(policy), pipeline=pipeline)
    search = PlanSearch(workload, place, 48, (), like)
    return search, search.run()


def scheduled(search, plan, corrections=NO_CORRECTIONS):
    """The scheduler on one plan: uncorrected, as the search evaluates it, unless told."""
    workload = search.workload.with_batch(search.global_batch // plan.dp)
    cluster = search.cluster.with_devices(plan.devices)
    return predict(workload, cluster, plan, corrections=corrections)


def agree(search, found, where):
    """The search's step and memory of one plan are the scheduler's."""
    index = int(where * found.size)
    plan = found.plan(index, search.like)
    prediction = scheduled(search, plan)
    assert found.seconds[index] == pytest.approx(prediction.step_seconds, rel=0.02), plan
    assert found.memory_bytes[index] == pytest.approx(float(prediction.memory.total_bytes)), plan


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(case=st.sampled_from(sorted(CASES)), where=st.floats(0, 1, exclude_max=True))
def test_every_plan_takes_what_the_scheduler_says(case, where):
    agree(*search_of(case), where)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    model=st.sampled_from(["gpt2", "bert_base", "resnet50", "vgg16"]),
    policy=st.sampled_from(sorted(SYNCHRONISATIONS)),
    pipeline=st.sampled_from(WHOLE_BACKWARD),
    where=st.floats(0, 1, exclude_max=True),
)
def test_every_policy_takes_what_the_scheduler_says_on_a_slow_network(
    model, policy, pipeline, where
):
    agree(*slow_search_of(model, policy, pipeline), where)


@pytest.mark.parametrize("case", ["gpt2 on 2 DGX A100", "resnet50 by filter"])
def test_the_optimum_of_a_sample_is_that_of_exhaustive_scheduling(case):
    search, found = search_of(case)
    sample = np.random.default_rng(7).choice(found.size, 25, replace=False)
    steps = [scheduled(search, found.plan(int(i), search.like)).step_seconds for i in sample]
    chosen = int(found.seconds[sample].argmin())
    assert steps[chosen] == pytest.approx(min(steps), rel=0.002)


def test_candidates_are_all_combinations_that_divide():
    search, found = search_of("gpt2 in Megatron")
    seen = {found.plan(index, search.like) for index in range(found.size)}
    assert len(seen) == found.size
    assert all(plan.devices == 32 and 96 % plan.dp == 0 for plan in seen)
    assert all(12 % plan.tp == 0 and 12 % plan.chunks == 0 for plan in seen)
    assert all((96 // plan.dp) % plan.micro_batch == 0 for plan in seen)
    assert {plan.recompute for plan in seen} == set(SEARCHED_RECOMPUTATIONS)
    assert {plan.zero for plan in seen} == {0, 1, 2, 3}
    assert {plan.sequence_parallel for plan in seen} == {False, True}
    assert {plan.tp for plan in seen} == {1, 2, 4}


def test_any_number_of_nodes_is_searched_where_asked():
    workload = Workload.of("gpt2", 1, 1024, "fp16", "adam")
    cluster = catalogue.cluster("dgx-a100").with_nodes(4)
    found = PlanSearch(workload, cluster, 48, (1, 2, 3, 4)).run()
    devices = {found.plan(index, Plan()).devices for index in range(found.size)}
    assert devices == {8, 16, 24, 32}


def test_advice_ranks_plans_that_fit_and_says_why():
    search, found = search_of("llama 7B fully sharded")
    advice = advise(search, top=4)
    steps = [own.prediction.step_seconds for own in advice.best]
    assert steps == sorted(steps)
    assert all(own.prediction.fits for own in advice.best)
    assert all(own.why for own in advice.best)
    assert advice.tried >= found.size, "variations of the best come on top"
    fits = found.memory_bytes <= room_bytes(search.cluster.device.memory_bytes)
    fits &= found.tp <= search.cluster.devices_per_node
    plans = [own.prediction.plan for own in advice.best]
    assert steps == [scheduled(search, plan, None).step_seconds for plan in plans]
    uncorrected = min(scheduled(search, plan).step_seconds for plan in plans)
    # Of one layout the simplest is shown: it may be slower by what cannot be told apart.
    assert uncorrected == pytest.approx(found.seconds[fits].min(), rel=0.04)
    assert 1 <= advice.close <= 5


def test_plans_too_large_are_named_with_what_would_make_them_fit():
    search, _ = search_of("llama 7B fully sharded")
    advice = advise(search)
    assert advice.infeasible
    for own in advice.infeasible:
        assert own.memory_bytes > room_bytes(search.cluster.device.known_memory_bytes)
        assert own.step_seconds < advice.best[0].prediction.step_seconds
        assert own.step_seconds == scheduled(search, own.plan, None).step_seconds
        assert "fits with --" in own.remedy or "more per device" in own.remedy


def test_nothing_fits_is_said_with_the_leanest_plan():
    workload = Workload.of("gpt3-175b", 1, 2048, "fp16", "adam")
    search = PlanSearch(workload, catalogue.cluster("dgx-a100"), 8)
    with pytest.raises(InputError, match=r"none of [\d,]+ plans fits in 85.5 GB") as caught:
        advise(search)
    assert "5 nodes or more" in caught.value.hint


def test_a_plan_that_does_not_fit_is_no_answer_whatever_the_search_took_it_for(monkeypatch):
    search, _ = search_of("llama 7B fully sharded")
    assert all(own.prediction.fits for own in advise(search).best)
    monkeypatch.setattr("paceline.predictor.search.advice.room_bytes", lambda capacity: math.inf)
    try:
        found = advise(search).best
    except InputError:
        found = ()
    assert all(own.prediction.fits for own in found)


def test_a_batch_that_only_one_replica_divides_is_not_spread_over_more():
    workload = Workload.of("resnet50", 1)
    search = PlanSearch(workload, catalogue.cluster("dgx-1").with_nodes(2), 17)
    plans = search.run()
    assert {plans.plan(i, Plan()).dp for i in range(plans.size)} == {1}


@given(st.integers(1, 3000))
def test_divisors_are_all_of_them(number):
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


def test_degrees_that_are_not_searched_are_refused():
    cluster = catalogue.cluster("dgx-1").with_nodes(2)
    with pytest.raises(InputError, match="do not model cp"):
        PlanSearch(Workload.of("resnet50", 1), cluster, 64, (), Plan(cp=2))
