"""Tokens and experts that are shared out: what it costs, by form and imbalance."""

from dataclasses import replace

import pytest

import paceline
from paceline.constants import number, overridden
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.memory.peak_memory import stage_memories
from paceline.predictor.plan.plan import Plan, plan_for
from paceline.predictor.plan.plan_choices import ContextForm, Recompute
from paceline.predictor.predict import model_step, predict, prepare, schedule_job
from paceline.predictor.prediction_text import losses_seconds
from paceline.workload.workload import Workload

H100 = catalogue.cluster("dgx-h100")
LONG = Workload.of("llama3_8b", 1, 131_072, "bf16", "adam")
FREE = {"parallelism.context.in_parts": 1.0, "parallelism.context.merge_passes": 0.0}


def shared(cp, form=None, nodes=1, workload=LONG, **fields):
    devices = 8 * nodes
    options = {"zero": 3, "recompute": Recompute.FULL, "framework": "megatron-lm", **fields}
    plan = plan_for(devices, cp=cp, cp_impl=form, **options)
    return predict(workload, H100.with_nodes(nodes), plan)


def token_seconds(found):
    """Device-seconds of a token."""
    return found.step_seconds * found.plan.tp * found.plan.cp


@pytest.mark.parametrize("form", list(ContextForm))
def test_no_form_is_free(form):
    whole, divided = shared(1), shared(8, form)
    assert token_seconds(divided) > token_seconds(whole)
    assert divided.memory.activations_bytes < whole.memory.activations_bytes


def test_a_ring_over_more_nodes_loses_more():
    lost = [token_seconds(shared(cp, ContextForm.RING, nodes)) for cp, nodes in ((8, 1), (32, 4))]
    assert lost[1] > 1.05 * lost[0]


def test_neighbouring_tokens_leave_the_last_device_most_of_a_causal_mask():
    """The diagonal and three whole squares, of which the mean device has two."""
    with overridden(FREE):
        jobs = [
            schedule_job(prepare(LONG, H100.shaped(1, 8), _plan(form)))
            for form in (ContextForm.RING, ContextForm.RING_IN_ORDER)
        ]
        plain, in_order = (_attention(job) for job in jobs)
    assert in_order == pytest.approx(plain * 7 / 4)


def test_attention_that_sees_everything_is_balanced_in_any_order():
    bert = Workload.of("bert_large", 4, 512, "bf16", "adam")
    plans = (Plan(dp=2, cp=4, cp_impl=form) for form in list(ContextForm)[:2])
    balanced, in_order = (predict(bert, H100.shaped(1, 8), plan) for plan in plans)
    assert in_order.step_seconds == balanced.step_seconds


def _attention(timeline):
    """Seconds of forward of one attention layer."""
    kinds = timeline.step.parts.kinds
    return next(timeline.times.forward[k] for k, part in enumerate(kinds) if part.context)


def _plan(form):
    return Plan(dp=2, cp=4, zero=3, cp_impl=form)


def test_slow_links_show_what_attention_does_not_hide():
    slow = replace(H100, intra=replace(H100.intra, bandwidth=1e9, collective_bandwidth=None))
    fast, late = (predict(LONG, place.shaped(1, 8), _plan(None)) for place in (H100, slow))
    assert late.step_seconds > 1.5 * fast.step_seconds


def test_gathering_holds_all_keys_and_values():
    def first_stage(form):
        plan = Plan(pp=4, cp=2, micro_batch=1, cp_impl=form)
        step = model_step(prepare(LONG.with_batch(4), H100.shaped(1, 8), plan))
        return stage_memories(step.parts, step.communication.stage_counts)[0].activations_bytes

    assert first_stage(ContextForm.GATHER) > first_stage(ContextForm.RING)


def test_the_framework_has_its_form_and_says_so():
    for framework, form in (("deepspeed", "ulysses"), ("torch-fsdp", "gather")):
        found = shared(8, framework=framework)
        assert found.step_seconds == shared(8, ContextForm(form), framework=framework).step_seconds
        assert any(form in note for note in found.notes)


def test_heads_that_do_not_divide_are_not_exchanged_for_tokens():
    with pytest.raises(InputError, match=r"tp x cp = 64 to divide the 32 heads") as caught:
        shared(16, ContextForm.ULYSSES, nodes=8, tp=4)
    assert "--cp-impl ring" in caught.value.hint


def test_a_form_without_context_parallelism_is_refused():
    with pytest.raises(InputError, match="cp is 1"):
        Plan(cp_impl=ContextForm.RING)


MIXTRAL = Workload.of("mixtral_8x7b", 4, 4096, "bf16", "adam")


