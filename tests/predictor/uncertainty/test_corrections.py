"""Corrections and evidence act inside the scheduled step, in every plan and to the right side."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.hardware import catalogue
from paceline.predictor.evidence import Baseline, Colocated, Evidence
from paceline.predictor.framework_profiles import framework
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import model_step, predict, predict_step, prepare
from paceline.predictor.uncertainty.measured_scale import corrected_timeline
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-1").with_nodes(2)
WORKLOAD = Workload.of("gpt_h512_l8", 16, 128, "fp16", "adam")
PLANS = [
    Plan(dp=16),
    Plan(dp=16, micro_batches=4),
    Plan(dp=16, zero=1),
    Plan(dp=16, zero=2, micro_batches=4),
    Plan(dp=16, zero=3, micro_batches=2),
    Plan(dp=8, tp=2),
    Plan(dp=4, cp=4),
    Plan(dp=4, pp=4, micro_batch=2),
    Plan(dp=4, pp=4, micro_batch=2, zero=1),
    Plan(dp=4, pp=4, micro_batch=2, zero=2),
    Plan(dp=4, pp=4, micro_batch=2, zero=3),
    Plan(dp=4, tp=2, pp=2, micro_batch=4, interleave=2, recompute=Recompute.FULL),
]
EACH_PLAN = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.label} z{plan.zero}")


def seconds(plan, corrections=NO_CORRECTIONS, evidence=None):
    return predict(WORKLOAD, CLUSTER, plan, corrections=corrections, evidence=evidence).step_seconds


@EACH_PLAN
@pytest.mark.parametrize(
    "slower",
    [
        StepCorrections(compute_factor=1.2),
        StepCorrections(variation=0.05),
        StepCorrections(variation_across_nodes=0.05),
        StepCorrections(bandwidth_factor=0.5),
        StepCorrections(overhead_seconds=0.01),
    ],
    ids=lambda one: str(one)[16:60],
)
def test_every_correction_that_costs_lengthens_every_plan(plan, slower):
    assert seconds(plan, slower) > seconds(plan) * (1 + 1e-6)


@EACH_PLAN
def test_what_overlap_hides_shows_more_with_a_larger_unhidden_share(plan):
    hidden, some, more = (seconds(plan, StepCorrections(unhidden_share=u)) for u in (0, 0.1, 0.4))
    assert hidden < some < more


@EACH_PLAN
def test_every_message_costs_the_device_that_computes(plan):
    """What costs without a pipeline costs with one."""
    costly = replace(framework("torch-ddp"), message_overhead_seconds=0.01)
    assert seconds(replace(plan, framework=costly)) >= seconds(plan) + 0.009


@EACH_PLAN
def test_input_update_and_framework_time_lengthen_every_plan(plan):
    base = seconds(plan)
    assert predict(WORKLOAD, CLUSTER, plan, input_seconds=base + 1).step_seconds >= base + 1
    assert seconds(plan, evidence=Evidence(update_seconds=10.0)) > base
    slow = replace(framework("torch-ddp"), step_overhead_seconds=base + 1)
    assert seconds(replace(plan, framework=slow)) > base + 1


@EACH_PLAN
def test_a_step_modelled_once_takes_the_same_under_other_corrections(plan):
    step = model_step(prepare(WORKLOAD, CLUSTER, plan))
    for other in (
        StepCorrections(1.3, 0.05, 0.1, 0.2, 0.8, 0.001),
        StepCorrections(unhidden_share=0.0),
    ):
        assert corrected_timeline(step, other).seconds == seconds(plan, other)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(PLANS), st.floats(0.2, 5.0), st.floats(0.0, 0.5))
def test_a_baseline_is_reproduced_whatever_the_corrections(plan, factor, share):
    corrections = StepCorrections(variation=0.02, unhidden_share=share, overhead_seconds=1e-4)
    step = model_step(prepare(WORKLOAD, CLUSTER, plan))
    measured = factor * corrected_timeline(step, corrections).seconds + 0.05
    evidence = Evidence(baseline=Baseline(step, measured))
    assert seconds(plan, corrections, evidence) == pytest.approx(measured, rel=1e-4)


def test_a_baseline_on_few_devices_tells_what_many_take():
    few = model_step(prepare(WORKLOAD, CLUSTER.shaped(1, 2), Plan(dp=2)))
    twice = Evidence(baseline=Baseline(few, 2 * predict_step(few).step_seconds))
    assert seconds(Plan(dp=16), evidence=twice) > 1.5 * seconds(Plan(dp=16))


def test_co_located_processes_slow_each_other_down_and_wait():
    alone = Evidence(alone_seconds=0.5)
    beside = replace(alone, colocation={8: Colocated(1.1, 1.05)})
    place, plan = CLUSTER.shaped(1, 8), Plan(dp=8)
    apart, together = (
        predict(WORKLOAD, place, plan, evidence=e, corrections=NO_CORRECTIONS)
        for e in (alone, beside)
    )
    assert together.sharing_seconds == pytest.approx(0.1 * 0.5, rel=0.02)
    assert together.waiting_seconds == pytest.approx(0.05 * 1.1 * 0.5, rel=0.02)
    assert together.step_seconds - apart.step_seconds == pytest.approx(
        together.sharing_seconds + together.waiting_seconds, rel=0.02
    )
    assert sum(together.parts_seconds.values()) == pytest.approx(together.step_seconds, rel=1e-6)


def test_a_measured_all_reduce_goes_before_the_modelled_one():
    slow = Evidence(all_reduce={16: lambda size: 1.0})
    assert seconds(Plan(dp=16), evidence=slow) > 1.0 > seconds(Plan(dp=16))
