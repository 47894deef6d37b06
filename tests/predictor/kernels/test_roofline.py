"""Layer times: rooflines that hold, curves that rise, a network measured layer by layer."""

import dataclasses

import numpy as np
import pytest
from builders import kernel_times
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError, UnknownNameError
from paceline.hardware import catalogue
from paceline.hardware.catalogue import device
from paceline.predictor.framework_profiles import framework
from paceline.predictor.kernels.efficiency import load_efficiency
from paceline.predictor.kernels.gemm_arrays import BACKWARD, FORWARD
from paceline.predictor.kernels.layer_times import layer_times as stage_layer_times
from paceline.predictor.kernels.roofline import (
    layer_work,
    update_seconds,
)
from paceline.predictor.partition.partition import partition
from paceline.predictor.plan.plan import Plan
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload import ops, zoo
from paceline.workload.workload import Workload
from paceline.workload.zoo.network_builder import NetworkBuilder

# Microseconds on an H100 at batch 128, TF32 convolutions, summed over layers of a kind
# (per-operator trace of sarchlab/triosim@3fb3c06): forward, backward. The backward of
# convolutions of ResNet-50 is left out: in that trace the first convolution of each block takes
# about 1 ms more than any other of its size, and gradients are added up inside it.
H100_TRACE = {
    ("resnet50_v1.5", "conv"): (9532, None),
    ("resnet50_v1.5", "batch_norm"): (8076, 15806),
    ("resnet50_v1.5", "activation"): (3170, None),
    ("resnet50_v1.5", "add"): (2719, None),
    ("vgg13", "conv"): (20538, 45421),
    ("vgg13", "activation"): (4137, 6029),
    ("vgg13", "max_pool"): (2376, 9467),
}


WORSE = {("vgg13", "conv"): 0.35}
"""Kinds further from the trace than a quarter: backward of VGG-13's convolutions takes 34 % less.

The factors of convolutions are fitted on whole steps of many devices, not on this trace.
"""


@pytest.fixture(scope="module")
def resnet44():
    return zoo.build("resnet44")


def seconds(graph, batch, name="v100", precision="fp32", **options):
    times = kernel_times(graph.cost(batch, precision=precision), device(name), precision, **options)
    return sum(layer.forward_seconds + layer.backward_seconds for layer in times)


@pytest.mark.parametrize(("network", "kind"), list(H100_TRACE))
def test_kinds_of_layer_are_near_a_trace_of_an_h100(network, kind):
    cost = zoo.build(network).cost(128, precision="tf32")
    times = kernel_times(cost, device("h100"), "tf32")
    chosen = [t for t, layer in zip(times, cost.layers, strict=True) if layer.kind == kind]
    predicted = [sum(t.forward_seconds for t in chosen), sum(t.backward_seconds for t in chosen)]
    for name, mine, traced in zip(
        ("forward", "backward"), predicted, H100_TRACE[network, kind], strict=True
    ):
        if traced is not None:
            print(f"{network} {kind} {name}: {mine / (traced * 1e-6) - 1:+.1%}")
            assert mine == pytest.approx(traced * 1e-6, rel=WORSE.get((network, kind), 0.25))


SPARED_MULTIPLICATIONS = 4.0
"""Direct arithmetic of a sliding window over what plain units of accelerators multiply."""


@pytest.mark.parametrize(
    ("network", "name", "precision", "plain"),
    [
        ("resnet44", "v100", "fp32", True),
        ("vgg13", "v100", "fp32", True),
        ("vgg13", "a100", "tf32", False),
        ("vgg13", "v100", "amp_fp16", False),
        ("vgg13", "xeon_gold_6132", "fp32", False),
    ],
)
def test_no_layer_beats_its_peak_or_its_memory(network, name, precision, plain):
    """Layers of sliding windows on plain units of accelerators: the peak of what they multiply."""
    cost = zoo.build(network).cost(256, precision=precision)
    place = device(name)
    peak = place.peak(precision.removeprefix("amp_"))
    for layer, time in zip(cost.layers, kernel_times(cost, place, precision), strict=True):
        slides = any(gemm.window > 1 for gemm in layer.profile.forward_gemms)
        highest = peak * (SPARED_MULTIPLICATIONS if plain and slides else 1.0)
        assert time.forward_seconds >= layer.forward_flops / highest
        assert time.forward_seconds >= layer.forward_bytes / place.memory_bandwidth
        assert time.backward_seconds >= layer.backward_flops / highest
        assert time.backward_seconds >= layer.backward_bytes / place.memory_bandwidth


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(1, 2000), more=st.integers(1, 50), faster=st.floats(1.0, 20.0))
def test_more_samples_take_longer_and_faster_parts_never_do(batch, more, faster):
    graph = zoo.build("resnet20")
    taken = seconds(graph, batch)
    assert seconds(graph, batch + more) >= taken
    v100 = device("v100")
    for better in (
        dataclasses.replace(v100, peak_flops={"fp32": v100.peak("fp32") * faster}),
        dataclasses.replace(v100, memory_bandwidth=v100.memory_bandwidth * faster),
    ):
        times = kernel_times(graph.cost(batch), better, "fp32")
        assert sum(t.forward_seconds + t.backward_seconds for t in times) <= taken * (1 + 1e-12)


