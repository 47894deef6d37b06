"""Efficiency and roofline times with round constants, computed by hand."""

import dataclasses

import numpy as np
import pytest
from builders import kernel_times

from paceline.hardware import Device
from paceline.predictor.kernels.efficiency import Efficiency, UnitEfficiency, load_efficiency
from paceline.predictor.kernels.roofline import (
    executed_share,
    layer_work,
    update_seconds,
)
from paceline.predictor.kernels.winograd import TransformedProducts
from paceline.workload import Graph, InputSpec, Node, ops
from paceline.workload.precision import precision

PLAIN = UnitEfficiency(
    ceiling=1.0,
    sustained=1.0,
    half_small=0.0,
    half_depth=0.0,
    half_waves=0.0,
    tile=128.0,
    split_depth=1e9,
    reread=0.0,
    attention_ceiling=1.0,
    score_work=0.0,
    overlap=1.0,
    half_seen=0.0,
    half_rounds=0.0,
    attainable=0.8,
    attainable_since_2022=0.6,
    plain_share=0.1,
)
GPU = Device(
    "gpu",
    "nvidia",
    "gpu",
    {"fp32": 10e12, "bf16": 100e12, "fp8": 200e12},
    80e9,
    1e12,
    frozenset({"bf16", "fp8"}),
    compute_units=100,
    year=2021,
)
PROCESSOR = dataclasses.replace(GPU, name="cpu", kind="cpu", matrix_precisions=frozenset())


def an_efficiency(**changes):
    fields = {
        "matrix": PLAIN,
        "vector": dataclasses.replace(PLAIN, attainable=0.9),
        "processor": dataclasses.replace(PLAIN, attainable=0.5),
        "products": {},
        "memory": {"other": 1.0},
        "half_bytes": {"accelerator": 0.0, "processor": 0.0},
        "launch_seconds": {"accelerator": 5e-6, "processor": 1e-6},
    }
    return Efficiency(**{**fields, **changes})


def unit(**changes):
    return dataclasses.replace(PLAIN, **changes)


# GEMMs: ceiling x fill(min(m, n)) x fill(k) x fill(waves), fill(x) = x / (x + half).


def test_fractions_of_a_gemm():
    sizes = (256, 512, 64, 1, 1.0)
    assert unit(ceiling=0.9, sustained=0.8).of_product(*sizes) == pytest.approx(0.72)
    assert unit(half_small=256.0).of_product(*sizes) == pytest.approx(0.5)
    assert unit(half_depth=64.0).of_product(*sizes) == pytest.approx(0.5)
    assert unit(half_depth=32.0).of_product(*sizes) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("m", "n", "k", "count", "units", "waves"),
    [
        (256, 512, 64, 1, 1, 8),
        (256, 512, 64, 3, 4, 6),
        (64, 512, 64, 1, 1, 4),  # part of a tile is a tile
        (256, 512, 4000, 1, 1, 32),  # split four times along k
        (256, 512, 1000, 1, 1, 8),
    ],
)
def test_waves_of_tiles(m, n, k, count, units, waves):
    own = unit(half_waves=8.0, split_depth=1000.0)
    assert own.of_product(m, n, k, count, float(units)) == pytest.approx(waves / (waves + 8))


# Attention: width is the smallest dimension, the sequence the median.


def test_fractions_of_attention():
    scores, context = (2048, 2048, 64, 16), (2048, 64, 2048, 16)
    for sizes in (scores, context):
        assert unit(attention_ceiling=0.7).of_attention(*sizes, 1.0, 1.0, 0.1) == pytest.approx(0.7)
        half_seen = unit(half_seen=1024.0, sustained=0.5)
        assert half_seen.of_attention(*sizes, 0.5, 1.0, 0.1) == pytest.approx(0.25)
        # 16 heads of 2048 rows are 256 blocks of 128 rows, 4 rounds on 64 units.
        rounds = unit(half_rounds=4.0)
        assert rounds.of_attention(*sizes, 1.0, 64.0, 0.1) == pytest.approx(0.5)
        # Softmax of 32 FLOP per score, next to 4 * 64, on units with a tenth of the rate: 1.25.
        softmax = unit(score_work=32.0)
        assert softmax.of_attention(*sizes, 1.0, 1.0, 0.1) == pytest.approx(1 / 2.25)
        squares = unit(score_work=32.0, overlap=2.0, attention_ceiling=0.5)
        assert squares.of_attention(*sizes, 1.0, 1.0, 0.1) == pytest.approx(
            1 / (2**2 + 1.25**2) ** 0.5
        )


