"""Plan variants outside the search, enumerated by hand, and remedies with chosen numbers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import paceline
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import predict
from paceline.predictor.search import PlanSearch, advice
from paceline.predictor.search.plan_constraints import split_plan_fields
from paceline.predictor.search.plan_variants import variations
from paceline.predictor.whatif import WhatIf
from paceline.workload.workload import Workload


def search_of(model, nodes=2, batch=16, sequence=128, cluster="dgx-a100", counts=()):
    workload = Workload.of(model, 1, sequence, "bf16", "adam")
    place = catalogue.cluster(cluster).with_nodes(nodes)
    return PlanSearch(workload, place, batch, counts, Plan(framework="megatron-lm"))


def varied(search, *plans):
    full = [replace(plan, framework="megatron-lm") for plan in plans]
    return [own.plan for own in variations(search, full)]


def test_shard_groups_of_a_node():
    search = search_of("gpt_h128_l4")
    found = varied(search, Plan(dp=16, zero=2), Plan(dp=16, zero=1), Plan(dp=8, tp=2, zero=3))
    groups = {(p.dp, p.tp, p.zero, p.shard_group) for p in found if p.shard_group}
    assert groups == {(16, 1, 2, 8), (8, 2, 3, 4)}


def test_context_parallelism_of_long_sequences():
    """At least 4096 tokens per device: 8192 allow cp 2 only."""
    search = search_of("gpt_h128_l4", sequence=8192)
    found = [p for p in varied(search, Plan(dp=16)) if p.cp > 1]
    assert {(p.cp, p.dp, p.micro_batch) for p in found} == {(2, 8, 1)}
    assert {p.zero for p in found} == {0, 1}
    assert {p.recompute for p in found} == {Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL}
    assert len(found) == 6
    assert not any(p.cp > 1 for p in varied(search_of("gpt_h128_l4", sequence=4096), Plan(dp=16)))


def test_uneven_pipelines_have_no_empty_stage():
    """6 blocks on 16 devices: pp 4 only; 8 and 16 stages would be empty in part."""
    found = varied(search_of("gpt_h128_l6_a8", batch=64))
    assert {p.pp for p in found if 6 % p.pp} == {4}


def test_uneven_pipelines():
    """3 blocks on 16 devices: tp 8 or 4, pp 2 (3 is odd), dp the rest."""
    search = search_of("gpt_h128_l3_a8")
    found = varied(search)
    assert {(p.tp, p.pp, p.dp) for p in found} == {(8, 2, 1), (4, 2, 2)}
    assert {p.interleave for p in found} == {1}, "3 blocks cannot fill 4 chunks"
    assert {(p.dp, p.zero) for p in found} == {(1, 0), (2, 1)}
    assert all(p.sequence_parallel and p.micro_batch == 1 for p in found)
    assert varied(search_of("gpt_h128_l4_a8")) == []
    several = search_of("gpt_h128_l3_a8", counts=(1, 2))
    assert varied(several) == []
    fastest = [own.seconds for own in variations(search, [])]
    assert fastest == sorted(fastest)


def test_times_and_memory_are_those_of_the_predictor():
    search = search_of("gpt_h128_l3_a8")
    for own in variations(search, [])[:3]:
        workload = search.workload.with_batch(16 // own.plan.dp)
        found = predict(workload, search.cluster.with_devices(own.plan.devices), own.plan)
        assert own.seconds == pytest.approx(found.step_seconds)
        assert own.memory_bytes == pytest.approx(float(found.memory.total_bytes))


def test_partial_recomputation_of_plans_that_do_not_fit():
    """At 192 samples per device the activations of 4 blocks exceed 80 GB."""
    search = search_of("gpt_h2048_l4_a16", batch=16 * 192, sequence=1024)
    found = varied(search, Plan(dp=16, zero=1, micro_batch=192))
    assert {p.recompute_every for p in found if p.recompute is Recompute.FULL} >= {2, 3, 4}
    roomy = search_of("gpt_h128_l4", batch=16)
    assert not any(p.recompute_every > 1 for p in varied(roomy, Plan(dp=16, zero=1)))


# Remedies.


def change(name, seconds, kind="resource", fits=True):
    return WhatIf(kind, name, seconds, 1.0, fits)


CHANGES = [
    change("network (ib) twice as fast", 0.9),
    change("network (ib) free", 0.8),
    change("links in a node (nv) twice as fast", 0.985),
    change("arithmetic twice as fast", 0.5),
    change("recompute none", 0.6, "optimisation"),
    change("buckets of 5 MiB", 0.95, "optimisation"),
    change("buckets of 1 MiB", 0.995, "optimisation"),
    change("gradients sent as fp16", 0.85, "optimisation", fits=False),
    change("synchronise: merged", 0.97, "optimisation"),
    change("synchronise: split", 0.96, "optimisation"),
]


def remedied(monkeypatch, lost, changes=CHANGES):
    found = paceline.predict("resnet20", "dgx-1", batch=8)
    best = SimpleNamespace(
        losses={"network": 0.75 * lost, "links within a replica": 0.25 * lost},
        step_seconds=1.0,
        timeline=found.timeline,
    )
    monkeypatch.setattr(advice, "what_if", lambda job: changes)
    return advice.network_remedies(best)


def test_remedies_of_network_losses(monkeypatch):
    assert remedied(monkeypatch, 0.049) == ()
    loss, savings = remedied(monkeypatch, 0.05)
    assert loss == "Plan 1 loses 5% of its step to communication."
    assert savings == (
        "Savings per step: network (ib) twice as fast (10%), buckets of 5 MiB (5%), "
        "synchronise: split (4%), synchronise: merged (3%)."
    )
    _, none = remedied(monkeypatch, 0.2, [change("network (ib) twice as fast", 0.991)])
    assert none == "No tested change saves 1 % of the step."


def test_expert_parallelism_divides_replicas_and_experts():
    """8 experts among 6 replicas: pairs, but not groups of 4 or 8."""
    search = search_of("mixtral_8x7b", batch=48, counts=(1, 2))
    assert {p.ep for p in varied(search, Plan(dp=6)) if p.ep > 1} == {2}
    assert {p.ep for p in varied(search, Plan(dp=8)) if p.ep > 1} == {2, 4, 8}


def test_degrees_of_one_constrain_nothing():
    """cp 1 and ep 1 are what the search models; ep 2 is predicted plan by plan."""
    assert split_plan_fields({"cp": 1, "ep": 1, "tp": 4})[1].added == {}
    assert split_plan_fields({"ep": 2, "tp_overlap": True})[1].added == {
        "ep": 2,
        "tp_overlap": True,
    }


def test_advice_on_fields_outside_the_search():
    workload = Workload.of("gpt_h128_l4", 1, 128, "bf16", "adam")
    place, like = catalogue.cluster("dgx-a100").with_devices(2), Plan(framework="megatron-lm")
    _, fixed = split_plan_fields({"cp": 2})
    best = advice.advise(PlanSearch(workload, place, 8, like=like, fixed=fixed)).best
    assert {own.prediction.plan.cp for own in best} == {2}