def test_samples_per_second_rise_with_the_batch_and_level_off(resnet44):
    rates = [batch / seconds(resnet44, batch) for batch in (1, 8, 64, 512, 4096)]
    assert rates == sorted(rates)
    assert rates[1] > 3 * rates[0]
    assert rates[4] < 1.3 * rates[3]


def test_scaling_every_rate_scales_the_time(resnet44):
    profile = resnet44.cost(64).profile
    work = layer_work(profile, 64, device("v100"), "fp32")
    base = work.seconds(1e13, 1e12, 4e-6)
    assert work.seconds(2e13, 2e12, 2e-6) == pytest.approx(base / 2)


def test_an_array_of_batches_gives_what_each_gives(resnet44):
    profile = resnet44.cost(1).profile
    batches = np.array([1.0, 32.0, 500.0])
    together = layer_work(profile, batches, device("a100"), "tf32").seconds(1e14, 1e12, 4e-6)
    assert together.shape == (2, len(profile.layers), 3)
    for index, batch in enumerate(batches):
        alone = layer_work(profile, batch, device("a100"), "tf32").seconds(1e14, 1e12, 4e-6)
        assert together[:, :, index] == pytest.approx(alone)


def test_an_array_of_sequences_gives_what_each_gives():
    graph = zoo.build("gpt2")
    sequences = np.array([128.0, 1024.0])
    profile = graph.cost(4, sequence=sequences, precision="amp_fp16").profile
    together = layer_work(profile, np.array([4.0, 4.0]), device("a100"), "amp_fp16")
    for index, sequence in enumerate((128, 1024)):
        one = graph.cost(4, sequence=sequence, precision="amp_fp16").profile
        alone = layer_work(one, 4, device("a100"), "amp_fp16")
        assert together.flops[:, :, index] == pytest.approx(alone.flops)
        assert together.bytes[:, :, index] == pytest.approx(alone.bytes)


def test_rates_may_be_arrays_for_a_sweep(resnet44):
    profile = resnet44.cost(1).profile
    work = layer_work(profile, np.full(3, 64.0), device("v100"), "fp32")
    rates = np.array([1e12, 1e13, 1e14])
    swept = work.seconds(rates, 9e11, 4e-6).sum(axis=(0, 1))
    assert (np.diff(swept) < 0).all()


def test_unfolding_convolutions_moves_more_memory(resnet44):
    profile = resnet44.cost(1).profile
    implicit = layer_work(profile, 64, device("xeon_gold_6132"), "fp32")
    unfolded = layer_work(profile, 64, device("xeon_gold_6132"), "fp32", convolution="im2col")
    first = unfolded.names.index("conv1")
    elements = 64 * 32 * 32 * 27
    added = (unfolded.bytes - implicit.bytes)[FORWARD, first]
    assert added >= elements * 4
    assert (unfolded.bytes[BACKWARD] >= implicit.bytes[BACKWARD]).all()
    with pytest.raises(InputError, match=r"unknown convolution 'winograd'"):
        layer_work(profile, 64, device("v100"), "fp32", convolution="winograd")


def test_joining_pointwise_layers_saves_traffic_and_nothing_else(resnet44):
    profile = resnet44.cost(1).profile
    whole = layer_work(profile, 512, device("v100"), "fp32")
    joined = layer_work(profile, 512, device("v100"), "fp32", pointwise_traffic=0.5)
    norm, conv = whole.names.index("bn1"), whole.names.index("conv1")
    assert joined.bytes[FORWARD, norm] == pytest.approx(0.5 * whole.bytes[FORWARD, norm], rel=0.1)
    assert joined.bytes[FORWARD, conv] == whole.bytes[FORWARD, conv]
    assert (joined.flops == whole.flops).all()


