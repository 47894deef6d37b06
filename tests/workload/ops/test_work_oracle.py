"""FLOP, memory traffic and kept tensors of each operation, counted by hand on small shapes.

FLOP of a GEMM (m x k)(k x n) are 2 m n k; the gradients of both operands cost as much again each
(Griewank and Walther 2008). Traffic lists every tensor that is read or written once;
what PyTorch keeps for backward is in ``tools/autograd/derivatives.yaml``.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from paceline.workload import ops
from paceline.workload.cost import Affine, Gemm
from paceline.workload.ops.work import Kept, Traffic, Work
from paceline.workload.precision import precision

NOTHING = Kept()


def gflop(gemms):
    """(fixed, per sample) FLOP."""
    return (
        sum(gemm.flops.fixed for gemm in gemms),
        sum(gemm.flops.per_sample for gemm in gemms),
    )


@dataclass(frozen=True)
class Expected:
    """Counts per sample; traffic as (activations, weights, weight gradients, other bytes)."""

    op: ops.Op
    shapes: tuple
    flops: tuple = (0, 0, 0)
    forward: tuple = (0, 0, 0, 0)
    backward: tuple = (0, 0, 0, 0)
    for_weights: tuple = (0, 0, 0, 0)
    kept: Kept = NOTHING
    kept_for_weights: Kept = NOTHING


def conv(*args, **keywords):
    return ops.Convolution(*args, **keywords)


CASES = {
    # 5 rows of 3 -> 4 features: 2*5*3*4 FLOP; reads 15, writes 20, weights 12 + 4.
    "linear": Expected(
        ops.Linear(4),
        ((5, 3),),
        (120, 120, 120),
        (35, 16, 0, 0),
        (35, 16, 0, 0),
        (35, 0, 16, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    "linear without bias": Expected(
        ops.Linear(4, bias=False),
        ((3,),),
        (24, 24, 24),
        (7, 12, 0, 0),
        (7, 12, 0, 0),
        (7, 0, 12, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    # 3 -> 8 channels, 3x3 window, 6x6 -> 6x6: 2*8*36*27 FLOP; 108 read, 288 written; 216 weights.
    "convolution": Expected(
        conv(8, (3, 3), (1, 1), (1, 1), (1, 1)),
        ((3, 6, 6),),
        (15552, 15552, 15552),
        (396, 216, 0, 0),
        (396, 216, 0, 0),
        (396, 0, 216, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    # Depthwise, stride 2, with bias: 4 channels, 5x5 -> 3x3: 2*4*9*9 FLOP; 36 + 4 weights.
    "depthwise convolution": Expected(
        conv(4, (3, 3), (2, 2), (1, 1), (1, 1), groups=4, bias=True),
        ((4, 5, 5),),
        (648, 648, 648),
        (136, 40, 0, 0),
        (136, 40, 0, 0),
        (136, 0, 40, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    # Transposed 2x2, stride 2: 3x3 -> 6x6, 4 -> 2 channels: every input times 2*4 weights.
    "transposed convolution": Expected(
        conv(2, (2, 2), (2, 2), (0, 0), (1, 1), transposed=True),
        ((4, 3, 3),),
        (576, 576, 576),
        (108, 32, 0, 0),
        (108, 32, 0, 0),
        (108, 0, 32, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    # 7 indices into 10 x 4: 28 read and written, 8 bytes an index; the dense gradient has 40.
    "embedding": Expected(
        ops.Embedding(10, 4),
        ((7,),),
        forward=(56, 0, 0, 56),
        for_weights=(56, 0, 40, 56),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    "sparse embedding": Expected(
        ops.Embedding(10, 4, sparse=True),
        ((7,),),
        forward=(56, 0, 0, 56),
        for_weights=(56, 0, 0, 56),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    "position embedding": Expected(
        ops.PositionEmbedding(9),
        ((5, 4),),
        forward=(40, 36, 0, 0),
        for_weights=(20, 0, 36, 0),
    ),
    # 5 x 4 copied behind one token of 4: 20 read, 24 written.
    "class token": Expected(
        ops.ClassToken(), ((5, 4),), forward=(44, 4, 0, 0), for_weights=(4, 0, 4, 0)
    ),
    # 2 batches of (3 x 4)(4 x 5): 2*2*3*4*5; reads 24 + 40, writes 30.
    "matrix product": Expected(
        ops.MatrixProduct(),
        ((2, 3, 4), (2, 4, 5)),
        (240, 0, 480),
        (94, 0, 0, 0),
        (188, 0, 0, 0),
        kept=Kept(inputs=(0, 1)),
    ),
    # 4 features of 3: the 4 x 4 square, of which a triangle is taken.
    "dot interaction": Expected(
        ops.DotInteraction(),
        ((4, 3),),
        (96, 0, 192),
        (56, 0, 0, 0),
        (80, 0, 0, 0),
        kept=Kept(inputs=(0,)),
    ),
    "relu": Expected(
        ops.Activation("relu"),
        ((6,),),
        forward=(12, 0, 0, 0),
        backward=(18, 0, 0, 0),
        kept=Kept(output=True),
    ),
    "gelu": Expected(
        ops.Activation("gelu"),
        ((6,),),
        forward=(12, 0, 0, 0),
        backward=(18, 0, 0, 0),
        kept=Kept(inputs=(0,)),
    ),
    "sum of three": Expected(ops.Add(), ((6,), (6,), (6,)), forward=(24, 0, 0, 0)),
    # 6 channels of 4 positions: reads 24 and 6, writes 24; backward reads 24, writes 6.
    "add per channel": Expected(
        ops.AddPerChannel(),
        ((6, 4), (6,)),
        forward=(54, 0, 0, 0),
        backward=(30, 0, 0, 0),
    ),
    # Each of 2 inputs is scaled (read, write) and read again by the sum, which writes one; in
    # backward each input is read, its gradient written, and the gradient read for both.
    "fused sum": Expected(
        ops.FusedSum(),
        ((6,), (6,)),
        forward=(42, 0, 0, 0),
        backward=(48, 0, 0, 0),
        kept=Kept(inputs=(0, 1)),
    ),
    "prelu": Expected(
        ops.Prelu(),
        ((3, 2),),
        forward=(12, 0, 0, 0),
        backward=(18, 0, 0, 0),
        for_weights=(12, 0, 0, 0),
        kept=Kept(inputs=(0,)),
    ),
    # Reads 24 and 6, writes 24. Backward: the gradient twice, both inputs, both gradients.
    "multiply per channel": Expected(
        ops.Multiply(),
        ((6, 4), (6,)),
        forward=(54, 0, 0, 0),
        backward=(108, 0, 0, 0),
        kept=Kept(inputs=(0, 1)),
    ),
    "dropout": Expected(
        ops.Dropout(0.1),
        ((6,),),
        forward=(12, 0, 0, 6),
        backward=(12, 0, 0, 6),
        kept=Kept(other_bytes=6),
    ),
    "dropout of nothing": Expected(ops.Dropout(0.0), ((6,),)),
    # 3 channels of 4: 3 passes over 12 forward, 5 backward; 2 weights and 2 statistics a channel.
    "batch norm": Expected(
        ops.BatchNorm(),
        ((3, 4),),
        forward=(36, 6, 0, 0),
        backward=(60, 6, 6, 0),
        kept=Kept(inputs=(0,), step_bytes=24),
    ),
    "frozen batch norm": Expected(
        ops.FrozenBatchNorm(), ((3, 4),), forward=(24, 0, 0, 0), backward=(24, 0, 0, 0)
    ),
    "group norm": Expected(
        ops.GroupNorm(2),
        ((4, 3),),
        forward=(36, 8, 0, 0),
        backward=(60, 8, 8, 0),
        kept=Kept(inputs=(0,), other_bytes=16),
    ),
    "layer norm": Expected(
        ops.LayerNorm(),
        ((5, 4),),
        forward=(60, 8, 0, 0),
        backward=(100, 8, 8, 0),
        kept=Kept(inputs=(0,), other_bytes=40),
    ),
    "layer norm without shift": Expected(
        ops.LayerNorm(bias=False),
        ((5, 4),),
        forward=(60, 4, 0, 0),
        backward=(100, 4, 4, 0),
        kept=Kept(inputs=(0,), other_bytes=40),
    ),
    "rms norm": Expected(
        ops.RmsNorm(),
        ((5, 4),),
        forward=(60, 4, 0, 0),
        backward=(100, 4, 4, 0),
        kept=Kept(inputs=(0,), other_bytes=20),
    ),
    "local response norm": Expected(
        ops.LocalResponseNorm(5),
        ((3, 4),),
        forward=(36, 0, 0, 0),
        backward=(60, 0, 0, 0),
        kept=Kept(inputs=(0,), elements=12),
    ),
    # 2 channels, 4x4 -> 2x2: 32 read, 8 written, 8 indices of 8 bytes.
    "max pool": Expected(
        ops.MaxPool((2, 2), (2, 2), (0, 0)),
        ((2, 4, 4),),
        forward=(40, 0, 0, 64),
        backward=(40, 0, 0, 64),
        kept=Kept(inputs=(0,), other_bytes=64),
    ),
    "average pool": Expected(
        ops.AveragePool((2, 2), (2, 2), (0, 0)),
        ((2, 4, 4),),
        forward=(40, 0, 0, 0),
        backward=(40, 0, 0, 0),
        kept=Kept(inputs=(0,)),
    ),
    "global average pool": Expected(
        ops.GlobalAveragePool(), ((2, 4, 4),), forward=(34, 0, 0, 0), backward=(34, 0, 0, 0)
    ),
    # 3 tokens x 5 classes: 15 scores read, 15 log-probabilities of 4 bytes, 3 targets of 8.
    "cross entropy": Expected(
        ops.CrossEntropy(),
        ((3, 5), (3,)),
        forward=(15, 0, 0, 84),
        backward=(15, 0, 0, 84),
        kept=Kept(inputs=(1,), other_bytes=60),
    ),
    "focal loss": Expected(
        ops.FocalLoss(),
        ((3, 5), (3,)),
        forward=(15, 0, 0, 144),
        backward=(15, 0, 0, 144),
        kept=Kept(inputs=(0, 1), other_bytes=60),
    ),
    "weighted sum": Expected(ops.WeightedSum((1.0, 0.3)), ((), ())),
    "elementwise loss": Expected(
        ops.ElementwiseLoss("smooth_l1"),
        ((6,), (6,)),
        forward=(12, 0, 0, 0),
        backward=(18, 0, 0, 0),
        kept=Kept(inputs=(0, 1)),
    ),
    # 6 frames x 4 classes, 2 labels: 24 scores; alignments over 2*2 + 1 = 5 states, 30 in all.
    "ctc loss": Expected(
        ops.CtcLoss(),
        ((6, 4), (2,)),
        forward=(24, 0, 0, 216),
        backward=(24, 0, 0, 432),
        kept=Kept(inputs=(1,), other_bytes=216),
    ),
    "rotary": Expected(ops.Rotary(4), ((5, 8),), forward=(80, 0, 0, 0), backward=(80, 0, 0, 0)),
    # 2 heads of 4, 3 queries, 5 keys: 2*3*5*4*2 FLOP twice; 24 + 40 + 40 + 24 elements.
    "fused attention": Expected(
        ops.Attention(2, 2, 4),
        ((3, 8), (5, 8), (5, 8)),
        (480, 0, 960),
        (128, 0, 0, 0),
        (256, 0, 0, 0),
        kept=Kept((0, 1, 2), True, other_bytes=24),
    ),
    # 30 scores: 4 passes forward, 7 backward.
    "unfused attention": Expected(
        ops.Attention(2, 2, 4, fused=False),
        ((3, 8), (5, 8), (5, 8)),
        (480, 0, 960),
        (248, 0, 0, 0),
        (466, 0, 0, 0),
        kept=Kept((0, 1, 2), elements=30),
    ),
    # 4 query heads on 2 key-value heads, values of 6: scores 2*3*5*4*4, result 2*3*6*5*4.
    "grouped attention": Expected(
        ops.Attention(4, 2, 4, value_dim=6, sinks=True, relative_buckets=8),
        ((3, 16), (5, 8), (5, 12)),
        (480 + 720, 0, 2 * 480 + 2 * 720),
        (48 + 40 + 60 + 72, 4 + 32, 0, 0),
        (2 * 220, 36, 36, 0),
        kept=Kept((0, 1, 2), True, other_bytes=48),
    ),
    # Values and step sizes 5 x 4, B and C 5 x 3: 20 + 20 + 15 + 15 read, 20 written.
    "selective scan": Expected(
        ops.SelectiveScan(),
        ((5, 4), (5, 4), (5, 3), (5, 3)),
        (120, 0, 240),
        (90, 16, 0, 0),
        (180, 16, 16, 0),
        kept=Kept(inputs=(0, 1, 2, 3)),
    ),
    "causal convolution": Expected(
        ops.CausalConvolution(4),
        ((5, 3),),
        (120, 120, 120),
        (30, 15, 0, 0),
        (30, 15, 0, 0),
        (30, 0, 15, 0),
        kept_for_weights=Kept(inputs=(0,)),
    ),
    "upsample": Expected(
        ops.Upsample(2), ((3, 2, 2),), forward=(60, 0, 0, 0), backward=(60, 0, 0, 0)
    ),
    # 2 boxes, 3 channels, 2 x 2 positions = 24; 4 points of 4 neighbours each = 384 reads.
    "roi align": Expected(
        ops.RoiAlign((2, 2), 2),
        ((2, 4), (3, 8, 8), (3, 4, 4)),
        forward=(24 + 384, 0, 0, 32),
        backward=(24 + 768 + 240, 0, 0, 32),
        kept=Kept(inputs=(0,)),
    ),
    "expand": Expected(ops.Expand(1, 5), ((7, 1, 3),), backward=(6 * 21, 0, 0, 0)),
    "concatenate": Expected(ops.Concatenate(0), ((3, 4), (2, 4)), forward=(40, 0, 0, 0)),
    # 4 x 5 x 5 strided to 3 x 3: 36 read, 72 written; backward writes all 100.
    "padded shortcut": Expected(
        ops.PadShortcut(8, 2), ((4, 5, 5),), forward=(108, 0, 0, 0), backward=(136, 0, 0, 0)
    ),
    "flatten": Expected(ops.Flatten(), ((3, 4),)),
}


@pytest.mark.parametrize("name", CASES)
def test_work_by_hand(name):
    case = CASES[name]
    work = case.op.work(case.shapes, True)
    found = [gflop(work.forward), gflop(work.weight_gradient), gflop(work.input_gradient)]
    assert [sum(pair) for pair in found] == list(case.flops)
    assert work.forward_traffic == Traffic(*case.forward)
    assert work.backward_traffic == Traffic(*case.backward)
    assert work.weight_gradient_traffic == Traffic(*case.for_weights)
    assert work.kept == case.kept
    assert work.kept_for_weights == case.kept_for_weights


@pytest.mark.parametrize("name", ["linear", "convolution", "matrix product", "fused attention"])
def test_no_input_gradient_before_the_first_weights(name):
    case = CASES[name]
    work = case.op.work(case.shapes, False)
    assert gflop(work.input_gradient) == (0, 0)
    assert [sum(gflop(part)) for part in (work.forward, work.weight_gradient)] == [*case.flops[:2]]
    if case.kept_for_weights != Kept():
        assert work.backward_traffic == Traffic()


def test_frozen_weights_keep_and_compute_nothing_for_themselves():
    work = ops.Linear(4).work(((5, 3),), True).without_weight_gradient()
    assert work.weight_gradient == ()
    assert work.weight_gradient_traffic == Traffic()
    assert work.kept_for_weights == Kept()
    norm = ops.LayerNorm().work(((5, 4),), True).without_weight_gradient()
    assert norm.backward_traffic == Traffic(100, 8, 0, 0)


def test_bytes_of_traffic_by_precision():
    """Mixed precision: 16-bit operands and activations, 32-bit gradients; indices as they are."""
    moved = Traffic(activations=10, weights=3, weight_gradients=2, other_bytes=7)
    assert moved.size(precision("fp32")) == Affine(20, 47)
    assert moved.size(precision("bf16")) == Affine(10, 27)
    widths = precision("amp_fp16")
    assert (widths.operand_bytes, widths.gradient_bytes, widths.activation_bytes) == (2, 4, 2)
    assert moved.size(widths) == Affine(14, 27)
    assert moved + Traffic(1, 2, 3, 4) == Traffic(11, 5, 5, 11)


# Recurrent layers, experts and clustered vocabularies.


def test_lstm_of_two_layers_in_both_directions():
    """5 tokens of 3 features, hidden 2: 8 gates; the second layer reads 4 features."""
    lstm = ops.Lstm(2, layers=2, bidirectional=True)
    work = lstm.work(((5, 3),), True)
    first, second, state = 2 * 8 * 5 * 3 * 2, 2 * 8 * 5 * 4 * 2, 2 * 8 * 5 * 2 * 2
    forward = first + second + 2 * state
    assert sum(gflop(work.forward)) == sum(gflop(work.weight_gradient)) == forward
    assert sum(gflop(work.input_gradient)) == forward
    alone = lstm.work(((5, 3),), False)
    assert sum(gflop(alone.input_gradient)) == forward - first
    weights = 2 * (8 * 3 + 8 * 2 + 16) + 2 * (8 * 4 + 8 * 2 + 16)
    states = 5 * 2 * 2 * 2
    assert work.forward_traffic == Traffic(15 + 12 * states, weights)
    assert work.backward_traffic == Traffic(2 * (15 + 12 * states), weights, weights)
    # Gates and cell of every state, and the 20 results of the first layer.
    assert work.kept == Kept((0,), True, elements=5 * states + 20)
    assert lstm.output(((5, 3),)) == (5, 4)


def test_experts_by_hand():
    """6 tokens of 4, 2 of 3 experts each, hidden 5: 12 routed tokens, 4 to each expert."""
    moe = ops.MixtureOfExperts(experts=3, top_k=2, hidden=5)
    work = moe.work(((6, 4),), True)
    router, into, out = 2 * 6 * 4 * 3, 2 * 12 * 4 * 5 * 2, 2 * 12 * 5 * 4
    assert sum(gflop(work.forward)) == router + into + out
    assert sum(gflop(work.weight_gradient)) == sum(gflop(work.input_gradient))
    assert sum(gflop(work.input_gradient)) == router + into + out
    weights = 3 * 4 + 3 * 3 * 5 * 4
    # Input and output; a routed token is copied in and out (read, write each) and passes 20 wide.
    assert work.forward_traffic == Traffic(48 + 12 * (16 + 40), weights)
    assert work.backward_traffic == Traffic(2 * (48 + 12 * 56), weights, weights)
    assert work.kept == Kept((0,), elements=12 * (4 + 20) + 6 * 6, operands=12 * (4 + 5))
    plain = ops.MixtureOfExperts(experts=3, top_k=2, hidden=5, gated=False).work(((6, 4),), True)
    assert sum(gflop(plain.forward)) == router + into // 2 + out


def test_state_space_dual_by_hand():
    """8 tokens in 2 chunks of 4; 2 heads of 3, 1 group of state 5."""
    dual = ops.StateSpaceDual(heads=2, groups=1, state=5, chunk=4)
    work = dual.work(((8, 6), (8, 2), (8, 5), (8, 5)), True)
    per_chunk = 2 * 4 * 4 * 5 + 2 * (2 * 4 * 3 * 4 + 2 * 5 * 3 * 4 + 2 * 4 * 3 * 5)
    assert sum(gflop(work.forward)) == 2 * per_chunk
    assert sum(gflop(work.input_gradient)) == 4 * per_chunk
    assert work.kept == Kept(inputs=(0, 1, 2, 3))
    # Inputs are read by two kernels; states are written, read, written and read in 32 bits, scores
    # of 4 tokens with 4 written and read.
    moved = 2 * (48 + 16 + 40 + 40) + 48
    states, scores = 4 * (2 * 5 * 6), 2 * (8 * 4)
    assert work.forward_traffic == Traffic(moved, 6, 0, 4 * (states + scores))
    assert work.backward_traffic == Traffic(3 * moved, 6, 6, 4 * (2.5 * states + 2 * scores))


def test_additive_attention_by_hand():
    """2 queries, 3 keys, width 4: two projections, 6 scores of 4, 2 contexts over 3 keys."""
    work = ops.AdditiveAttention(4).work(((2, 4), (3, 4)), True)
    projections, scores, contexts = 2 * 16 * 5, 2 * 6 * 4, 2 * 2 * 4 * 3
    assert sum(gflop(work.forward)) == projections + scores + contexts
    assert sum(gflop(work.weight_gradient)) == projections + scores
    assert sum(gflop(work.input_gradient)) == projections + scores + 2 * contexts
    weights = 16 + 16 + 4 + 1 + 4
    assert work.forward_traffic == Traffic(3 * 20 + 4 * 24, weights)
    assert work.backward_traffic == Traffic(6 * 20 + 6 * 24, weights, weights)
    assert work.kept == Kept((0, 1), elements=20 + 6 * 5)


def test_relative_attention_by_hand():
    """1 head of 4, 2 queries, 3 keys: scores by content and position, and the result."""
    work = ops.RelativeAttention(1, 4).work(((2, 4), (3, 4), (3, 4)), True)
    one = 2 * 2 * 3 * 4
    assert gflop(work.forward) == (2 * 16 * 3, 3 * one)
    assert gflop(work.weight_gradient) == (2 * 16 * 3, 0)
    assert gflop(work.input_gradient) == (0, 6 * one)
    weights, moved = 16 + 8, 8 + 12 + 12 + 8
    assert work.forward_traffic == Traffic(moved + 6 * 6, weights)
    assert work.backward_traffic == Traffic(2 * moved + 9 * 6, weights, weights)
    assert work.kept == Kept((0, 1, 2), elements=6)


def zipf(vocabulary, first, last):
    """Share of running text of ranks first..last (excluded), by the sum itself."""
    weights = 1.0 / np.arange(1, vocabulary + 1)
    return weights[first:last].sum() / weights.sum()


def test_adaptive_embedding_by_hand():
    """2000 tokens in clusters of 400 and 1600, 8 and 2 wide; narrow rows are widened to 8."""
    op = ops.AdaptiveEmbedding(2000, 8, (400,), shrink=4)
    work = op.work(((10,),), True)
    common, rare = zipf(2000, 0, 400), zipf(2000, 400, 2000)
    flops = 2 * 10 * 8 * (8 * common + 2 * rare)
    for part in (work.forward, work.weight_gradient, work.input_gradient):
        assert sum(gflop(part)) == pytest.approx(flops, rel=1e-5)
    weights = 400 * 8 + 1600 * 2 + 64 + 16
    assert work.forward_traffic == Traffic(240, other_bytes=80)
    assert work.backward_traffic == Traffic(240, weight_gradients=weights)
    assert work.kept == Kept((0,), elements=80)
    flat = ops.AdaptiveEmbedding(2000, 8, (400,)).work(((10,),), True)
    assert (flat.forward, flat.kept) == ((), Kept((0,)))


def test_adaptive_softmax_by_hand():
    op = ops.AdaptiveCrossEntropy(2000, 8, (400,), shrink=4)
    work = op.work(((10, 8), (10,)), True)
    rare = 10 * zipf(2000, 400, 2000)
    head = 2 * 10 * 8 * 8 + 2 * 10 * 401 * 8
    tail = 2 * rare * 8 * 2 + 2 * rare * 1600 * 2
    for part in (work.forward, work.weight_gradient, work.input_gradient):
        assert sum(gflop(part)) == pytest.approx(head + tail, rel=1e-5)
    scores = 10 * 401 + rare * 1600
    weights = 400 * 8 + 1600 * 2 + 64 + 16 + 8 + 1 + 2000
    forward, backward = work.forward_traffic, work.backward_traffic
    assert forward.activations == pytest.approx(80 + 2 * scores, rel=1e-5)
    assert backward.activations == pytest.approx(160 + 2 * scores, rel=1e-5)
    assert forward.other_bytes == backward.other_bytes == pytest.approx(4 * scores, rel=1e-5)
    assert (forward.weights, forward.weight_gradients) == (weights, 0)
    assert (backward.weights, backward.weight_gradients) == (weights, weights)
    assert work.kept.inputs == (0, 1)
    assert work.kept.elements == 80
    assert work.kept.other_bytes == pytest.approx(4 * scores, rel=1e-5)


# Parts of GEMMs that kernels execute.


@pytest.mark.parametrize(
    ("tokens", "window", "share"),
    [
        (128, 0, 1.0),  # one tile
        (256, 0, 0.75),  # 3 of 4 tiles
        (1024, 0, 36 / 64),
        (1024, 1024, 36 / 64),
        (1024, 256, 21 / 64 + 0.0),  # tiles on the diagonal and two below, less the corner
    ],
)
def test_masked_tiles_of_fused_attention(tokens, window, share):
    """Tiles of 128 x 128 that hold a score (FlashAttention-2, Dao 2023)."""
    tiles = tokens // 128
    back = (window or tokens) // 128
    counted = sum(1 for row in range(tiles) for column in range(tiles) if 0 <= row - column <= back)
    assert counted / tiles**2 == pytest.approx(share, abs=0.05)
    shape = (tokens, 64)
    op = ops.Attention(1, 1, 64, causal=True, window=window)
    forward, *_ = op.work((shape, shape, shape), True).forward
    assert float(forward.executed) == pytest.approx(share, abs=0.06 if window else 1e-9)
    backward, *_ = op.work((shape, shape, shape), True).input_gradient
    # Scores are computed again: five GEMMs for four.
    assert backward.executed == pytest.approx(1.25 * forward.executed)


def test_attention_without_mask_executes_everything():
    work = ops.Attention(1, 1, 64).work(((300, 64),) * 3, True)
    assert {gemm.executed for gemm in work.forward} == {1.0}
    assert {gemm.executed for gemm in work.input_gradient} == {1.25}


def test_scan_executes_nine_flop_for_two_counted():
    """Mamba, Gu and Dao 2023: decay, input, sum and product, 9 per state element."""
    work = ops.SelectiveScan().work(((5, 4), (5, 4), (5, 3), (5, 3)), True)
    assert [gemm.executed for gemm in work.forward] == [4.5]
    assert [gemm.executed for gemm in work.input_gradient] == [6.75, 6.75]


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({}, 3),
        ({"stride": (2, 2)}, 0),
        ({"stride": (2, 1)}, 0),
        ({"dilation": (2, 2)}, 0),
        ({"groups": 2}, 0),
        ({"transposed": True}, 0),
        ({"kernel": (3, 1), "padding": (1, 0)}, 0),
    ],
)
def test_windows_that_winograd_may_use(changes, window):
    fields = {"kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
    op = ops.Convolution(4, **{**fields, **changes})
    (gemm,) = op.work(((4, 8, 8),), True).forward
    assert gemm.window == window


@pytest.mark.parametrize(
    ("gemm_grows", "expected"),
    [
        ("n", (2, 9, 4, 5)),
        ("k", (2, 3, 12, 5)),
        ("count", (2, 3, 4, 15)),
        ("nothing", (2, 3, 4, 5)),
    ],
)
def test_gemm_of_a_batch(gemm_grows, expected):
    gemm = Gemm(2, 3, 4, 5, gemm_grows)
    three = gemm.at(3)
    assert (three.m, three.n, three.k, three.count) == expected
    flops = 2 * 2 * 3 * 4 * 5
    assert gemm.flops == (Affine(flops, 0) if gemm_grows == "nothing" else Affine(0, flops))


def test_work_of_views_is_empty():
    for op, shape in (
        (ops.Flatten(), (3, 4)),
        (ops.Reshape((4, 3)), (3, 4)),
        (ops.Transpose((1, 0)), (3, 4)),
        (ops.Slice(0, 0, 2), (3, 4)),
    ):
        assert op.is_view
        assert op.work((shape,), True) == Work()
    assert ops.Expand(0, 2).is_view
    assert not ops.Concatenate(0).is_view
    assert not ops.Activation("relu").is_view