def experts(imbalance, ep=8):
    plan = Plan(dp=16, ep=ep, zero=1, micro_batch=1, expert_imbalance=imbalance)
    return predict(MIXTRAL, H100.with_nodes(2), plan)


def test_everyone_waits_for_the_busiest_experts():
    found = [experts(imbalance) for imbalance in (1.0, 1.2, 2.0)]
    seconds = [own.step_seconds for own in found]
    assert seconds == sorted(seconds) and seconds[0] < seconds[1]
    held = [own.memory.activations_bytes for own in found]
    assert held == sorted(held) and held[0] < held[1]


def test_what_nobody_stated_is_in_the_interval_and_in_a_note():
    stated, assumed = experts(1.1), experts(None)
    assert assumed.step_seconds == stated.step_seconds
    assert assumed.interval.low < stated.interval.low < 1.0
    assert any("1.1 times the mean load" in note for note in assumed.notes)
    assert not any("mean load" in note for note in stated.notes)


def test_what_is_lost_to_unequal_work_has_a_name():
    name = "unequal experts"
    even, uneven = (losses_seconds(experts(imbalance)) for imbalance in (1.0, 1.5))
    assert name not in even
    assert uneven[name] > 0.0
    assert uneven["memory traffic, overheads"] == pytest.approx(
        even["memory traffic, overheads"], rel=0.02
    )
    assert losses_seconds(shared(4, ContextForm.RING))["attention in parts"] > 0.0


def test_tokens_that_go_to_experts_of_other_nodes_take_the_network():
    def sent(cluster, tp):
        plan = Plan(dp=16 // tp, tp=tp, ep=8, zero=1, micro_batch=1)
        found = schedule_job(prepare(MIXTRAL, cluster, plan))
        parts = found.step.parts
        is_expert = [part.is_expert for part in parts.kinds]
        return parts.total(found.times.forward_exchange * is_expert)

    near = H100.with_nodes(2)
    slow = replace(near, inter=replace(near.inter, bandwidth=near.inter.bandwidth / 10))
    assert sent(slow, 1) == sent(near, 1), "eight devices of one node share out the experts"
    assert sent(slow, 2) > 3 * sent(near, 2)


@pytest.mark.parametrize(("imbalance", "ep"), [(0.9, 8), (9.0, 8), (1.2, 1)])
def test_impossible_imbalances_are_refused(imbalance, ep):
    with pytest.raises(InputError, match=r"expert_imbalance|cannot have") as caught:
        experts(imbalance, ep)
    assert caught.value.hint


def test_products_hide_most_of_tensor_parallel_messages_but_not_all():
    gpt = Workload.of("gpt3_6.7b", 4, 2048, "bf16", "adam")
    plan = Plan(tp=8, sequence_parallel=True)
    apart, over = (
        schedule_job(prepare(gpt, H100.shaped(1, 8), replace(plan, tp_overlap=overlap)))
        for overlap in (False, True)
    )
    waited, left = (
        x.step.parts.total(x.times.forward_exchange + x.times.backward_exchange)
        for x in (apart, over)
    )
    assert 0.29 * waited < left < waited
    with pytest.raises(InputError, match="sequence parallelism"):
        Plan(tp=8, tp_overlap=True)


def test_a_device_with_more_experts_waits_longer_for_the_host():
    """Same tokens, same GEMMs: only the number of experts on the device differs."""
    layer, expert = (f"overheads.host.experts.{part}" for part in ("layer", "expert"))

    def waits(ep):
        job = prepare(
            Workload.of("qwen3_30b_a3b", 8, 4096, "bf16", "adam"),
            H100.with_nodes(8),
            plan_for(64, ep=ep, framework="megatron-core", micro_batch=1),
        )
        times = []
        for changes in ({layer: 0.0, expert: 0.0}, {}):
            with overridden(changes):
                times.append(model_step(prepare(job.workload, job.cluster, job.plan)).layers)
        without, shipped = (found.forward.sum() + found.backward.sum() for found in times)
        return shipped - without

    each = number("overheads.host.experts.expert")
    assert waits(8) - waits(32) == pytest.approx(each * (128 / 8 - 128 / 32), rel=1e-6)


def test_divided_experts_do_not_exceed_perfect_scaling():
    """128 experts on one device wait for the host 8 times as long as 16: no gain of scaling."""
    words = {"dp": 32, "ep": 8, "micro_batch": 1, "global_batch": 512, "framework": "megatron-lm"}
    assert paceline.predict("qwen3_30b_a3b", "dgx-h100", nodes=4, **words).efficiency < 1.0
