"""Costs: laws that hold for every network, and layers small enough to count by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.workload import Graph, InputSpec, Node, zoo
from paceline.workload.cost import GROWING_QUANTITIES, LayerCost
from paceline.workload.ops import (
    Activation,
    Add,
    BatchNorm,
    Convolution,
    CrossEntropy,
    Embedding,
    Flatten,
    Linear,
    MaxPool,
)

NETWORKS = ("resnet20", "googlenet", "densenet121", "gpt_h128_l2", "gnmt_v2", "mixtral_8x7b")


def cost_of(graph, layer, batch=1):
    return next(cost for cost in graph.cost(batch).layers if cost.name == layer)


def chain(shape, *ops, inputs=("x",)):
    """The operations in a row on one input, each called by its kind."""
    nodes, read = [], inputs
    for op in ops:
        nodes.append(Node(op.kind, op, tuple(read)))
        read = (op.kind,)
    return Graph("chain", {"x": InputSpec(shape)}, tuple(nodes), nodes[-1].name)


@given(name=st.sampled_from(NETWORKS), batch=st.integers(1, 4096))
@settings(max_examples=60, deadline=None)
def test_arithmetic_is_proportional_to_the_batch(name, batch):
    graph = zoo.build(name)
    assert graph.cost(batch).forward_flops == batch * graph.cost(1).forward_flops
    assert graph.cost(batch).training_flops == batch * graph.cost(1).training_flops


@given(
    name=st.sampled_from(NETWORKS),
    batches=st.lists(st.integers(1, 100_000), min_size=1, max_size=5),
    precision=st.sampled_from(("fp32", "amp_fp16", "bf16", "fp8")),
)
@settings(max_examples=60, deadline=None)
def test_cost_of_a_batch_array_equals_cost_of_each_batch(name, batches, precision):
    graph = zoo.build(name)
    together = graph.cost(np.array(batches), precision=precision)
    for index, batch in enumerate(batches):
        alone = graph.cost(batch, precision=precision)
        for quantity in ("training_flops", "forward_bytes", "backward_bytes", "activation_bytes"):
            assert getattr(together, quantity)[index] == pytest.approx(getattr(alone, quantity))


@pytest.mark.thorough
@given(lengths=st.lists(st.integers(1, 2048), min_size=1, max_size=4), batch=st.integers(1, 64))
@settings(max_examples=30, deadline=None)
def test_cost_of_a_sequence_array_equals_cost_of_each_sequence(lengths, batch):
    for name in ("gpt_h128_l2", "llama3_1b", "mixtral_8x7b", "lstm_ptb"):
        graph = zoo.build(name)
        together = graph.cost(batch, np.array(lengths))
        for index, length in enumerate(lengths):
            alone = graph.cost(batch, length)
            for quantity in ("training_flops", "activation_bytes", "backward_bytes"):
                value = np.broadcast_to(getattr(together, quantity), len(lengths))[index]
                assert value == pytest.approx(getattr(alone, quantity))


def test_batch_and_sequence_broadcast_against_each_other():
    cost = zoo.build("gpt2").cost(np.arange(1, 4)[:, None], np.array([128, 256]))
    assert cost.forward_flops.shape == (3, 2)
    assert cost.forward_flops[2, 1] == zoo.build("gpt2").cost(3, 256).forward_flops


@pytest.mark.parametrize("name", zoo.names())
def test_the_layers_add_up_to_the_whole(name):
    cost = zoo.build(name).cost(3, precision="amp_fp16")
    assert sum(layer.parameters for layer in cost.layers) == cost.parameters
    assert sum(layer.gradient_bytes for layer in cost.layers) == cost.gradient_bytes
    if not cost.profile.has_sparse_gradients:
        assert cost.gradient_bytes == 4 * cost.trainable_parameters
    for quantity in GROWING_QUANTITIES:
        total = cost.profile.totals[quantity].at(3)
        assert sum(getattr(layer, quantity) for layer in cost.layers) == pytest.approx(total)


@pytest.mark.parametrize("name", NETWORKS)
def test_products_account_for_all_arithmetic(name):
    for layer in zoo.build(name).cost(4).layers:
        for pass_name in ("forward", "weight_gradient", "input_gradient"):
            gemms = getattr(layer, f"{pass_name}_gemms")
            counted = sum(2 * g.m * g.n * g.k * g.count for g in gemms)
            assert counted == pytest.approx(getattr(layer, f"{pass_name}_flops"))


@pytest.mark.parametrize("name", NETWORKS)
def test_shorter_numbers_move_and_keep_less_and_compute_the_same(name):
    graph = zoo.build(name)
    wide, narrow = graph.cost(8, precision="fp32"), graph.cost(8, precision="bf16")
    assert narrow.training_flops == wide.training_flops
    assert narrow.gradient_bytes == wide.gradient_bytes // 2
    assert 0.5 <= narrow.activation_bytes / wide.activation_bytes < 1
    assert 0.5 <= narrow.forward_bytes / wide.forward_bytes < 1


def test_convolution_cost_matches_manual_count():
    conv = Convolution(8, (3, 3), (2, 2), (1, 1), (1, 1), groups=2, bias=True)
    stem = Convolution(4, (1, 1), (1, 1), (0, 0), (1, 1))
    nodes = (Node("first", stem, ("x",)), Node("second", conv, ("first",)))
    graph = Graph("two", {"x": InputSpec((4, 6, 6))}, nodes, "second")
    layer = cost_of(graph, "second", batch=5)
    assert layer.output_shape == (8, 3, 3)
    assert layer.tensors == (("weight", 8 * 2 * 9), ("bias", 8))
    multiplications = 5 * 8 * 3 * 3 * (2 * 9)
    assert layer.forward_flops == 2 * multiplications
    assert layer.weight_gradient_flops == layer.input_gradient_flops == 2 * multiplications
    (gemm,) = layer.forward_gemms
    assert (gemm.m, gemm.n, gemm.k, gemm.count) == (4, 5 * 9, 18, 2)
    (gemm,) = layer.weight_gradient_gemms
    assert (gemm.m, gemm.n, gemm.k, gemm.count) == (4, 18, 5 * 9, 2)
    (gemm,) = layer.input_gradient_gemms
    assert (gemm.m, gemm.n, gemm.k, gemm.count) == (18, 5 * 9, 4, 2)
    weights = 8 * 2 * 9 + 8
    assert layer.forward_bytes == 4 * (5 * (4 * 36 + 8 * 9) + weights)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "ceil", "positions"),
    [(7, 3, 2, 1, False, 4), (6, 3, 2, 0, False, 2), (6, 3, 2, 0, True, 3), (5, 2, 3, 1, True, 2)],
)
def test_windows_count_their_positions(size, kernel, stride, padding, ceil, positions):
    pool = MaxPool((kernel,) * 2, (stride,) * 2, (padding,) * 2, ceil)
    assert pool.output(((3, size, size),)) == (3, positions, positions)


def test_a_transposed_convolution_undoes_the_shape_of_a_strided_one():
    up = Convolution(3, (2, 2), (2, 2), (0, 0), (1, 1), transposed=True)
    assert up.output(((8, 5, 7),)) == (3, 10, 14)
    (gemm,) = up.work(((8, 5, 7),), True).forward
    assert gemm.flops.per_sample == 2 * 35 * 8 * 3 * 4


def test_nothing_is_propagated_into_the_data():
    cost = zoo.build("resnet20").cost(2)
    first, second = [layer for layer in cost.layers if layer.kind == "conv"][:2]
    assert first.input_gradient_flops == 0
    assert first.weight_gradient_flops > 0
    assert second.input_gradient_flops > 0


def test_layers_before_the_first_weight_have_no_backward_pass():
    graph = chain((4,), Activation("relu"), Linear(2))
    relu = cost_of(graph, "activation")
    assert relu.forward_bytes > 0
    assert relu.backward_bytes == relu.activation_bytes == 0


def test_a_tensor_kept_by_two_layers_counts_once():
    relu_then_linear = chain((4,), Linear(6), Activation("relu"), Flatten())
    nodes = (*relu_then_linear.nodes, Node("second", Linear(3), ("flatten",)))
    graph = Graph("kept", relu_then_linear.inputs, nodes, "second")
    # x of the first matrix, then the rectifier's output, which the second reads through a view.
    assert graph.cost(1).activation_bytes == 4 * (4 + 6)


def test_batch_norm_keeps_its_input_and_two_numbers_per_channel():
    graph = chain((3, 2, 2), Convolution(5, (1, 1), (1, 1), (0, 0), (1, 1)), BatchNorm())
    norm = cost_of(graph, "batch_norm", batch=7)
    assert norm.activation_bytes == 7 * 5 * 4 * 4 + 2 * 5 * 4
    assert norm.parameters == 10


def test_gradients_of_a_fork_are_added():
    forked = Graph(
        "fork",
        {"x": InputSpec((4,))},
        (
            Node("stem", Linear(4), ("x",)),
            Node("left", Activation("relu"), ("stem",)),
            Node("sum", Add(), ("left", "stem")),
        ),
        "sum",
    )
    straight = chain((4,), Linear(4), Activation("relu"))
    added = cost_of(forked, "stem").backward_bytes - cost_of(straight, "linear").backward_bytes
    assert added == 3 * 4 * 4


def test_tied_weights_are_counted_once_and_their_bias_is_the_sharer_s_own():
    nodes = (
        Node("embedding", Embedding(100, 8), ("tokens",)),
        Node("head", Linear(100, bias=True), ("embedding",), "embedding"),
        Node("loss", CrossEntropy(), ("head", "tokens")),
    )
    graph = Graph("tied", {"tokens": InputSpec(("sequence",), "integer", 100)}, nodes, "loss", 5)
    cost = graph.cost(2)
    assert cost.parameters == 800 + 100
    head = cost_of(graph, "head")
    assert head.tensors == (("bias", 100),)
    assert head.weight_gradient_flops == head.forward_flops == 2 * 5 * 8 * 100


def test_a_large_model_s_arithmetic_does_not_overflow():
    cost = zoo.build("llama3_405b").cost(np.array([10_000]))
    assert cost.training_flops[0] == pytest.approx(
        zoo.build("llama3_405b").cost(10_000).training_flops
    )
    assert cost.training_flops[0] > 2e20


def test_layer_costs_are_lazy_views_of_the_profile():
    cost = zoo.build("resnet50").cost(np.arange(1, 1001))
    assert all(isinstance(layer, LayerCost) for layer in cost.layers)
    assert cost.layers[0].forward_flops.shape == (1000,)
    assert zoo.build("resnet50").profile() is zoo.build("resnet50").profile()