def test_cross_attention_uses_the_shorter_sequence():
    own = unit(half_seen=512.0)
    assert own.of_attention(512, 2048, 64, 1, 1.0, 1.0, 0.1) == pytest.approx(0.5)


# Attainable rates.


@pytest.mark.parametrize(("year", "share"), [(None, 0.8), (2021, 0.8), (2022, 0.6), (2023, 0.6)])
def test_devices_since_2022_are_limited_by_power(year, share):
    device = dataclasses.replace(GPU, year=year)
    assert PLAIN.attainable_of(device) == share
    assert an_efficiency().attainable_flops(device, "bf16") == pytest.approx(share * 100e12)


def test_units_by_device_and_arithmetic():
    own = an_efficiency()
    assert own.unit(GPU, "bf16") is own.matrix
    assert own.unit(GPU, "fp32") is own.vector
    assert own.unit(PROCESSOR, "fp32") is own.processor
    assert own.attainable_flops(GPU, "fp32") == pytest.approx(9e12)
    assert own.attainable_flops(PROCESSOR, "fp32") == pytest.approx(5e12)


def test_measured_rates_take_precedence():
    measured = dataclasses.replace(GPU, attainable_flops={"bf16": 70e12})
    own = an_efficiency()
    assert own.attainable_flops(measured, "bf16") == 70e12
    # Another format of the same unit reaches the same fraction, vector units do not.
    assert own.attainable_flops(measured, "fp8") == pytest.approx(140e12)
    assert own.attainable_flops(measured, "fp32") == pytest.approx(9e12)
    factored = an_efficiency(devices={"gpu.products": 0.5})
    assert factored.attainable_flops(measured, "bf16") == pytest.approx(35e12)
    assert factored.attainable_flops(measured, "fp8") == pytest.approx(70e12)
    assert factored.attainable_flops(GPU, "fp32") == pytest.approx(4.5e12)


def test_share_of_the_vector_units():
    own = an_efficiency()
    assert own.plain_share(GPU, "bf16") == pytest.approx(10 / 80)
    assert own.plain_share(GPU, "fp32") == 1.0
    assert own.plain_share(dataclasses.replace(GPU, peak_flops={"bf16": 1e14}), "bf16") is None


def test_launches_and_memory():
    own = an_efficiency(
        memory={"other": 0.5, "layer_norm": 0.8, "layer_norm_backward": 0.6},
        half_bytes={"accelerator": 1e6, "processor": 1e3},
        devices={"gpu.memory": 0.9},
    )
    assert (own.launch(GPU), own.launch(PROCESSOR)) == (5e-6, 1e-6)
    assert own.launch(dataclasses.replace(GPU, launch_overhead_seconds=9e-6)) == 9e-6
    assert own.memory_ceiling("layer_norm") == 0.8
    assert own.memory_ceiling("layer_norm", backward=True) == 0.6
    assert own.memory_ceiling("add") == own.memory_ceiling("add", backward=True) == 0.5
    assert own.memory_fill(1e6, GPU) == pytest.approx(0.45)
    assert own.memory_fill(1e3, PROCESSOR) == pytest.approx(0.5)


def test_factors_by_kind_and_unit():
    own = an_efficiency(products={"linear": 0.9, "plain_linear": 0.7})
    assert own.product_factor("linear") == own.product_factor("linear", own.matrix) == 0.9
    assert own.product_factor("linear", own.vector) == 0.7
    assert own.product_factor("linear", own.processor) == 0.7
    assert own.product_factor("conv", own.matrix) == 1.0


def test_constants_can_be_replaced():
    own = load_efficiency()
    changed = own.with_constants(
        {"matrix.ceiling": 0.5, "memory.other": 0.25, "devices.x.memory": 2}
    )
    assert changed.matrix.ceiling == 0.5
    assert changed.memory["other"] == 0.25
    assert changed.devices["x.memory"] == 2
    assert changed.vector == own.vector
    assert own.constants()["matrix.ceiling"] == own.matrix.ceiling
    with pytest.raises(Exception, match=r"no efficiency constant named 'matrix\.cieling'"):
        own.with_constants({"matrix.cieling": 0.5})


# Roofline.


def chain(shape, *operations, dtype="float"):
    nodes, read = [], "x"
    for number, op in enumerate(operations):
        nodes.append(Node(f"n{number}", op, (read,)))
        read = f"n{number}"
    return Graph("chain", {"x": InputSpec(shape, dtype)}, tuple(nodes), read)