def test_issuing_operations_bounds_a_small_batch(resnet44):
    quick = seconds(resnet44, 1)
    assert seconds(resnet44, 1, dispatch_seconds=50e-6) > 3 * quick
    assert seconds(resnet44, 4096, dispatch_seconds=7e-6) == pytest.approx(
        seconds(resnet44, 4096), rel=0.02
    )


def test_half_precision_pays_on_matrix_units_only():
    graph = zoo.build("resnet50_v1.5")
    v100 = seconds(graph, 128) / seconds(graph, 128, precision="amp_fp16")
    assert v100 > 1.7
    p100 = seconds(graph, 64, "p100") / seconds(graph, 64, "p100", "amp_fp16")
    assert p100 < 2.1


def test_measured_layers_take_the_place_of_predicted_ones(resnet44):
    cluster = catalogue.cluster("dgx-1").shaped(1, 1)
    parts = partition(
        Workload(resnet44, 64), cluster, Plan(), framework("torch-ddp"), each_layer=True
    )
    plain = stage_layer_times(parts)
    mixed = stage_layer_times(parts, measured=[LayerTime("conv1", 1.0, 2.0)])
    assert (mixed.forward[0], mixed.backward[0]) == (1.0, 2.0)
    assert mixed.measured.tolist() == [True] + [False] * (len(parts.kinds) - 1)
    assert (mixed.forward[1:] == plain.forward[1:]).all()
    with pytest.raises(InputError, match=r"no layer 'conv99'"):
        stage_layer_times(parts, measured=[LayerTime("conv99", 1.0, 2.0)])


def test_an_update_is_bound_by_memory():
    v100 = device("v100")
    taken = update_seconds(100e6, 20, v100)
    assert 1.0 < taken / (2e9 / v100.memory_bandwidth) < 1.3


def test_what_is_not_known_of_a_device_is_asked_for(resnet44):
    with pytest.raises(InputError, match=r"bf16 rate of k80 is unknown"):
        seconds(resnet44, 64, "k80", "bf16")


def test_constants_can_be_replaced_by_name():
    usual = load_efficiency()
    changed = usual.with_constants({"matrix.ceiling": 0.5, "memory.batch_norm": 0.4})
    assert changed.matrix.ceiling == 0.5
    assert changed.memory_ceiling("batch_norm") == 0.4
    assert changed.memory_ceiling("add") == usual.memory_ceiling("add")
    assert usual.constants()["matrix.ceiling"] != 0.5
    assert changed.with_constants(usual.constants()).constants() == usual.constants()
    slower = usual.with_constants({"devices.v100_sxm2_16gb.products": 0.5})
    v100 = device("v100")
    assert slower.attainable_flops(v100, "fp32") == 0.5 * usual.attainable_flops(v100, "fp32")
    with pytest.raises(UnknownNameError, match=r"no efficiency constant named 'matrix.ceilng'"):
        usual.with_constants({"matrix.ceilng": 0.5})


FACTORS = ("matrix.ceiling", "products.conv")
"""What endless products would reach of the best that was measured, and beside the fit of all
products: these may be above one."""


def test_every_constant_is_a_fraction_or_a_size_above_zero():
    for name, number in load_efficiency().constants().items():
        assert number > 0 or name.endswith("reread"), name
        if name.startswith(FACTORS):
            assert number <= 1.25, name
        elif name.startswith(("products.", "memory.")) or name.endswith(("ceiling", "attainable")):
            assert number <= 1, name


def test_only_linear_layers_run_in_8_bits():
    graph, h100 = zoo.build("llama2_7b"), device("h100_sxm_80gb")
    short, half = (
        {each.name: each for each in kernel_times(graph.cost(1, 4096, name), h100, name)}
        for name in ("fp8", "bf16")
    )

    def ratio(layer):
        return short[layer].forward_seconds / half[layer].forward_seconds

    assert 0.5 < ratio("blocks.0.mlp.up") < 0.75, "twice the rate, less what converting takes"
    assert ratio("blocks.0.attention.scores") == pytest.approx(1.0)
    assert ratio("head") == pytest.approx(1.0)
    assert ratio("blocks.0.norm1") == pytest.approx(1.0, rel=1e-3)


