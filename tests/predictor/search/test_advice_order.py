"""Advice that an expert would sign: simple plans first, tensor parallelism inside nodes."""

from dataclasses import replace

import pytest

import paceline
from paceline.constants import number
from paceline.hardware import catalogue
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.prediction_text import RECOMPUTATION
from paceline.predictor.search import PlanSearch
from paceline.predictor.search.plan_ranking import (
    best_guesses,
    distinguishable,
    effort,
    lost_apart,
    shown_plans,
    simplest_first,
    ties,
    within_noise,
)
from paceline.predictor.search.plan_variants import variations
from paceline.workload.workload import Workload

pytestmark = pytest.mark.thorough


def test_a_small_network_on_one_node_is_replicated_and_not_sharded():
    best = paceline.advise("bert_large", "dgx-1", global_batch=256, seq=512, top=3).best[0]
    assert (best.plan.tp, best.plan.pp, best.plan.dp) == (1, 1, 8)
    assert best.plan.zero <= 1


def test_seven_billion_on_one_node_are_data_parallel():
    best = paceline.advise("llama2_7b", "dgx-a100", global_batch=256, seq=4096, top=2).best[0]
    assert (best.plan.tp, best.plan.pp, best.framework) == (1, 1, "torch-fsdp")


def test_the_fastest_comes_first_and_the_simplest_of_ties_is_named():
    words = {"global_batch": 256, "nodes": 4, "framework": "megatron-lm"}
    found = paceline.advise("gpt_h2048_l8_a16", "dgx-a100", **words, top=5)
    predictions = found.best
    steps = [own.step_seconds for own in predictions]
    assert steps == sorted(steps)
    assert found.advice.close >= sum(ties(predictions)) >= 1
    assert predictions[found.advice.simplest] is min(best_guesses(predictions), key=effort)
    for top in (1, 2):
        again = paceline.advise("gpt_h2048_l8_a16", "dgx-a100", **words, top=top)
        assert [own.plan for own in again.best] == [own.plan for own in predictions[:top]]
        assert again.advice.close == found.advice.close


def test_a_plan_that_is_clearly_faster_comes_first_however_complicated():
    found = paceline.advise("gpt_h2048_l8_a16", "dgx-a100", global_batch=256, top=3).best
    simple = min(found, key=effort)
    slow = replace(simple, step_seconds=3 * max(own.step_seconds for own in found))
    others = [own for own in found if own is not simple]
    assert simplest_first([slow, *others])[-1] is slow


