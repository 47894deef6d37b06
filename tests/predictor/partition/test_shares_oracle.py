"""Shares of layers under tensor and expert parallelism, and chunks of pipelines, by hand.

Megatron-LM (Shoeybi et al. 2019, section 3): a column-parallel then a row-parallel matrix, one
all-reduce of s b h forward and one backward per pair.
"""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.partition.pipeline_stages import (
    balanced_chunks,
    chunks_by_cost,
    chunks_of_equal_blocks,
)
from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.partition.tensor_parallel import check_divisible, common_size
from paceline.workload import Graph, InputSpec, Node, ops
from paceline.workload.blocks import Block
from paceline.workload.cost import Affine

S, H, V = 8, 16, 64


def mlp_pair():
    """Attention marks a transformer; then two matrices, 16 -> 64 -> 16."""
    nodes = (
        Node("embedding", ops.Embedding(V, H), ("tokens",)),
        Node("q", ops.Linear(H), ("embedding",)),
        Node("k", ops.Linear(H), ("embedding",)),
        Node("v", ops.Linear(H), ("embedding",)),
        Node("attention", ops.Attention(4, 4, 4), ("q", "k", "v")),
        Node("out", ops.Linear(H), ("attention",)),
        Node("up", ops.Linear(4 * H), ("out",)),
        Node("gelu", ops.Activation("gelu"), ("up",)),
        Node("down", ops.Linear(H), ("gelu",)),
        Node("head", ops.Linear(V, bias=False), ("down",)),
        Node("loss", ops.CrossEntropy(), ("head", "tokens")),
    )
    return Graph("pair", {"tokens": InputSpec(("sequence",), "integer", V)}, nodes, "loss", S)


SHARDING = Sharding(mlp_pair(), S, "bf16")


def layer(name, **degrees):
    names = [node.name for node in SHARDING.graph.nodes]
    return SHARDING.layers(**degrees)[names.index(name)]


def messages(name, way, **degrees):
    return [
        (message.operation, message.size.per_sample)
        for message in getattr(layer(name, **degrees), f"tensor_{way}")
    ]


HIDDEN = S * H * 2


def test_messages_of_a_pair():
    assert messages("up", "forward", tp=2) == []
    assert messages("up", "backward", tp=2) == [("all_reduce", HIDDEN)]
    assert messages("down", "forward", tp=2) == [("all_reduce", HIDDEN)]
    assert messages("down", "backward", tp=2) == []
    assert messages("gelu", "forward", tp=2) == messages("attention", "forward", tp=2) == []
    # Three matrices read one tensor: its gradient is summed once.
    backward = [messages(name, "backward", tp=2) for name in "qkv"]
    assert backward == [[("all_reduce", HIDDEN)], [], []]
    assert messages("embedding", "forward", tp=2) == [("all_reduce", HIDDEN)]
    assert all(not own.tensor_forward and not own.tensor_backward for own in SHARDING.layers())


def test_messages_of_a_pair_with_sequence_parallelism():
    """Korthikanti et al. 2022, figure 5: gather before, reduce-scatter after; reversed backward."""
    degrees = {"tp": 2, "sequence_parallel": True}
    assert messages("up", "forward", **degrees) == [("all_gather", HIDDEN)]
    assert messages("up", "backward", **degrees) == [("reduce_scatter", HIDDEN)]
    assert messages("down", "forward", **degrees) == [("reduce_scatter", HIDDEN)]
    assert messages("down", "backward", **degrees) == [("all_gather", HIDDEN)]


