"""Memory against published formulas.

Activations of a transformer layer: Korthikanti et al. 2022 (arXiv 2205.05198), table 2, for s
tokens, micro-batch b, hidden size h, a heads, t tensor-parallel devices. Weights, gradients and
optimizer state: Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054), figure 1.
"""

import math
from dataclasses import replace
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest

from paceline.constants import number
from paceline.hardware import Cluster, Device, Link, catalogue
from paceline.predictor.framework_profiles import framework
from paceline.predictor.memory.activations import (
    context_bytes,
    kept_activations,
    working_bytes,
)
from paceline.predictor.memory.allocator_lag import released_to_fit, unreleased_bytes
from paceline.predictor.memory.fit_probability import fits_in, room_bytes
from paceline.predictor.memory.loss_memory import LossMemory
from paceline.predictor.memory.memory_parts import (
    Memory,
    buffer_bytes,
    micro_batches_held,
    optimizer_bytes_per_parameter,
    sharded_bytes,
)
from paceline.predictor.memory.offload import (
    exposed_transfers,
    host_bandwidth,
    host_update_seconds,
)
from paceline.predictor.memory.peak_memory import stage_memories
from paceline.predictor.partition.fused_operations import with_unfused_scores
from paceline.predictor.partition.partition import partition
from paceline.predictor.partition.sharding import ContextTensors, Sharding
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ContextForm, OptimizerState, Recompute
from paceline.workload import Graph, InputSpec, Node, ops
from paceline.workload.blocks import blocks
from paceline.workload.cost import Affine
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

S, H, HEADS, VOCABULARY = 16, 32, 4, 100
SBH = S * H
STATISTICS = 2 * S * 8
"""Mean and deviation of two layer norms, which the paper neglects."""


def block(number, source):
    """A layer of figure 2 of the paper; the dropout of the scores is part of attention here."""
    name = f"h.{number}"

    def node(part, op, *inputs):
        return Node(
            f"{name}.{part}", op, tuple(f"{name}.{i}" if "." not in i else i for i in inputs)
        )

    head = H // HEADS
    return [
        node("norm1", ops.LayerNorm(), source),
        node("q", ops.Linear(H), "norm1"),
        node("k", ops.Linear(H), "norm1"),
        node("v", ops.Linear(H), "norm1"),
        node("attention", ops.Attention(HEADS, HEADS, head, fused=False), "q", "k", "v"),
        node("project", ops.Linear(H), "attention"),
        node("dropout1", ops.Dropout(0.1), "project"),
        node("add1", ops.Add(), "dropout1", source),
        node("norm2", ops.LayerNorm(), "add1"),
        node("up", ops.Linear(4 * H), "norm2"),
        node("gelu", ops.Activation("gelu"), "up"),
        node("down", ops.Linear(H), "gelu"),
        node("dropout2", ops.Dropout(0.1), "down"),
        node("add2", ops.Add(), "dropout2", "add1"),
    ]


def transformer(layers=3):
    nodes = [Node("embed.table", ops.Embedding(VOCABULARY, H), ("tokens",))]
    for index in range(layers):
        nodes += block(index, nodes[-1].name)
    nodes.append(Node("head.linear", ops.Linear(VOCABULARY, bias=False), (nodes[-1].name,)))
    nodes.append(Node("loss", ops.CrossEntropy(), ("head.linear", "tokens")))
    inputs = {"tokens": InputSpec(("sequence",), "integer", VOCABULARY)}
    return Graph("transformer", inputs, tuple(nodes), "loss", S)


SHARDING = Sharding(transformer(), S, "fp16")


def kept(recompute=Recompute.NONE, t=1, sequence_parallel=False, number=1, **options):
    """Bytes of the middle layer for one sample."""
    layers = SHARDING.layers(t, sequence_parallel=sequence_parallel)
    found = kept_activations(SHARDING, layers, recompute, t, sequence_parallel, **options)
    own = blocks(SHARDING.graph)[number]
    return sum(float(size.per_sample) for size in found.sizes[own.first : own.last])


def scores():
    """5 a s / h of the paper without the dropout of scores: only the softmax, 2 a s / h."""
    return 2 * HEADS * S / H


@pytest.mark.parametrize("t", [1, 2, 4])
def test_tensor_parallelism(t):
    expected = SBH * (10 + 24 / t + scores() / t) + STATISTICS
    assert kept(t=t) == pytest.approx(expected)


def test_dropout_of_scores():
    """s b h (34 + 5 a s / h): probabilities before and after dropout, and a mask of one byte."""
    sharding = Sharding(with_unfused_scores(transformer()), S, "fp16")
    own = blocks(sharding.graph)[1]
    sizes = [layer.profile.activation_bytes.per_sample for layer in sharding.layers()]
    found = sum(float(size) for size in sizes[own.first : own.last])
    assert found == pytest.approx(SBH * (34 + 5 * HEADS * S / H) + STATISTICS)