def test_fewer_bits_are_faster_and_scales_of_blocks_cost_a_little():
    graph, b200 = zoo.build("llama2_7b"), device("b200_sxm")
    taken = {
        name: sum(x.forward_seconds for x in kernel_times(graph.cost(1, 4096, name), b200, name))
        for name in ("bf16", "mxfp8", "fp8", "nvfp4")
    }
    assert sorted(taken, key=taken.__getitem__) == ["nvfp4", "fp8", "mxfp8", "bf16"]


def test_converting_operands_weighs_more_on_narrow_layers():
    h100 = device("h100_sxm_80gb")

    def gain(model):
        graph = zoo.build(model)
        names = [node.name for node in graph.nodes if node.name.startswith("blocks.0.mlp.up")]
        times = [
            {x.name: x.forward_seconds for x in kernel_times(graph.cost(4, 2048, p), h100, p)}
            for p in ("bf16", "fp8")
        ]
        return sum(times[0][n] for n in names) / sum(times[1][n] for n in names)

    assert gain("llama2_70b") > gain("llama2_7b") > 1.2


def test_fused_attention_skips_what_the_mask_hides_and_computes_scores_again():
    graph, a100 = zoo.build("llama2_7b"), device("a100_sxm_80gb")
    node = next(node for node in graph.nodes if node.op.kind == "attention")
    seen = dataclasses.replace(node.op, causal=True)
    whole = dataclasses.replace(node.op, causal=False)

    def times(op):
        nodes = tuple(dataclasses.replace(x, op=op) if x is node else x for x in graph.nodes)
        cost = dataclasses.replace(graph, nodes=nodes).cost(4, 4096, "bf16")
        return next(x for x in kernel_times(cost, a100, "bf16") if x.name == node.name)

    share = (4096 + 128) / (2 * 4096)
    taken = times(seen).forward_seconds / times(whole).forward_seconds
    assert share < taken < 1.1 * share  # shorter rows fill units less
    ratio = times(whole).backward_seconds / times(whole).forward_seconds
    slower = load_efficiency().product_factor("attention_input_gradient")
    assert ratio * slower == pytest.approx(5 / 2, rel=0.1), "five products, two in forward"


def test_softmax_on_plain_units_bounds_attention_of_fast_matrix_units():
    unit = load_efficiency().matrix
    sizes = (4096.0, 4096.0, np.array([64.0, 128.0, 256.0]), 1024.0, 0.5, 148.0)
    alone, beside = (unit.of_attention(*sizes, plain_share) for plain_share in (1.0, 1 / 28))
    assert np.all(beside < alone)
    assert np.all(np.diff(alone / beside) < 0), "wider heads have more products for each score"
    bound = unit.of_attention(*sizes, 1e-6) / unit.of_attention(*sizes, 2e-6)
    assert bound == pytest.approx(0.5, rel=1e-3), "with next to no plain units they take it all"


def test_a_device_without_a_plain_rate_is_taken_for_a_usual_one():
    efficiency = load_efficiency()
    assert efficiency.plain_share(device("tpu_v4"), "bf16") is None
    a100 = efficiency.plain_share(device("a100_sxm_80gb"), "bf16")
    assert efficiency.matrix.plain_share == pytest.approx(a100, rel=0.1)


def test_filters_and_scans_of_state_spaces_are_no_matrix_products():
    """A filter takes the time of what it moves; a scan computes a state, an order less than a
    product of as many rows with one column would take."""
    net = NetworkBuilder("one")
    x = net.image(2048, 1536)
    y = net.add_node("filter", ops.CausalConvolution(4), x)
    state = net.image(2048, 16, name="state")
    graph = net.build(net.add_node("scan", ops.SelectiveScan(), y, y, state, state))
    cost, h100 = graph.cost(8, precision="bf16"), device("h100_sxm_80gb")
    filtered, scanned = kernel_times(cost, h100, "bf16")
    assert h100.memory_bandwidth is not None
    moving = [layer.forward_bytes / h100.memory_bandwidth for layer in cost.layers]
    assert moving[0] <= filtered.forward_seconds < 2 * moving[0]
    assert moving[1] <= scanned.forward_seconds < 20 * moving[1]
    assert scanned.backward_seconds > 2 * scanned.forward_seconds