@pytest.mark.parametrize(
    ("name", "forward", "weights", "inputs"),
    [
        ("up", (32, 8, 16), (32, 16, 8), (16, 8, 32)),
        ("down", (16, 8, 32), (16, 32, 8), (32, 8, 16)),
    ],
)
def test_matrices_of_a_share(name, forward, weights, inputs):
    own = layer(name, tp=2).profile
    for gemms, expected in (
        (own.forward_gemms, forward),
        (own.weight_gradient_gemms, weights),
        (own.input_gradient_gemms, inputs),
    ):
        (gemm,) = gemms
        assert (gemm.m, gemm.n, gemm.k) == expected
    assert own.forward_flops == Affine(0, 2 * 32 * 8 * 16)
    bias = 32 if name == "up" else 8
    assert own.trainable_parameters == 32 * 16 + bias
    assert own.gradient_bytes == Affine(2 * (32 * 16 + bias), 0)


def test_traffic_of_a_share():
    """up reads all of 8 x 16 and writes half of 8 x 64; down the other way round."""
    whole_read, half_written = S * H * 2, S * 4 * H * 2 / 2
    for name in ("up", "down"):
        moved = layer(name, tp=2).profile.forward_bytes
        assert moved.per_sample == pytest.approx(whole_read + half_written)
    assert layer("up", tp=2).profile.forward_bytes.fixed == pytest.approx(2 * (512 + 32))
    assert layer("gelu", tp=2).profile.forward_bytes.per_sample == S * 4 * H * 2


def test_heads_are_divided():
    own = layer("attention", tp=2).profile
    assert [gemm.count for gemm in own.forward_gemms] == [2, 2]
    assert own.forward_flops.per_sample == SHARDING.profile.layers[4].forward_flops.per_sample / 2
    context = layer("attention", tp=2).context
    assert (context.queries, context.keys_values) == (Affine(0, HIDDEN / 2), Affine(0, HIDDEN))
    assert (context.result, context.kv_heads, context.causal) == (Affine(0, HIDDEN / 2), 4, False)
    assert layer("up").context is None


def test_degrees_that_divide():
    check_divisible(SHARDING.graph, 1)
    check_divisible(SHARDING.graph, 4)
    with pytest.raises(InputError, match="tp 3 does not divide the 4 heads"):
        check_divisible(SHARDING.graph, 3)
    assert common_size(SHARDING.graph) == 4


# Experts.

EXPERTS, TOP, INNER = 8, 2, 32


def experts_graph():
    nodes = (
        Node("embedding", ops.Embedding(V, H), ("tokens",)),
        Node("q", ops.Linear(H), ("embedding",)),
        Node("attention", ops.Attention(4, 4, 4), ("q", "q", "q")),
        Node("out", ops.Linear(H), ("attention",)),
        Node("moe", ops.MixtureOfExperts(EXPERTS, TOP, INNER), ("out",)),
        Node("head", ops.Linear(V, bias=False), ("moe",)),
        Node("loss", ops.CrossEntropy(), ("head", "tokens")),
    )
    return Graph("experts", {"tokens": InputSpec(("sequence",), "integer", V)}, nodes, "loss", S)


def experts(**degrees):
    return Sharding(experts_graph(), S, "bf16").layers(**degrees)[4]