def test_a_large_linear_layer_is_bound_by_arithmetic():
    """8192 rows, 4096 -> 4096, bf16: 275 GFLOP at 80 TFLOP/s, three times in training."""
    graph = chain((8192, 4096), ops.Linear(4096, bias=False), ops.Linear(4096, bias=False))
    first, second = kernel_times(graph.cost(1, precision="bf16"), GPU, "bf16", an_efficiency())
    flops = 2 * 8192 * 4096 * 4096
    assert first.forward_seconds == pytest.approx(flops / 80e12 + 5e-6)
    assert first.backward_seconds == pytest.approx(flops / 80e12 + 5e-6), "no input gradient"
    assert second.backward_seconds == pytest.approx(2 * flops / 80e12 + 10e-6)
    assert first.gradient_bytes == 4096 * 4096 * 2


def test_an_activation_is_bound_by_memory():
    """1e6 elements of 4 bytes: 2 passes forward, 3 backward, at 1 TB/s."""
    graph = chain((1000, 1000), ops.Linear(1000), ops.Activation("relu"))
    _, relu = kernel_times(graph.cost(1), GPU, "fp32", an_efficiency())
    assert relu.forward_seconds == pytest.approx(8e-6 + 5e-6)
    assert relu.backward_seconds == pytest.approx(12e-6 + 5e-6)
    half = an_efficiency(memory={"other": 0.5}, half_bytes={"accelerator": 8e6, "processor": 0.0})
    _, slower = kernel_times(graph.cost(1), GPU, "fp32", half)
    assert slower.forward_seconds == pytest.approx(8e-6 / 0.25 + 5e-6)
    _, fused = kernel_times(graph.cost(1), GPU, "fp32", an_efficiency(), pointwise_traffic=0.25)
    assert fused.forward_seconds == pytest.approx(2e-6 + 5e-6)
    _, issued = kernel_times(graph.cost(1), GPU, "fp32", an_efficiency(), dispatch_seconds=1e-3)
    assert issued.forward_seconds == pytest.approx(1e-3)


def test_operands_read_again_lower_the_rate():
    """reread x width x attainable / bandwidth = 1e-2 x 2 x 80e12 / 1e12 = 1.6 more."""
    own = an_efficiency(matrix=unit(reread=1e-2))
    graph = chain((8192, 4096), ops.Linear(4096, bias=False))
    (layer,) = kernel_times(graph.cost(1, precision="bf16"), GPU, "bf16", own)
    flops = 2 * 8192 * 4096 * 4096
    assert layer.forward_seconds == pytest.approx(flops / 80e12 * 2.6 + 5e-6)


def test_factors_of_passes():
    products = {"linear": 0.5, "linear_weight_gradient": 0.5}
    own = an_efficiency(products=products)
    graph = chain((8192, 4096), ops.Linear(4096, bias=False))
    (layer,) = kernel_times(graph.cost(1, precision="bf16"), GPU, "bf16", own)
    flops = 2 * 8192 * 4096 * 4096
    assert layer.forward_seconds == pytest.approx(flops / 40e12 + 5e-6)
    assert layer.backward_seconds == pytest.approx(flops / 20e12 + 5e-6)


def test_eight_bit_layers_convert_their_operands():
    """Only the first linear layer runs in fp8; the last one stays in bf16."""
    graph = chain((8192, 4096), ops.Linear(4096, bias=False), ops.Linear(4096, bias=False))
    first, last = kernel_times(graph.cost(1, precision="fp8"), GPU, "fp8", an_efficiency())
    flops = 2 * 8192 * 4096 * 4096
    converted = 8192 * 4096 * (2 * 2 + 2 * 1) / 1e12  # read for the scale, and to convert
    assert first.forward_seconds == pytest.approx(flops / 160e12 + converted + 5e-6)
    assert last.forward_seconds == pytest.approx(flops / 80e12 + 5e-6)


def convolution(groups=1):
    return ops.Convolution(64, (3, 3), (1, 1), (1, 1), (1, 1), groups=groups)


