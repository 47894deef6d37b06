"""Advice that an expert would sign: simple plans first, tensor parallelism inside nodes."""

from dataclasses import replace

import paceline
from paceline.hardware import catalogue
from paceline.plan.plan import Plan
from paceline.predictor.search import PlanSearch
from paceline.predictor.search.ranking import are_alike, effort, simplest_first
from paceline.predictor.search.variations import variations
from paceline.workload.workload import Workload


def test_a_small_network_on_one_node_is_replicated_and_not_sharded():
    best = paceline.advise("bert_large", "dgx-1", global_batch=256, seq=512, top=3).best[0]
    assert (best.plan.tp, best.plan.pp, best.plan.dp) == (1, 1, 8)
    assert best.plan.zero <= 1


def test_seven_billion_on_one_node_are_data_parallel():
    best = paceline.advise("llama2_7b", "dgx-a100", global_batch=256, seq=4096, top=2).best[0]
    assert (best.plan.tp, best.plan.pp) == (1, 1)
    assert best.plan.zero <= 1


def test_the_first_is_the_simplest_of_those_that_cannot_be_told_apart():
    found = paceline.advise("gpt_h2048_l8_a16", "dgx-a100", global_batch=256, nodes=4, top=5)
    predictions = found.best
    fastest = min(predictions, key=lambda own: own.step_seconds)
    alike = [own for own in predictions if are_alike(own, fastest)]
    assert found.advice.close == len(alike)
    assert predictions[0] is min(alike, key=effort)
    assert predictions[found.advice.fastest] is fastest
    rest = predictions[len(alike) :]
    assert rest == sorted(rest, key=lambda own: own.step_seconds)


def test_a_plan_that_is_clearly_faster_comes_first_however_complicated():
    found = paceline.advise("gpt_h2048_l8_a16", "dgx-a100", global_batch=256, top=3).best
    simple = min(found, key=effort)
    slow = replace(simple, step_seconds=3 * max(own.step_seconds for own in found))
    others = [own for own in found if own is not simple]
    assert simplest_first([slow, *others])[-1] is slow


def test_tensor_parallelism_across_nodes_is_worth_most_effort():
    place = catalogue.cluster("dgx-a100").with_nodes(2)
    workload = Workload.of("gpt_h2048_l4_a16", 16, 512, "bf16", "adam")
    across = paceline.predict(workload, place, Plan(tp=16))
    inside = paceline.predict(workload, place, Plan(tp=8, pp=2, zero=0, micro_batch=1))
    assert effort(inside) < effort(across)


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


def test_long_samples_are_shared_out_among_devices():
    search = search_of("gpt_h1024_l4_a16", 8, 1, 32768)
    found = variations(search, [Plan(dp=8, zero=1, framework="megatron-lm")])
    assert {own.plan.cp for own in found} >= {2, 4, 8}
    assert all(own.plan.devices == 8 for own in found)


def test_what_a_slow_network_takes_is_named_with_what_would_remove_it():
    found = paceline.advise("vgg16", "hkbu-v100-pcie", global_batch=1024, nodes=8, top=2).advice
    lost, saves = found.remedies
    assert "to links and networks" in lost
    assert "twice as fast" in saves or "fp16" in saves