def test_experts_on_four_devices():
    """A device holds 2 experts, which serve the tokens of 4 devices: 8 tokens each."""
    own = experts(ep=4)
    router, matrices = EXPERTS * H, 3 * EXPERTS * INNER * H
    assert own.profile.parameters == router + matrices // 4
    assert own.expert_share == pytest.approx(1 - router / (router + matrices // 4))
    route, into, out = own.profile.forward_gemms
    assert (route.m, route.n, route.k, route.count) == (EXPERTS, S, H, 1)
    assert (into.m, into.n, into.k, into.count) == (INNER, 8, H, 4)
    assert (out.m, out.n, out.k, out.count) == (H, 8, INNER, 2)
    weights = own.profile.weight_gradient_gemms[1]
    assert (weights.m, weights.n, weights.k, weights.count) == (INNER, H, 8, 4)
    assert own.profile.forward_flops == experts().profile.forward_flops
    whole = experts().profile
    share = (router + matrices / 4) / (router + matrices)
    assert own.profile.forward_bytes.fixed == pytest.approx(whole.forward_bytes.fixed * share)
    assert own.profile.forward_bytes.per_sample == whole.forward_bytes.per_sample
    assert own.profile.gradient_bytes == Affine(2 * (router + matrices // 4), 0)


def test_routed_tokens_travel_twice_each_way():
    own = experts(ep=4)
    sent = ("all_to_all", TOP * S * H * 2)
    for way in (own.expert_forward, own.expert_backward):
        assert [(each.operation, each.size.per_sample) for each in way] == [sent] * 2
    halved = experts(ep=4, tp=2, sequence_parallel=True)
    assert [each.size.per_sample for each in halved.expert_forward] == [TOP * S * H] * 2
    assert not layer("up").expert_forward
    assert layer("up").expert_share == 0.0


def test_tensor_parallel_experts_are_a_pair_in_one_layer():
    own = experts(tp=2)
    assert [each.operation for each in own.tensor_forward] == ["all_reduce"]
    assert [each.operation for each in own.tensor_backward] == ["all_reduce"]
    by_tokens = experts(tp=2, sequence_parallel=True)
    assert [each.operation for each in by_tokens.tensor_forward] == ["all_gather", "reduce_scatter"]
    assert [each.operation for each in by_tokens.tensor_backward] == [
        "all_gather",
        "reduce_scatter",
    ]


# Chunks.


def parts(count):
    return tuple(Block(str(i), i, i + 1) for i in range(count))


def sizes(runs):
    return [run.last - run.first for run in runs]


@pytest.mark.parametrize(
    ("blocks", "chunks", "expected"),
    [(8, 4, [2, 2, 2, 2]), (7, 3, [3, 2, 2]), (3, 3, [1, 1, 1]), (5, 1, [5])],
)
def test_equal_blocks(blocks, chunks, expected):
    assert sizes(chunks_of_equal_blocks(parts(blocks), chunks)) == expected


def test_given_sizes():
    assert sizes(chunks_of_equal_blocks(parts(5), 2, (4, 1))) == [4, 1]
    for wrong in ((4, 2), (5, 0)):
        with pytest.raises(InputError):
            chunks_of_equal_blocks(parts(5), 2, wrong)
    for split in (chunks_of_equal_blocks, lambda p, c: balanced_chunks(p, [1.0] * 3, c)):
        split(parts(3), 3)
        with pytest.raises(InputError, match="3 blocks cannot fill 4"):
            split(parts(3), 4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 4))
@example([1, 1, 1, 9], 2)
@example([9, 1, 1, 1], 4)
def test_balanced_chunks_are_the_best_of_all(weights, chunks):
    if chunks > len(weights):
        return
    own = sizes(balanced_chunks(parts(len(weights)), weights, chunks))

    def heaviest(lengths):
        ends = list(itertools.accumulate(lengths))
        return max(sum(weights[a:b]) for a, b in zip([0, *ends], ends, strict=False))

    every = [
        [b - a for a, b in itertools.pairwise((0, *cuts, len(weights)))]
        for cuts in itertools.combinations(range(1, len(weights)), chunks - 1)
    ]
    assert heaviest(own) == min(heaviest(lengths) for lengths in every)


def test_chunks_by_cost_close_when_they_reach_their_share():
    """nanotron: chunk n closes with the block that reaches n times 4 of 12."""
    assert sizes(chunks_by_cost(parts(6), [2.0] * 6, 3)) == [2, 2, 2]
    assert sizes(chunks_by_cost(parts(5), [3.0, 3.0, 2.0, 2.0, 2.0], 3)) == [2, 1, 2]
    assert sizes(chunks_by_cost(parts(4), [1.0, 1.0, 1.0, 9.0], 2)) == [3, 1]
    with pytest.raises(InputError, match="leaves"):
        chunks_by_cost(parts(4), [0.1, 0.1, 0.1, 9.0], 4)