@pytest.mark.parametrize("t", [2, 4])
def test_sequence_parallelism(t):
    expected = (SBH * (34 + scores()) + STATISTICS) / t
    assert kept(t=t, sequence_parallel=True) == pytest.approx(expected)


@pytest.mark.parametrize(("t", "sequence_parallel"), [(1, False), (2, False), (4, True)])
def test_selective_recomputation_drops_the_scores(t, sequence_parallel):
    """34 s b h / t; queries, keys and values are kept instead of the scores."""
    dropped = SBH * scores() / t
    plain = kept(t=t, sequence_parallel=sequence_parallel)
    selective = kept(Recompute.SELECTIVE, t, sequence_parallel)
    assert selective == pytest.approx(plain - dropped)


@pytest.mark.parametrize(("t", "sequence_parallel", "share"), [(1, 0, 1), (4, 0, 1), (4, 1, 4)])
def test_full_recomputation_keeps_the_input(t, sequence_parallel, share):
    """2 s b h."""
    assert kept(Recompute.FULL, t, bool(sequence_parallel)) == pytest.approx(2 * SBH / share)


def test_full_recomputation_of_every_second_layer():
    by_layer = [kept(Recompute.FULL, number=n, every=2) for n in range(3)]
    whole = kept()
    assert by_layer[1] == pytest.approx(2 * SBH)
    assert by_layer[2] > 0.9 * whole
    layers = SHARDING.layers()
    found = kept_activations(SHARDING, layers, Recompute.FULL, every=2)
    second = blocks(SHARDING.graph)[1]
    assert [i for i, again in enumerate(found.again) if again] == [
        *range(second.first, second.last)
    ]


def test_recomputation_of_all_operations_but_every_second_matrix():
    """torchtitan's selective op: q, v, up keep their results, attention is unfused here."""
    expected = SBH * (2 + 2 + 2 + 8)
    assert kept(Recompute.OPERATION) == pytest.approx(expected)
    # Column parallel results are divided, and so is everything with sequence parallelism.
    assert kept(Recompute.OPERATION, 2) == pytest.approx(SBH * (2 + (2 + 2 + 8) / 2))
    assert kept(Recompute.OPERATION, 2, True) == pytest.approx(SBH * (2 + 12) / 2)


def test_working_memory_of_recomputation_is_the_largest_block():
    found = working_bytes(SHARDING.layers(), SHARDING)
    # Blocks without embedding, head and loss.
    assert float(found.per_sample) == pytest.approx(kept())


@pytest.mark.parametrize(
    ("number_format", "copies", "width"),
    [("fp16", 3.0, 2 + 4 + 2), ("fp16", 2.5, 2 + 4), ("fp32", 3.0, 8), ("fp32", 2.5, 4)],
)
def test_scores_of_the_loss(number_format, copies, width):
    sharding = Sharding(transformer(1), S, number_format)
    found = LossMemory(copies=copies).working_bytes(sharding.layers(), sharding)
    assert float(found.per_sample) == pytest.approx(width * S * VOCABULARY)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (ContextForm.RING, 2 * 20 + 2 * 12),
        (ContextForm.RING_IN_ORDER, 2 * 20 + 2 * 12),
        (ContextForm.GATHER, 2 * 4 * 20 + 2 * 12),
        (ContextForm.ULYSSES, 10 + 20 + 12),
    ],
)
def test_buffers_of_context_parallelism(form, expected):
    """Keys and values of 20 bytes, results of 12 in 16 bits; sums in 32 bits take twice that."""
    tensors = ContextTensors(Affine(0, 10), Affine(0, 20), Affine(0, 12), 4, True, 1)
    assert context_bytes(tensors, form, 4, 2) == Affine(0, expected)


