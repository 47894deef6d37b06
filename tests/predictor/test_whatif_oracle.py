"""Each what-if change is the prediction of the changed plan or cluster."""

from dataclasses import replace

import pytest

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import PipelineSchedule, Recompute
from paceline.predictor.plan.sync_policy import MIB, Policy, Synchronisation
from paceline.predictor.predict import predict, prepare
from paceline.predictor.whatif import WhatIf, what_if
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-a100").with_nodes(2)
GPT = Workload.of("gpt_h512_l8", 16, 256, "bf16", "adam")


def changes(plan, **options):
    job = prepare(GPT, CLUSTER, plan, **options)
    return {found.change: found for found in what_if(job)}


def seconds(plan, cluster=CLUSTER, **options):
    return predict(GPT, cluster, plan, **options).step_seconds


def test_gain_of_a_change():
    found = WhatIf("resource", "x", 0.8, 1.0, True)
    assert found.speed_up == pytest.approx(1.25)
    assert found.saved_seconds == pytest.approx(0.2)


def test_other_plans_of_a_pipeline():
    plan = Plan(dp=4, tp=2, pp=2, micro_batch=4)
    found = changes(plan)
    for name, other in {
        "interleave 2": replace(plan, interleave=2),
        "interleave 4": replace(plan, interleave=4),
        "micro-batches of 2": replace(plan, micro_batch=2, micro_batches=8),
        "recompute full": replace(plan, recompute=Recompute.FULL),
        "sequence parallel": replace(plan, sequence_parallel=True),
    }.items():
        assert found[name].step_seconds == pytest.approx(seconds(other), rel=1e-6), name
        assert found[name].base_seconds == pytest.approx(seconds(plan), rel=1e-6)
        assert found[name].kind == "optimisation"
    assert "recompute none" not in found


def test_changes_that_do_not_apply():
    odd = changes(Plan(dp=8, pp=2, micro_batch=1))
    assert not any(name.startswith("micro-batches of 0") for name in odd)
    assert "sequence parallel" not in odd
    gpipe = changes(Plan(dp=8, pp=2, micro_batch=2, pipeline=PipelineSchedule.GPIPE))
    assert not any(name.startswith("interleave") for name in gpipe)
    chunked = changes(Plan(dp=8, pp=2, micro_batch=2, interleave=2))
    assert "interleave 2" not in chunked
    assert "interleave 4" in chunked
    alone = changes(Plan(tp=8, pp=2, micro_batch=4))
    assert not any(name.startswith(("synchronise", "gradients", "buckets")) for name in alone)


def test_other_policies():
    plan = Plan(dp=16)
    found = changes(plan)
    usual = Synchronisation()
    for name, own in {
        "buckets of 5 MiB": usual.with_bucket(5 * MIB),
        "buckets of 1 MiB": usual.with_bucket(MIB),
        "synchronise: one_message": replace(usual, policy=Policy.ONE_MESSAGE),
        "synchronise: per_tensor": replace(usual, policy=Policy.PER_TENSOR),
    }.items():
        other = seconds(replace(plan, synchronisation=own))
        assert found[name].step_seconds == pytest.approx(other, rel=1e-6), name
    assert "synchronise: bucketed" not in found
    merged = Synchronisation(Policy.MERGED)
    assert not any(
        name.startswith("buckets") for name in changes(replace(plan, synchronisation=merged))
    )


def test_faster_resources():
    plan = Plan(dp=16)
    found = changes(plan)
    link = CLUSTER.inter
    twice = replace(
        CLUSTER,
        inter=replace(
            link,
            bandwidth=2 * link.bandwidth,
            latency_seconds=None if link.latency_seconds is None else link.latency_seconds / 2,
            collective_bandwidth=None
            if link.collective_bandwidth is None
            else 2 * link.collective_bandwidth,
        ),
    )
    name = f"network ({link.name}) twice as fast"
    assert found[name].step_seconds == pytest.approx(seconds(plan, twice), rel=1e-6)
    free = f"network ({link.name}) free"
    assert found[free].step_seconds < found[name].step_seconds < found[name].base_seconds
    slow = changes(plan, input_seconds=1.0)
    assert slow["input twice as fast"].step_seconds == pytest.approx(
        seconds(plan, input_seconds=0.5), rel=1e-6
    )
    assert "input twice as fast" not in found
    one = {own.change for own in what_if(prepare(GPT, CLUSTER.shaped(1, 1), Plan()))}
    assert not any("network" in change or "links in a node" in change for change in one)


def test_the_largest_gain_of_each_kind_comes_first():
    listed = what_if(prepare(GPT, CLUSTER, Plan(dp=16)))
    kinds = [own.kind for own in listed]
    assert kinds == sorted(kinds, key=lambda kind: kind != "resource")
    for kind in ("resource", "optimisation"):
        own = [each.step_seconds for each in listed if each.kind == kind]
        assert own == sorted(own)
