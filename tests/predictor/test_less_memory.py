"""Plans that need less memory: offload to the host, adapters, chosen operations computed again."""

from dataclasses import replace
from itertools import pairwise

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.hardware import catalogue
from paceline.predictor.api import predict as predict_words
from paceline.predictor.memory.offload import moved_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Offload, Recompute
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.predict import model_step, predict, prepare
from paceline.predictor.schedule.device_times import device_times
from paceline.predictor.search import PlanSearch
from paceline.workload.adapters import QUANTISED_BYTES, with_adapters
from paceline.workload.blocks import part_of
from paceline.workload.workload import Workload

A100 = catalogue.cluster("dgx-a100").with_nodes(1)
LLAMA = Workload.of("llama2_7b", 2, 4096, "bf16", "adam")
PLAN = Plan(dp=8, zero=1, micro_batch=1)


def moved(*offload, workload=LLAMA, cluster=A100, plan=PLAN):
    return predict(workload, cluster, replace(plan, offload=offload))


def test_the_state_of_the_optimizer_leaves_and_its_update_takes_longer():
    here, away = moved(), moved(Offload.OPTIMIZER)
    assert away.memory.optimizer_bytes == 0.0 < here.memory.optimizer_bytes
    assert away.memory.activations_bytes == here.memory.activations_bytes
    assert away.step_seconds > here.step_seconds


@pytest.mark.parametrize("recompute", [Recompute.NONE, Recompute.FULL])
def test_activations_leave_but_for_two_blocks(recompute):
    plan = replace(PLAN, recompute=recompute)
    here, away = moved(plan=plan), moved(Offload.ACTIVATIONS, plan=plan)
    assert away.memory.activations_bytes < here.memory.activations_bytes
    assert away.step_seconds >= here.step_seconds


def test_what_the_link_takes_longer_than_computing_shows():
    """Everything once to the host in forward and back in backward, or as long as they take."""
    slow = replace(A100, host=replace(A100.host, bandwidth=1e9))
    job = prepare(LLAMA, slow, replace(PLAN, offload=(Offload.ACTIVATIONS,)))
    step = model_step(job)
    times = device_times(step.parts, step.layers, step.communication.within)
    inside = [bool(part_of(node.name)) for node in LLAMA.graph.nodes]
    kinds = step.parts.classes.of_layer[inside]
    link = moved_bytes(step.parts)[kinds].sum() / 1e9
    for seconds in (times.whole_forward, times.whole_backward):
        assert seconds[kinds].sum() == pytest.approx(link)
    quick = replace(A100, host=replace(A100.host, bandwidth=1e15))
    assert moved(Offload.ACTIVATIONS, cluster=quick).step_seconds == pytest.approx(
        moved(cluster=quick).step_seconds
    )


def test_offloaded_weights_cross_the_link_in_both_passes():
    """Each device reads its shard of 1/8 of the weights in forward and again in backward."""
    plan = replace(PLAN, zero=3)
    here, away = moved(plan=plan), moved(Offload.WEIGHTS, plan=plan)
    assert away.memory.weights_bytes == 0.0
    assert here.memory.weights_bytes == pytest.approx(2 * LLAMA.profile.parameters / 8)
    assert away.memory.gradients_bytes == here.memory.gradients_bytes
    slow = replace(A100, host=replace(A100.host, bandwidth=1e9))
    step = model_step(prepare(LLAMA, slow, replace(plan, offload=(Offload.WEIGHTS,))))
    times = device_times(step.parts, step.layers, step.communication.within)
    link = 2 * LLAMA.profile.parameters / 8 / 1e9
    for seconds in (times.whole_forward, times.whole_backward):
        assert seconds[step.parts.classes.of_layer].sum() == pytest.approx(link)
    with pytest.raises(InputError, match="needs sharded weights"):
        moved(Offload.WEIGHTS)