# ZeRO.


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.88)])
def test_figure_1_of_zero(zero, gigabytes):
    """7.5 billion parameters, mixed precision Adam (2 + 2 + 12 bytes), 64 devices."""
    widths = precision("fp16")
    state = optimizer_bytes_per_parameter("adam", widths)
    parameters, devices = 7.5e9, 64
    total = (
        sharded_bytes(parameters * widths.weight_bytes, 3, zero, devices)
        + sharded_bytes(parameters * widths.gradient_bytes, 2, zero, devices)
        + sharded_bytes(parameters * state, 1, zero, devices)
    )
    assert float(total) / 1e9 == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("optimizer", "number_format", "state", "expected"),
    [
        ("sgd", "fp32", OptimizerState.FP32, 0),
        ("momentum", "fp32", OptimizerState.FP32, 4),
        ("adam", "fp32", OptimizerState.FP32, 8),
        ("adam", "amp_fp16", OptimizerState.FP32, 8),  # weights are stored in 32 bits
        ("adam", "bf16", OptimizerState.FP32, 12),
        ("AdamW", "bf16", OptimizerState.BF16, 4 + 4),
        ("sgd-momentum", "bf16", OptimizerState.FP32, 8),
        ("adam", "bf16", OptimizerState.EIGHT_BIT, 4 + 2 + 8 / 256),
        ("lamb", "fp32", OptimizerState.BF16, 4),
    ],
)
def test_optimizer_state(optimizer, number_format, state, expected):
    found = optimizer_bytes_per_parameter(optimizer, precision(number_format), state)
    assert found == pytest.approx(expected)


def test_an_optimizer_without_state_cannot_shorten_it():
    with pytest.raises(Exception, match="no state to store"):
        optimizer_bytes_per_parameter("sgd", precision("bf16"), OptimizerState.BF16)


# Pipelines.


@pytest.mark.parametrize(("pp", "interleave"), [(4, 1), (4, 2), (8, 1), (8, 4)])
def test_the_first_stage_holds_as_korthikanti_counts(pp, interleave):
    """L layers, times 1 + (p - 1) / (p m) with m chunks."""
    factor = 1.0 if interleave == 1 else 1 + (pp - 1) / (pp * interleave)
    found = micro_batches_held(0, pp, 64, interleave, False)
    assert float(found) == pytest.approx(pp * factor)


@pytest.mark.parametrize(
    ("stage", "pp", "micro_batches", "interleave", "gpipe", "expected"),
    [
        (0, 4, 8, 1, True, 8),
        (3, 4, 8, 1, True, 8),
        (0, 4, 2, 1, False, 2),
        (3, 4, 8, 1, False, 1),
        (3, 4, 8, 2, False, 5 / 2),
        (0, 4, 4, 2, False, 4),  # never more than all
        (0, 1, 1, 1, False, 1),
    ],
)
def test_micro_batches_in_flight(stage, pp, micro_batches, interleave, gpipe, expected):
    found = micro_batches_held(stage, pp, micro_batches, interleave, gpipe)
    assert float(found) == pytest.approx(expected)


def test_buffers():
    assert float(buffer_bytes(10.0, 25.0, 7.0, 0)) == 10.0
    assert float(buffer_bytes(100.0, 25.0, 7.0, 2)) == 25.0
    assert float(buffer_bytes(100.0, 25.0, 7.0, 2, copies_gradients=True)) == 25.0
    assert float(buffer_bytes(100.0, 25.0, 7.0, 1, copies_gradients=True)) == 100.0
    assert float(buffer_bytes(100.0, 25.0, 7.0, 3)) == 14.0


def test_parts_add_up():
    memory = Memory(1.0, 20.0, 300.0, 4000.0, 50000.0)
    assert memory.total_bytes == 54321.0
    assert sum(memory.parts().values()) == 54321.0
    assert memory.parts()["optimizer"] == 300.0


# Probability to fit: lognormal errors around room_bytes.


@pytest.mark.parametrize("deviations", [-1.0, 0.0, 2.0])
def test_probability_to_fit(deviations):
    deviation = number("corrections.memory.deviation")
    needed = room_bytes(80e9) * math.exp(-deviations * deviation)
    assert fits_in(needed, 80e9) == pytest.approx(NormalDist().cdf(deviations))


def test_room_is_what_the_driver_leaves_less_the_bias():
    reserved, bias = number("spread.memory.reserved_share"), number("corrections.memory.bias")
    assert room_bytes(80e9) == pytest.approx(80e9 * (1 - reserved) / math.exp(bias))
    assert 0 < reserved < 0.1
    assert fits_in(1e9, None) is None
    assert fits_in(0.0, 80e9) is None
    assert fits_in(1.0, 80e9) == pytest.approx(1.0)


# Tensors that wait for their release (nanotron).


def waiting(whole, largest, flops, pp, micro_batches, tp=8):
    device = SimpleNamespace(peak=lambda arithmetic: 1e12)
    replica = SimpleNamespace(
        cluster=SimpleNamespace(device=device), precision=SimpleNamespace(compute="bf16")
    )
    return float(unreleased_bytes(replica, whole, largest, flops, tp, pp, micro_batches))


