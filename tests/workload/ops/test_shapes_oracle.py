"""Shapes, parameters and rejected settings of operations.

Sizes of windows follow the formulas in the documentation of ``torch.nn.Conv2d``,
``ConvTranspose2d`` and ``MaxPool2d``; parameter shapes those of the modules of ``torch.nn``.
"""

import itertools
import math

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.workload import Graph, InputSpec, Node, ops
from paceline.workload.cost import Affine
from paceline.workload.ops.base import count_parameters
from paceline.workload.ops.dimensions import (
    describe,
    differs,
    elements,
    even_share,
    exceeds,
    fixed_dimension,
    same_shape,
)

WINDOWS = list(itertools.product((7, 8), (1, 2, 3), (1, 2, 3), (0, 1), (1, 2)))


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"), WINDOWS)
def test_convolution_positions(size, kernel, stride, padding, dilation):
    op = ops.Convolution(5, (kernel,), (stride,), (padding,), (dilation,))
    expected = math.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1)
    assert op.output(((2, size),)) == (5, expected)


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"), WINDOWS)
@pytest.mark.parametrize("extra", [(), (1,)])
def test_transposed_positions(size, kernel, stride, padding, dilation, extra):
    op = ops.Convolution(
        5, (kernel,), (stride,), (padding,), (dilation,), transposed=True, output_padding=extra
    )
    out = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + sum(extra) + 1
    assert op.output(((2, size),)) == (5, out)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    list(itertools.product((5, 6, 7, 8), (2, 3), (1, 2, 3), (0, 1))),
)
@pytest.mark.parametrize("ceil", [False, True])
def test_pooled_positions(size, kernel, stride, padding, ceil):
    """Windows are counted one by one; with ceil_mode the last may be partial."""
    ends = size + 2 * padding
    counted = sum(1 for start in range(0, ends, stride) if start + kernel <= ends)
    if ceil:
        last = counted * stride
        partial = (ends - kernel) % stride != 0
        counted += partial and last < size + padding
    op = ops.MaxPool((kernel,), (stride,), (padding,), ceil)
    assert op.output(((3, size),)) == (3, counted)


@pytest.mark.parametrize(
    ("op", "shapes", "parameters"),
    [
        (ops.Linear(4), ((7, 3),), {"weight": (4, 3), "bias": (4,)}),
        (ops.Linear(4, bias=False), ((7, 3),), {"weight": (4, 3)}),
        (ops.PositionEmbedding(9), ((5, 4),), {"weight": (9, 4)}),
        (ops.ClassToken(), ((5, 4),), {"weight": (1, 4)}),
        (ops.FusedSum(), ((5,), (5,), (5,)), {"weight": (3,)}),
        (ops.Prelu(), ((6, 2),), {"weight": (6,)}),
        (ops.BatchNorm(), ((6, 2),), {"weight": (6,), "bias": (6,)}),
        (ops.FrozenBatchNorm(), ((6, 2),), {}),
        (ops.LayerNorm(), ((6, 2),), {"weight": (2,), "bias": (2,)}),
        (ops.LayerNorm(bias=False), ((6, 2),), {"weight": (2,)}),
        (ops.RmsNorm(), ((6, 2),), {"weight": (2,)}),
        (ops.CausalConvolution(4), ((5, 3),), {"weight": (3, 4), "bias": (3,)}),
        (
            ops.Convolution(6, (3, 5), (1, 1), (0, 0), (1, 1), groups=2, bias=True),
            ((4, 9, 9),),
            {"weight": (6, 2, 3, 5), "bias": (6,)},
        ),
        (
            ops.Convolution(6, (3, 5), (1, 1), (0, 0), (1, 1), groups=2, transposed=True),
            ((4, 9, 9),),
            {"weight": (4, 3, 3, 5)},
        ),
        (
            ops.SelectiveScan(),
            ((5, 4), (5, 4), (5, 3), (5, 3)),
            {"decay": (4, 3), "direct": (4,)},
        ),
        (ops.Attention(2, 1, 4, sinks=True), ((3, 8), (3, 4), (3, 4)), {"sinks": (2,)}),
        (
            ops.Attention(2, 1, 4, relative_buckets=32),
            ((3, 8), (3, 4), (3, 4)),
            {"distances": (32, 2)},
        ),
        (
            ops.AdaptiveEmbedding(100, 16, (10, 40), shrink=2),
            ((7,),),
            {
                "rows_0": (10, 16),
                "projection_0": (16, 16),
                "rows_1": (30, 8),
                "projection_1": (16, 8),
                "rows_2": (60, 4),
                "projection_2": (16, 4),
            },
        ),
        (
            ops.AdaptiveCrossEntropy(100, 16, (10, 40)),
            ((7, 16), (7,)),
            {
                "rows_0": (10, 16),
                "rows_1": (30, 16),
                "rows_2": (60, 16),
                "cluster_weight": (2, 16),
                "cluster_bias": (2,),
                "bias": (100,),
            },
        ),
    ],
)
def test_parameters(op, shapes, parameters):
    assert op.parameters(shapes) == parameters
    count = sum(math.prod(shape) for shape in parameters.values())
    assert count_parameters(op.parameters(shapes)) == count
    assert op.gradient_elements(shapes) == Affine(count, 0)
    assert op.frozen_parameters(shapes) == {}


