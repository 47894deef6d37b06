import numpy as np
import pytest

from paceline.predictor.memory.activations import (
    kept_activations,
    working_bytes,
)
from paceline.predictor.memory.loss_memory import LossMemory
from paceline.predictor.partition.fused_operations import with_unfused_scores
from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.plan.plan_choices import Recompute
from paceline.workload import zoo
from paceline.workload.blocks import blocks


def of_block(sharding, values, number=5):
    block = blocks(sharding.graph)[number]
    return sum(values[block.first : block.last])


@pytest.fixture(scope="module")
def gpt():
    return Sharding(zoo.build("megatron_22b"), 2048, "fp16")


def test_shares_of_weights_make_up_the_whole(gpt):
    whole = gpt.profile.parameters
    share = sum(layer.profile.parameters for layer in gpt.layers(8))
    assert whole / 8 <= share <= 1.01 * whole / 8


def test_shares_of_work_make_up_the_whole(gpt):
    whole = sum(float(layer.forward_flops.per_sample) for layer in gpt.profile.layers)
    share = sum(float(layer.profile.forward_flops.per_sample) for layer in gpt.layers(8))
    assert share == pytest.approx(whole / 8)
    products = sum(
        float(gemm.flops.per_sample)
        for layer in gpt.layers(8)
        for gemm in layer.profile.forward_gemms
    )
    assert products == pytest.approx(whole / 8)


def test_messages_of_a_block_are_those_of_megatron(gpt):
    hidden_state = 2048 * 6144 * 2
    forward = [
        sum(float(m.size.per_sample) for m in layer.tensor_forward) for layer in gpt.layers(8)
    ]
    assert of_block(gpt, forward) == pytest.approx(2 * hidden_state)


def test_sequence_parallelism_divides_what_tensor_parallelism_leaves(gpt):
    def kept(sequence_parallel):
        layers = gpt.layers(8, sequence_parallel=sequence_parallel)
        sizes = kept_activations(gpt, layers, Recompute.NONE, 8, sequence_parallel).sizes
        return of_block(gpt, [float(size.per_sample) for size in sizes])

    tokens = 2048 * 6144
    assert kept(False) == pytest.approx((8 + 24 / 8) * tokens, rel=0.01)
    assert kept(True) == pytest.approx((8 + 24) / 8 * tokens, rel=0.01)


def test_full_recomputation_keeps_the_input_of_each_block(gpt):
    kept = kept_activations(gpt, gpt.layers(1), Recompute.FULL)
    assert of_block(gpt, [float(s.per_sample) for s in kept.sizes]) == 2 * 2048 * 6144
    assert of_block(gpt, kept.again) == 13
    assert not kept.again[0], "the embedding is not part of a block"
    assert float(working_bytes(gpt.layers(1), gpt).per_sample) > 10 * 2048 * 6144


def test_selective_recomputation_saves_the_scores_of_unfused_attention():
    graph = with_unfused_scores(zoo.build("megatron_22b"))
    sharding = Sharding(graph, 2048, "fp16")
    layers = sharding.layers(8)

    def kept(recompute):
        sizes = kept_activations(sharding, layers, recompute, 8).sizes
        return of_block(sharding, [float(size.per_sample) for size in sizes])

    scores = 5 * 64 * 2048 * 2048 / 8
    assert kept(Recompute.NONE) - kept(Recompute.SELECTIVE) == pytest.approx(scores, rel=0.01)


def test_selective_recomputation_of_fused_attention_frees_only_row_statistics(gpt):
    """Fused attention writes no scores: 4 bytes per head and token are all that it drops."""
    layers = gpt.layers(8)
    none, selective = (
        kept_activations(gpt, layers, mode, 8) for mode in (Recompute.NONE, Recompute.SELECTIVE)
    )
    attentions = [node.op for node in gpt.graph.nodes if node.op.kind == "attention"]
    freed = sum(float(size.per_sample) for size in none.sizes) - sum(
        float(size.per_sample) for size in selective.sizes
    )
    assert sum(selective.again) == len(attentions)
    tokens = gpt.output_shape(gpt.graph.nodes[-3].name)[0]
    assert freed == pytest.approx(sum(4 * op.heads * tokens / 8 for op in attentions))


def test_experts_are_fewer_and_busier():
    sharding = Sharding(zoo.build("mixtral_8x7b"), 1024, "bf16")
    (alone, *_) = [x for x in sharding.layers(1) if x.is_expert]
    (shared, *_) = [x for x in sharding.layers(1, ep=8) if x.is_expert]
    assert shared.profile.parameters == pytest.approx(alone.profile.parameters / 8, rel=0.01)
    assert sum(float(g.flops.per_sample) for g in shared.profile.forward_gemms) == pytest.approx(
        sum(float(g.flops.per_sample) for g in alone.profile.forward_gemms)
    )
    tokens = 1024 * 4096 * 2
    assert [float(m.size.per_sample) for m in shared.expert_forward] == [2 * tokens] * 2


def test_arrays_of_degrees_give_what_each_degree_gives(gpt):
    degrees = np.array([2.0, 4.0, 8.0])
    together = gpt.layers(degrees)
    for position, degree in enumerate((2, 4, 8)):
        alone = gpt.layers(degree)
        for a, b in zip(together, alone, strict=True):
            for name in ("forward_flops", "forward_bytes", "activation_bytes"):
                array = np.broadcast_to(getattr(a.profile, name).per_sample, 3)
                assert array[position] == pytest.approx(getattr(b.profile, name).per_sample)


def test_the_end_of_forward_holds_scores_and_their_gradient_for_a_moment():
    graph = zoo.build("megatron_22b")
    words = 2048 * 51200
    half, full = Sharding(graph, 2048, "bf16"), Sharding(graph, 2048, "fp32")
    # Scores in 2 bytes, gradient in 4, gradient in 2; in 32 bits scores and gradient.
    held = float(LossMemory().working_bytes(half.layers(1), half).per_sample)
    assert held == pytest.approx(8 * words, rel=0.02)
    held = float(LossMemory().working_bytes(full.layers(1), full).per_sample)
    assert held == pytest.approx(8 * words, rel=0.02)


def test_losses_in_place_hold_scores_as_written_and_in_32_bits_for_a_moment():
    graph = zoo.build("megatron_22b")
    words = 2048 * 51200
    half, full = Sharding(graph, 2048, "bf16"), Sharding(graph, 2048, "fp32")
    held = float(LossMemory(copies=2.5).working_bytes(half.layers(1), half).per_sample)
    assert held == pytest.approx(6 * words, rel=0.02)
    held = float(LossMemory(copies=2.5).working_bytes(full.layers(1), full).per_sample)
    assert held == pytest.approx(4 * words, rel=0.02)