def test_waiting_tensors():
    ahead, host = number("spread.memory.tensors_ahead"), number("spread.memory.host_time")
    slow, fast = 2 * host * 1e12, 0.5 * host * 1e12
    # A device that takes longer than its host: the launch queue is full, or half a pass is issued.
    assert waiting(1e6, 10.0, slow * 1e5, 4, 5) == pytest.approx(ahead * 10 + 20)
    assert waiting(1e6, 10.0, fast * 1e5, 1, 5) == pytest.approx(ahead * 10 + 20)
    assert waiting(100.0, 10.0, slow * 10, 1, 1) == pytest.approx(50 + 20)
    # A faster device in a pipeline: passes between the first and the last that fill it.
    assert waiting(100.0, 10.0, fast * 10, 2, 5) == pytest.approx(20)
    assert waiting(50.0, 10.0, fast * 5, 4, 5) == pytest.approx(2 * 50 + 20)
    # At most what the host issues while sends block the device: fewer tensors on more devices.
    blocked = number("spread.memory.blocked_time")
    found = waiting(1e6, 10.0, fast * 1e5, 4, 5, tp=32)
    assert found == pytest.approx(blocked / (host * 4**1.5) * 10 + 20)


def test_waiting_tensors_are_released_when_memory_is_full():
    assert float(released_to_fit(30.0, 60.0, 100.0)) == 30.0
    assert float(released_to_fit(60.0, 60.0, 100.0)) == 40.0
    assert float(released_to_fit(60.0, 120.0, 100.0)) == 0.0
    assert released_to_fit(60.0, 60.0, None) == 60.0


# Offload.

DEVICE = Device("d", "nvidia", "gpu", {"bf16": 1e14}, 80e9, 2e12)
NODE = Cluster(
    "n", DEVICE, 4, intra=Link("i", "intra", 100e9), host=Link("pcie", "host", 20e9, "device")
)


def test_bandwidth_to_the_host():
    assert host_bandwidth(NODE) == 20e9
    shared = Cluster(
        "n", DEVICE, 4, intra=Link("i", "intra", 1e11), host=Link("pcie", "host", 20e9, "node")
    )
    assert host_bandwidth(shared) == 5e9


def test_update_on_the_host_takes_the_slower_of_memory_and_link():
    memory = number("parallelism.host.memory_of_a_node") / 4
    by_memory = host_update_seconds(1e9, 28.0, 0.0, NODE)
    assert by_memory == pytest.approx(28e9 / memory)
    by_link = host_update_seconds(1e9, 0.0, 4.0, NODE)
    assert by_link == pytest.approx(4e9 / 20e9)
    assert host_update_seconds(1e9, 28.0, 4.0, NODE) == max(by_memory, by_link)


def test_offloaded_activations_are_exposed_where_the_link_is_slower():
    """Two kinds, 3 and 1 layers: 40 + 20 GB one way are 3 s; forward takes 2 s, backward 4 s."""
    passes = (np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    counts = np.array([3.0, 1.0])
    late, hidden = exposed_transfers(np.array([40e9 / 3, 20e9]), counts, NODE, passes)
    assert hidden.tolist() == [0.0, 0.0]
    assert 3 * late[0] + late[1] == pytest.approx(1.0)
    assert late[1] / late[0] == pytest.approx(20 / (40 / 3))
    free, _ = exposed_transfers(np.zeros(2), counts, NODE, passes)
    assert free.tolist() == [0.0, 0.0]


def test_arrays_of_degrees():
    zero = np.array([0, 1, 2, 3])
    assert sharded_bytes(64.0, 2, zero, np.array([2, 4, 8, 16])) == pytest.approx([64, 64, 8, 4])


def test_buffers_of_the_largest_attention():
    """The ring holds two copies of the larger keys and values, whichever layer has them."""
    workload, place = Workload.of("gpt_h128_l2", 2, 64, "bf16"), catalogue.cluster("dgx-a100")
    parts = partition(
        workload,
        place.with_devices(2),
        Plan(cp=2, cp_impl=ContextForm.RING),
        framework("torch-ddp"),
        each_layer=True,
    )
    attention = [kind for kind, part in enumerate(parts.kinds) if part.context is not None]

    def activations(*sizes):
        kinds = list(parts.kinds)
        for kind, size in zip(attention, sizes, strict=True):
            context = replace(kinds[kind].context, keys_values=Affine(0, size), result=Affine(0, 0))
            kinds[kind] = replace(kinds[kind], context=context)
        (memory,) = stage_memories(
            replace(parts, kinds=tuple(kinds)), parts.classes.all_counts[None, :]
        )
        return float(memory.activations_bytes)

    more = activations(1e9, 2e9) - activations(1e9, 0)
    assert more == pytest.approx(2 * 1e9 * parts.share_of_batch)
    assert activations(1e9, 2e9) == activations(2e9, 1e9)