def test_offload_needs_a_host_and_a_link_to_it():
    with pytest.raises(InputError, match="has no link to the host"):
        moved(Offload.OPTIMIZER, cluster=replace(A100, host=None))
    with pytest.raises(InputError, match="computes in host memory"):
        predict(
            LLAMA, catalogue.cluster("xeon-edr").shaped(1, 1), Plan(offload=(Offload.OPTIMIZER,))
        )
    with pytest.raises(UnknownNameError, match="gradients"):
        predict_words("llama2_7b", "dgx-a100", nodes=1, offload="gradients")
    with pytest.raises(InputError, match="does not support pipelines"):
        Plan(pp=2, offload=(Offload.ACTIVATIONS,))
    with pytest.raises(InputError, match="do not model offload"):
        PlanSearch(LLAMA, A100, 16, like=Plan(offload=(Offload.OPTIMIZER,)))


def test_words_name_both():
    found = predict_words("gpt2", "dgx-a100", nodes=1, offload="activations,optimizer")
    assert set(found.plan.offload) == {Offload.OPTIMIZER, Offload.ACTIVATIONS}


@pytest.mark.parametrize("name", ["gpt2", "llama2_7b", "bert_large", "mixtral_8x7b", "deepseek_v3"])
def test_adapters_are_trained_and_nothing_else(name):
    graph = Workload.of(name, 1).graph
    adapted = with_adapters(graph, 8)
    before, after = (each.profile(128, "bf16") for each in (graph, adapted))
    assert after.parameters - before.parameters == after.trainable_parameters
    assert 0 < after.trainable_parameters < before.parameters / 50
    assert after.quantity("forward_flops").per_sample > before.quantity("forward_flops").per_sample


def test_a_seven_billion_network_is_adapted_on_one_device_of_24_gb():
    place = catalogue.cluster("dgx-a100").shaped(1, 1)
    words = {"seq": 512, "batch": 1, "precision": "bf16", "optimizer": "adam", "recompute": "full"}
    whole, adapted, short = (
        predict_words("llama2_7b", place, **words, **extra)
        for extra in ({}, {"lora": 16}, {"qlora": True})
    )
    assert short.memory.total_bytes < adapted.memory.total_bytes < 24e9
    assert whole.memory.total_bytes > 100e9
    assert adapted.step_seconds < short.step_seconds < whole.step_seconds
    # bitsandbytes quantises linear layers but for the output layer, as large as the embedding.
    table = 32000 * 4096
    frozen = LLAMA.profile.parameters - 2 * table - 65 * 4096
    assert adapted.memory.weights_bytes - short.memory.weights_bytes == pytest.approx(
        (2 - QUANTISED_BYTES) * frozen
    )


def test_adapters_have_their_place():
    with pytest.raises(InputError, match="has no attention"):
        predict_words("resnet50", "dgx-a100", nodes=1, lora=16)
    with pytest.raises(InputError, match="already has frozen weights"):
        predict_words("llama2_7b_lora", "dgx-a100", nodes=1, lora=16)


@pytest.mark.parametrize("fields", [{"dp": 8}, {"tp": 8}, {"tp": 8, "sequence_parallel": True}])
def test_chosen_operations_lie_between_everything_and_nothing(fields):
    """Less time than all of each block again, less memory than none of it."""
    workload = LLAMA.with_batch(1)
    found = [
        predict(workload, A100, Plan(**fields, recompute=recompute))
        for recompute in (Recompute.NONE, Recompute.OPERATION, Recompute.FULL)
    ]
    for less, more in pairwise(found):
        assert less.step_seconds < more.step_seconds
        assert less.memory.activations_bytes > more.memory.activations_bytes


def test_chosen_operations_need_blocks():
    alexnet = Workload.of("alexnet", 8).graph
    with pytest.raises(InputError, match="needs blocks"):
        check_recomputation(Plan(recompute=Recompute.OPERATION), alexnet)
