"""Operations one by one: shapes, weights and products that can be counted by hand."""

import math

import pytest

from paceline.errors import InputError, PacelineError
from paceline.workload import ops
from paceline.workload.ops.adaptive import cluster_shares, cluster_sizes
from paceline.workload.ops.base import OPS, count_parameters, operation
from paceline.workload.ops.codec import op_from_fields


def flops(gemms):
    return sum(gemm.flops.fixed + gemm.flops.per_sample for gemm in gemms)


def test_attention_is_two_products_forward_and_four_backward():
    attention = ops.Attention(heads=4, kv_heads=2, head_dim=8)
    shapes = ((10, 32), (6, 16), (6, 16))
    work = attention.work(shapes, True)
    one = 2 * 4 * 10 * 6 * 8
    assert attention.output(shapes) == (10, 32)
    assert flops(work.forward) == 2 * one
    assert flops(work.input_gradient) == 4 * one


@pytest.mark.parametrize(
    "shapes",
    [((10, 32), (6, 32), (6, 16)), ((10, 30), (6, 16), (6, 16)), ((5, 32), (6, 16), (7, 16))],
)
def test_attention_refuses_tokens_that_do_not_fit_its_heads(shapes):
    with pytest.raises(InputError):
        ops.Attention(heads=4, kv_heads=2, head_dim=8).output(shapes)


def test_an_lstm_has_pytorch_s_weights_and_runs_tokens_one_after_another():
    lstm = ops.Lstm(hidden=5, layers=2, bidirectional=True)
    shapes = ((7, 3),)
    weights = lstm.parameters(shapes)
    assert lstm.output(shapes) == (7, 10)
    assert weights["weight_ih_l0"] == (20, 3)
    assert weights["weight_ih_l1_reverse"] == (20, 10)
    assert count_parameters(weights) == 2 * 20 * (3 + 5 + 2) + 2 * 20 * (10 + 5 + 2)
    work = lstm.work(shapes, True)
    assert flops(work.forward) == 2 * 7 * 2 * 20 * (3 + 5) + 2 * 7 * 2 * 20 * (10 + 5)
    assert {gemm.count for gemm in work.forward} == {2, 14}
    assert flops(work.weight_gradient) == flops(work.input_gradient) == flops(work.forward)


def test_an_lstm_on_data_still_propagates_through_time():
    lstm = ops.Lstm(hidden=5)
    alone = flops(lstm.work(((7, 3),), False).input_gradient)
    assert alone == 2 * 7 * 20 * 5


def test_experts_compute_for_the_chosen_and_store_all():
    moe = ops.MixtureOfExperts(experts=8, top_k=2, hidden=12)
    shapes = ((16, 4),)
    assert count_parameters(moe.parameters(shapes)) == 8 * 4 + 3 * 8 * 12 * 4
    chosen = 16 * 2 * 3 * 2 * 12 * 4
    assert flops(moe.work(shapes, True).forward) == chosen + 2 * 16 * 8 * 4


def test_biases_of_experts_are_one_number_for_each_row():
    shapes = ops.MixtureOfExperts(experts=3, top_k=1, hidden=5, bias=True).parameters(((4, 2),))
    assert shapes["router_bias"] == (3,)
    assert shapes["gate_bias"] == shapes["up_bias"] == (3, 5)
    assert shapes["down_bias"] == (3, 2)


def test_chunks_of_a_state_space_are_counted_as_their_four_products():
    dual = ops.StateSpaceDual(heads=4, groups=2, state=3, chunk=8)
    shapes = ((32, 20), (32, 4), (32, 6), (32, 6))
    work = dual.work(shapes, True)
    within = 2 * 8 * 8 * (3 * 2 + 5 * 4)
    states = 2 * 2 * 8 * 3 * 5 * 4
    assert flops(work.forward) == 4 * (within + states)
    assert flops(work.input_gradient) == 2 * flops(work.forward)
    alone = dual.work(tuple((5, width) for _, width in shapes), True)
    assert {gemm.m for gemm in alone.forward} == {5, 3}


def test_experts_whose_load_is_not_whole_still_add_up():
    moe = ops.MixtureOfExperts(experts=3, top_k=1, hidden=2, gated=False)
    assert flops(moe.work(((4, 5),), True).forward) == pytest.approx(2 * 4 * (3 * 5 + 2 * 2 * 5))


def test_clusters_of_a_vocabulary_cover_it_and_all_text():
    sizes = cluster_sizes(1000, (100, 300))
    assert sizes == [100, 200, 700]
    shares = cluster_shares(1000, (100, 300))
    assert math.fsum(shares) == pytest.approx(1)
    assert shares[0] == pytest.approx(
        sum(1 / k for k in range(1, 101)) / sum(1 / k for k in range(1, 1001)), rel=1e-4
    )


def test_a_projection_of_positions_does_not_grow_with_the_batch():
    attention = ops.RelativeAttention(heads=2, head_dim=4)
    work = attention.work(((5, 8), (9, 8), (9, 8)), True)
    fixed = sum(gemm.flops.fixed for gemm in work.forward)
    assert fixed == 2 * 8 * 8 * 9
    assert sum(gemm.flops.per_sample for gemm in work.forward) == 3 * 2 * 2 * 5 * 9 * 4