def test_unfolded_convolutions_move_the_columns():
    """64 x 32 x 32 input: K P = 576 x 1024 elements of 4 bytes for each GEMM."""
    graph = chain((64, 32, 32), convolution(), convolution())
    implicit, unfolded = (
        layer_work(graph.profile(None, precision("fp32")), 1, GPU, "fp32", an_efficiency(), form)
        for form in ("implicit", "im2col")
    )
    added = unfolded.bytes - implicit.bytes
    assert added[0] == pytest.approx([576 * 1024 * 4] * 2)
    # The stem computes no input gradient.
    assert added[1] == pytest.approx([576 * 1024 * 4, 2 * 576 * 1024 * 4])
    assert unfolded.spared_flops is None
    assert implicit.spared_flops is not None


def test_winograd_multiplies_a_quarter_as_often():
    """F(4x4, 3x3): 36 products for 16 x 9 (Lavin and Gray 2016)."""
    graph = chain((64, 32, 32), convolution(), convolution())
    work = layer_work(graph.profile(None, precision("fp32")), 1, GPU, "fp32", an_efficiency())
    assert work.flops[0] / work.spared_flops[0] == pytest.approx([4.0, 4.0])
    assert work.flops[1] / work.spared_flops[1] == pytest.approx([4.0, 4.0])
    # 64 + 64 channels of 1024 positions; one tensor is enlarged by 36/16.
    assert work.spared_bytes[0] == pytest.approx([(1 + 36 / 16) * 128 * 1024 * 4] * 2)
    share = executed_share(graph.cost(1), GPU, "fp32", an_efficiency())
    assert share == pytest.approx(0.25)
    assert executed_share(graph.cost(1, precision="bf16"), GPU, "bf16", an_efficiency()) == 1.0
    assert executed_share(graph.cost(1), GPU, "fp32", an_efficiency(), "im2col") == 1.0
    plain = chain((8, 8), ops.Linear(8))
    assert executed_share(plain.cost(1), GPU, "fp32", an_efficiency()) == 1.0


@pytest.mark.parametrize(("window", "ratio"), [(3, 4.0), (5, 100 / 36), (7, 1 / 36), (1, 1 / 36)])
@pytest.mark.parametrize("role", ["forward", "weight_gradient", "input_gradient"])
def test_transformed_products(window, ratio, role):
    """Channels 8 -> 16, 144 positions: 36 products of m x k with 144 / outputs columns."""
    taps = window**2
    sizes = {
        "forward": (16.0, 144.0, 8.0 * taps, 1.0),
        "weight_gradient": (16.0, 8.0 * taps, 144.0, 1.0),
        "input_gradient": (8.0 * taps, 144.0, 16.0, 1.0),
    }[role]
    arrays = tuple(np.array([size]) for size in sizes)
    found = TransformedProducts(arrays, [role], [window])
    assert bool(found.applies[0]) == (window in (3, 5))
    if window in (3, 5):
        m, n, k, _ = sizes
        assert 2 * m * n * k / found.flops[0] == pytest.approx(ratio)
        outputs = (7 - window) ** 2
        assert found.elements[0] == pytest.approx((1 + 36 / outputs) * 24 * 144)
        assert found.count[0] == 36


def test_depthwise_convolutions_run_on_vector_units():
    """64 groups of one filter: 2 x 64 x 1024 x 9 FLOP at 12.5 % of 80 TFLOP/s."""
    graph = chain((64, 32, 32), convolution(64), convolution(64))
    own = an_efficiency(products={"depthwise": 0.5})
    work = layer_work(graph.profile(None, precision("bf16")), 1, GPU, "bf16", own)
    assert work.flops[0] == pytest.approx([2 * 64 * 1024 * 9 / (0.5 * 0.125)] * 2)
    grouped = chain((64, 32, 32), convolution(8))
    work = layer_work(grouped.profile(None, precision("bf16")), 1, GPU, "bf16", own)
    assert work.flops[0] == pytest.approx([2 * 64 * 1024 * 72])
    four = chain((64, 32, 32), convolution(16))
    work = layer_work(four.profile(None, precision("bf16")), 1, GPU, "bf16", own)
    assert work.flops[0] == pytest.approx([2 * 64 * 1024 * 36 / (0.5 * 0.125)])


def test_update():
    """1e9 parameters of 20 bytes at half of 1 TB/s, and 3 launches."""
    own = an_efficiency(memory={"other": 1.0, "update": 0.5})
    assert update_seconds(1e9, 20.0, GPU, own, operations=3) == pytest.approx(0.04 + 15e-6)
    slow = update_seconds(1e9, 20.0, GPU, own, bytes_per_second=1e11)
    assert slow == pytest.approx(0.4 + 5e-6)
    assert update_seconds(0, 20.0, GPU, own) == pytest.approx(5e-6, rel=1e-3)