def test_lstm_parameters_as_in_torch():
    shapes = ops.Lstm(3, layers=2, bidirectional=True).parameters(((5, 7),))
    assert len(shapes) == 16
    assert shapes["weight_ih_l0"] == shapes["weight_ih_l0_reverse"] == (12, 7)
    assert shapes["weight_ih_l1"] == shapes["weight_ih_l1_reverse"] == (12, 6)
    assert shapes["weight_hh_l1_reverse"] == (12, 3)
    assert shapes["bias_ih_l0"] == shapes["bias_hh_l1"] == (12,)
    plain = ops.Lstm(3, bias=False).parameters(((5, 7),))
    assert plain == {"weight_ih_l0": (12, 7), "weight_hh_l0": (12, 3)}


def test_gradients_of_a_sparse_embedding_are_the_rows_looked_up():
    op = ops.Embedding(100, 4, sparse=True)
    assert op.gradient_elements(((7,),)) == Affine(0, 28)
    assert ops.Embedding(100, 4).gradient_elements(((7,),)) == Affine(400, 0)


@pytest.mark.parametrize(
    ("op", "fits", "too_much"),
    [
        (ops.PositionEmbedding(9), ((9, 4),), ((10, 4),)),
        (ops.Slice(0, 1, 3), ((3, 4),), ((2, 4),)),
        (ops.CtcLoss(), ((10, 5), (10,)), ((10, 5), (11,))),
        (ops.MaxPool((3,), (1,), (1,)), ((4, 1),), ((4, 0),)),
        (ops.PadShortcut(4), ((4, 5),), ((5, 5),)),
        (ops.GroupNorm(2), ((4, 5),), ((3, 5),)),
        (ops.Rotary(4), ((5, 8),), ((5, 6),)),
        (ops.Lstm(4), ((5, 3), (4,), (4,)), ((5, 3), (4,))),
        (ops.Lstm(4), ((5, 3), (4,), (4,)), ((5, 3), (4,), (5,))),
        (ops.Lstm(4, layers=2), ((5, 3),), ((5, 3), (4,), (4,))),
        (ops.DotInteraction(), ((4, 3),), ((4, 3, 2),)),
        (ops.MatrixProduct(), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (2, 3, 5))),
        (ops.MatrixProduct(), ((3, 4), (4, 5)), ((4,), (4, 5))),
        (ops.MatrixProduct(), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (3, 4, 5))),
        (ops.RoiAlign((2, 2)), ((2, 4), (3, 8, 8)), ((2, 5), (3, 8, 8))),
        (ops.RoiAlign((2, 2)), ((2, 4), (3, 8, 8)), ((2, 4), (3, 8, 8), (4, 4, 4))),
        (ops.Attention(2, 2, 4), ((3, 8), (5, 8), (5, 8)), ((3, 8), (5, 8), (6, 8))),
        (ops.Attention(2, 2, 4), ((3, 8), (5, 8), (5, 8)), ((3, 7), (5, 8), (5, 8))),
        (ops.AddPerChannel(), ((6, 4), (6,)), ((6, 4), (4,))),
        (ops.Add(), ((6, 4), (6, 4)), ((6, 4), (6, 5))),
        (ops.GlobalAveragePool(), ((6, 4),), ((6,),)),
        (ops.LocalResponseNorm(5), ((6, 4),), ((6,),)),
        (ops.WeightedSum((1.0, 2.0)), ((), ()), ((), (), ())),
        (
            ops.AdaptiveCrossEntropy(100, 8, (10,)),
            ((7, 8), (7,)),
            ((7, 8), (6,)),
        ),
        (ops.Flatten(2), ((3, 4, 5),), ((3, 4),)),
        (ops.Convolution(4, (3,), (1,), (0,), (1,), groups=2), ((4, 3),), ((3, 3),)),
        (ops.Convolution(4, (3,), (1,), (0,), (2,)), ((4, 5),), ((4, 4),)),
        (ops.StateSpaceDual(2, 1, 3, 4), ((5, 6), (5, 2), (5, 3), (5, 3)), ((5, 6),) * 4),
    ],
)
def test_both_sides_of_a_check(op, fits, too_much):
    op.output(fits)
    with pytest.raises(InputError):
        op.output(too_much)