@pytest.mark.parametrize(
    ("op", "shapes", "output"),
    [
        (ops.Flatten(), ((3, 4, 5),), (60,)),
        (ops.Flatten(1), ((3, 4, 5),), (3, 20)),
        (ops.Reshape((-1, 6)), ((3, 4, 5),), (10, 6)),
        (ops.Transpose((2, 0, 1)), ((3, 4, 5),), (5, 3, 4)),
        (ops.Slice(-1, 1, 3), ((3, 4, 5),), (3, 4, 2)),
        (ops.Concatenate(0), ((3, 4), (2, 4)), (5, 4)),
        (ops.PadShortcut(8, 2), ((4, 5, 5),), (8, 3, 3)),
        (ops.GlobalAveragePool(), ((8, 3, 3),), (8,)),
        (ops.ClassToken(), ((9, 4),), (10, 4)),
        (ops.Multiply(), ((8, 3, 3), (8,)), (8, 3, 3)),
        (ops.Embedding(10, 4), ((7,),), (7, 4)),
        (ops.Rotary(4), ((7, 8),), (7, 8)),
        (ops.Expand(1, 5), ((7, 1, 3),), (7, 5, 3)),
        (ops.Attention(2, 2, 6, value_dim=4), ((7, 12), (7, 12), (7, 8)), (7, 8)),
        (ops.CausalConvolution(4), ((7, 8),), (7, 8)),
        (ops.SelectiveScan(), ((7, 8), (7, 8), (7, 3), (7, 3)), (7, 8)),
        (ops.StateSpaceDual(4, 2, 3, 4), ((7, 8), (7, 4), (7, 6), (7, 6)), (7, 8)),
        (ops.WeightedSum((1.0, 0.3)), ((), ()), ()),
    ],
)
def test_shapes_follow(op, shapes, output):
    assert op.output(shapes) == output


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (ops.Reshape((7, -1)), ((3, 4),)),
        (ops.Transpose((0, 0)), ((3, 4),)),
        (ops.Slice(0, 1, 9), ((3, 4),)),
        (ops.Concatenate(0), ((3, 4), (2, 5))),
        (ops.PadShortcut(2, 2), ((4, 5, 5),)),
        (ops.Multiply(), ((8, 3), (7,))),
        (ops.CrossEntropy(), ((10, 5), (9,))),
        (ops.GroupNorm(3), ((8, 2, 2),)),
        (ops.Rotary(3), ((7, 8),)),
        (ops.Expand(0, 5), ((7, 1, 3),)),
        (ops.CausalConvolution(4), ((7, 8, 2),)),
        (ops.SelectiveScan(), ((7, 8), (7, 9), (7, 3), (7, 3))),
        (ops.SelectiveScan(), ((7, 8), (6, 8), (7, 3), (7, 3))),
        (ops.StateSpaceDual(4, 2, 3, 4), ((7, 8), (7, 4), (7, 6), (7, 5))),
        (ops.StateSpaceDual(3, 1, 3, 4), ((7, 8), (7, 3), (7, 3), (7, 3))),
        (ops.Lstm(4), ((8,),)),
        (ops.ElementwiseLoss("smooth_l1"), ((8,), (9,))),
        (ops.WeightedSum((1.0,)), ((3,),)),
        (ops.CtcLoss(), ((10, 5), (11,))),
        (ops.CtcLoss(), ((10,), (3,))),
        (ops.MaxPool((3, 3), (1, 1), (0, 0)), ((4, 2, 2),)),
        (ops.Linear(3), ((),)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(op, shapes):
    with pytest.raises(InputError):
        op.output(shapes)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("dropout", {"probability": 1.0}),
        ("activation", {"function": "rleu"}),
        ("reshape", {"shape": [-1, -1]}),
        ("slice", {"axis": 0, "start": 3, "stop": 3}),
        ("moe", {"experts": 2, "top_k": 3, "hidden": 4}),
        ("attention", {"heads": 2, "kv_heads": 2, "head_dim": 4, "window": 3}),
        ("attention", {"heads": 2, "kv_heads": 2, "head_dim": 4, "value_dim": -1}),
        ("state_space_dual", {"heads": 3, "groups": 2, "state": 4, "chunk": 8}),
        ("adaptive_embedding", {"vocabulary": 10, "width": 4, "cutoffs": [5, 3]}),
        ("elementwise_loss", {"function": "hinge"}),
        ("max_pool", {"kernel": [2, 2], "stride": [2, 2], "padding": [-1, 0]}),
        ("linear", {"out_features": True}),
    ],
)
def test_settings_that_cannot_be_are_refused(kind, fields):
    with pytest.raises(PacelineError):
        op_from_fields(kind, fields)


def test_a_second_operation_of_one_kind_is_refused():
    with pytest.raises(ValueError, match="'linear' is already registered"):
        operation("linear")(OPS["linear"])


def test_dropout_of_nothing_is_nothing():
    assert ops.Dropout(0.0).is_view
    assert ops.Dropout(0.0).work(((8,),), True).forward_traffic.activations == 0
    assert ops.Dropout(0.5).work(((8,),), True).kept.other_bytes == 8