def predicted(**plan):
    place = catalogue.cluster("dgx-a100").with_nodes(2)
    whole = Plan(framework="megatron-lm", **plan)
    workload = Workload.of("gpt_h2048_l4_a16", 64 // whole.dp, 512, "bf16", "adam")
    return paceline.predict(workload, place, whole)


def test_tensor_parallelism_across_nodes_is_left_out_unless_nothing_else_is_there():
    across, inside = predicted(tp=16), predicted(tp=8, dp=2)
    fast = replace(across, step_seconds=inside.step_seconds / 2)
    assert shown_plans([fast, inside], 5) == [inside]
    assert shown_plans([fast], 5) == [fast]


def test_what_is_computed_again_is_certain_and_widens_nothing():
    kept, again = predicted(dp=16), predicted(dp=16, recompute=Recompute.FULL)
    assert again.losses[RECOMPUTATION] > 0.1 * again.step_seconds
    assert distinguishable(again, kept) == pytest.approx(distinguishable(kept, kept), abs=0.01)
    assert not within_noise(again, kept)


def test_what_one_plan_loses_more_than_another_may_be_off():
    whole, staged = predicted(dp=16), predicted(dp=4, pp=4, micro_batch=1)
    apart = staged.losses["pipeline bubble"] / whole.step_seconds
    assert lost_apart(staged, whole) > 0.9 * apart
    spread = number("spread.comparison.losses")
    assert distinguishable(staged, whole) == pytest.approx(spread * lost_apart(staged, whole))


def test_messages_that_are_hidden_may_show():
    whole, sharded = predicted(dp=16), predicted(dp=16, zero=3, micro_batch=1)
    hidden = sharded.breakdown.hidden_communication_seconds
    assert hidden > 0
    assert lost_apart(whole, sharded) >= 0.99 * hidden / sharded.step_seconds


def test_a_plan_that_is_surely_slower_than_any_other_is_no_best_guess():
    # The first cannot be told from the unsure one, but it can from the second.
    unsure = predicted(dp=16, zero=3, micro_batch=1)
    second = replace(predicted(dp=16), step_seconds=1.02 * unsure.step_seconds)
    first = replace(second, step_seconds=1.06 * unsure.step_seconds)
    assert within_noise(first, unsure) and within_noise(second, unsure)
    assert best_guesses([first, second, unsure]) == [second, unsure]


def test_each_layout_is_shown_once_and_as_many_as_asked_for():
    plans = [
        predicted(dp=16),
        predicted(dp=16, zero=1),
        predicted(dp=8, tp=2),
        predicted(tp=8, dp=2),
    ]
    shown = shown_plans(plans, 2)
    assert [(own.plan.tp, own.plan.dp) for own in shown] == [(1, 16), (2, 8)]
    assert shown_plans(plans, 1) == shown[:1]


def test_the_layout_of_llama_3_405b_that_was_used_is_not_distinguishable_from_the_fastest():
    found = paceline.advise(
        "llama3_405b", "dgx-h100", global_batch=2048, seq=8192, nodes=2048, top=3
    )
    plans = [each.plan for each in found.best[: found.advice.close]]
    degrees = [(plan.tp, plan.pp, plan.dp, plan.zero) for plan in plans]
    used = plans[degrees.index((8, 16, 128, 1))]
    assert used.recompute_every > 1, "with all kept it is predicted not to fit"
    assert found.best[0].framework == "megatron-lm"


def test_the_published_layout_of_gpt_3_on_a100_is_the_simplest():
    found = paceline.advise("gpt3_175b", "dgx-a100", global_batch=1536, nodes=64)
    plan = found.best[found.advice.simplest].plan
    assert (plan.tp, plan.pp, plan.zero) == (8, 4, 1)
    assert plan.interleave > 1, "the pipeline is interleaved"


def test_expert_parallelism_without_tensor_parallelism_is_among_the_advice():
    found = paceline.advise("mixtral_8x7b", "dgx-h100", global_batch=512, nodes=8, top=8)
    assert (8, 1) in [(each.plan.ep, each.plan.tp) for each in found.best]


def search_of(model, batch, nodes, sequence):
    workload = Workload.of(model, batch, sequence, "bf16", "adam")
    place = catalogue.cluster("dgx-h100").with_nodes(nodes)
    return PlanSearch(workload, place, batch, (), Plan(framework="megatron-lm"))


def test_stages_of_unequal_size_are_tried():
    plans = [own.plan for own in variations(search_of("gpt_h1024_l6_a16", 64, 4, 512), [])]
    assert any(plan.pp == 4 for plan in plans)
    assert all(6 % plan.pp for plan in plans)


def test_experts_are_shared_out_where_there_are_any():
    search = search_of("mixtral_8x7b", 64, 4, 512)
    found = variations(search, [Plan(tp=2, dp=16, zero=3, framework="megatron-lm")])
    assert {own.plan.ep for own in found} >= {2, 4, 8}
    assert [own.seconds for own in found] == sorted(own.seconds for own in found)


def test_many_experts_are_shared_out_on_pipelines_that_fit():
    search = search_of("qwen3_30b_a3b", 512, 8, 4096)
    found = [own for own in variations(search, []) if own.plan.ep > 1]
    assert any(own.plan.pp > 1 and own.plan.ep > 8 for own in found)
    assert all(own.plan.zero == 1 and own.plan.tp in (1, 8) for own in found)
    assert all(
        own.memory_bytes <= room_bytes(search.cluster.device.known_memory_bytes) for own in found
    )


def test_long_samples_are_shared_out_among_devices():
    search = search_of("gpt_h1024_l4_a16", 8, 1, 32768)
    found = variations(search, [Plan(dp=8, zero=1, framework="megatron-lm")])
    assert {own.plan.cp for own in found} >= {2, 4, 8}
    assert all(own.plan.devices == 8 for own in found)


def test_what_a_slow_network_takes_is_named_with_what_would_remove_it():
    found = paceline.advise("vgg16", "hkbu-v100-pcie", global_batch=1024, nodes=8, top=2).advice
    lost, saves = found.remedies
    assert "of its step to communication" in lost
    assert "twice as fast" in saves or "fp16" in saves