@pytest.mark.parametrize(
    ("make", "fits", "too_much"),
    [
        (lambda n: ops.Slice(0, n, 5), 4, 5),
        (lambda n: ops.Slice(0, n, 5), 0, -1),
        (lambda n: ops.MixtureOfExperts(4, n, 8), 4, 5),
        (lambda n: ops.Dropout(n), 0.0, -0.1),
        (lambda n: ops.Dropout(n), 0.999, 1.0),
        (lambda n: ops.Linear(n), 1, 0),
        (lambda n: ops.Convolution(4, (3,), (1,), (n,), (1,)), 0, -1),
        (lambda n: ops.Convolution(4, (3,), (1,), (0,), (1,), groups=n), 4, 3),
        (lambda n: ops.Convolution(4, (3,), (1,), (0,), (1,) * n), 1, 2),
        (lambda n: ops.Convolution(4, (3,), (1,), (0,), (1,), output_padding=(0,) * n), 1, 2),
        (lambda n: ops.Convolution(4, (3,) * n, (1,) * n, (0,) * n, (1,) * n), 3, 4),
        (lambda n: ops.Convolution(4, (3,) * n, (1,) * n, (0,) * n, (1,) * n), 1, 0),
        (lambda n: ops.Attention(4, n, 8), 2, 3),
        (lambda n: ops.Attention(4, 2, 8, causal=True, window=n), 0, -1),
        (lambda n: ops.StateSpaceDual(4, n, 3, 8), 2, 3),
        (lambda n: ops.AdaptiveEmbedding(100, 8, (n,)), 99, 100),
        (lambda n: ops.AdaptiveEmbedding(100, 8, (n,)), 1, 0),
        (lambda n: ops.AdaptiveEmbedding(100, 8, (5, n)), 6, 5),
        (lambda n: ops.Reshape((n, 2)), -1, 0),
        (lambda n: ops.Reshape((n, 2)), 1, -2),
    ],
)
def test_both_sides_of_a_setting(make, fits, too_much):
    make(fits)
    with pytest.raises(InputError):
        make(too_much)


def test_sizes_of_numbers_and_arrays():
    lengths = np.array([4.0, 8.0])
    assert elements((3, 4, 5)) == 60
    assert elements(()) == 1
    assert elements((2, lengths)) == pytest.approx([8, 16])
    assert even_share(12, 4) == 3
    assert isinstance(even_share(12, 4), int)
    assert even_share(13, 4) == 3.25
    assert even_share(lengths, 4) == pytest.approx([1, 2])
    assert not differs(3, 3)
    assert differs(lengths, 4)
    assert exceeds(4, 3)
    assert not exceeds(3, 3)
    assert exceeds(lengths, 7)
    assert not exceeds(lengths, 8)
    assert same_shape((3, 4), (3, 4))
    assert not same_shape((3, 4), (3, 4, 1))
    assert not same_shape((3, lengths), (3, 4))
    assert describe((3, lengths)) == "3x[4..8]"
    assert describe(()) == "scalar"


def test_dimensions_that_weights_depend_on():
    assert fixed_dimension((3, 4), -1) == fixed_dimension((3, 4), 1) == 4
    assert fixed_dimension((3, 4), -2) == 3
    for axis in (2, -3):
        with pytest.raises(InputError, match="no dimension"):
            fixed_dimension((3, 4), axis)
    with pytest.raises(InputError, match="depends on the sequence length"):
        fixed_dimension((3, np.array([4.0, 8.0])), -1)


@pytest.mark.parametrize(
    ("op", "shapes", "output"),
    [
        (ops.Upsample(3), ((2, 4, 5),), (2, 12, 15)),
        (ops.RoiAlign((7, 5)), ((9, 4), (3, 8, 8), (3, 4, 4)), (3, 9, 7, 5)),
        (ops.DotInteraction(), ((5, 3),), (10,)),
        (ops.MatrixProduct(), ((2, 3, 4), (2, 4, 5)), (2, 3, 5)),
        (ops.Concatenate(-1), ((3, 4), (3, 2)), (3, 6)),
        (ops.Slice(1, 0, 1), ((3, 4, 5),), (3, 1, 5)),
        (ops.Flatten(1), ((3, 2),), (3, 2)),
        (ops.PadShortcut(8), ((4, 5),), (8, 5)),
        (ops.Reshape((-1,)), ((3, 4),), (12,)),
        (ops.Attention(4, 2, 8), ((3, 32), (5, 16), (5, 16)), (3, 32)),
    ],
)
def test_outputs(op, shapes, output):
    assert op.output(shapes) == output


def test_a_weighted_sum_needs_an_input():
    image = {"x": InputSpec((4,), "float")}
    with pytest.raises(InputError):
        Graph("g", image, (Node("sum", ops.WeightedSum(()), ()),), "sum")
    single = Node("sum", ops.WeightedSum((2.0,)), ("loss",))
    labels = {"x": InputSpec((4,), "float"), "y": InputSpec((), "integer", 10)}
    loss = Node("loss", ops.CrossEntropy(), ("x", "y"))
    assert Graph("g", labels, (loss, single), "sum").profile(None, "fp32").layers[1].name == "sum"
