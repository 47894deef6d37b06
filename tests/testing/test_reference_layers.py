"""Every layer of the NumPy reference, and every small network, beside PyTorch's in float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_model  # noqa: E402

from paceline.frameworks.operations import COMMON_ACTIVATIONS, COMMON_OPERATIONS  # noqa: E402
from paceline.testing.reference import (  # noqa: E402
    OPERATIONS,
    initial_weights,
    loss_and_gradients,
)
from paceline.testing.small_networks import SMALL_NETWORKS  # noqa: E402
from paceline.workload import ops, zoo  # noqa: E402
from paceline.workload.ops.codec import fields_of  # noqa: E402
from paceline.workload.shapes import with_shapes  # noqa: E402

pytestmark = pytest.mark.torch

WINDOW = ((3, 2), (2, 1), (1, 0))
TOKENS = (6, 16)
LAYERS = {
    "convolution": (ops.Convolution(8, (3, 5), (2, 1), (1, 2), (2, 1), bias=True), [(3, 20, 21)]),
    "grouped": (ops.Convolution(6, (3, 3), (2, 2), (1, 1), (1, 1), groups=2), [(4, 9, 8)]),
    "depthwise": (ops.Convolution(4, (3, 3), (1, 1), (1, 1), (1, 1), groups=4), [(4, 5, 6)]),
    "linear of tokens": (ops.Linear(7), [(5, 3)]),
    "batch_norm": (ops.BatchNorm(), [(6, 4, 5)]),
    "batch_norm of features": (ops.BatchNorm(), [(6,)]),
    "layer_norm": (ops.LayerNorm(), [(5, 8)]),
    "layer_norm without bias": (ops.LayerNorm(bias=False), [(5, 8)]),
    "rms_norm": (ops.RmsNorm(), [(5, 8)]),
    "local_response_norm": (ops.LocalResponseNorm(5), [(8, 4, 3)]),
    "local_response_norm of even size": (ops.LocalResponseNorm(4), [(8, 4, 3)]),
    "max_pool": (ops.MaxPool(*WINDOW), [(3, 9, 9)]),
    "max_pool that rounds up": (ops.MaxPool((3, 3), (2, 2), (0, 0), ceil=True), [(3, 12, 13)]),
    "avg_pool": (ops.AveragePool(*WINDOW), [(3, 9, 9)]),
    "global_avg_pool": (ops.GlobalAveragePool(), [(3, 4, 5)]),
    "add": (ops.Add(), [(3, 4), (3, 4), (3, 4)]),
    "multiply": (ops.Multiply(), [(3, 4), (3, 4)]),
    "multiply by channel": (ops.Multiply(), [(3, 4, 5), (3,)]),
    "flatten": (ops.Flatten(), [(3, 4, 5)]),
    "flatten positions": (ops.Flatten(1), [(3, 4, 5)]),
    "transpose": (ops.Transpose((2, 0, 1)), [(3, 4, 5)]),
    "slice": (ops.Slice(-1, 1, 3), [(3, 4)]),
    "concat": (ops.Concatenate(), [(3, 4), (2, 4)]),
    "concat of features": (ops.Concatenate(-1), [(3, 4), (3, 2)]),
    "pad_shortcut": (ops.PadShortcut(7, 2), [(4, 5, 6)]),
    "embedding": (ops.Embedding(9, 4), [(5,)]),
    "position_embedding": (ops.PositionEmbedding(10), [TOKENS]),
    "class_token": (ops.ClassToken(), [TOKENS]),
    "rotary": (ops.Rotary(8), [TOKENS]),
    "rotary of odd heads": (ops.Rotary(5), [(6, 15)]),
    "attention": (ops.Attention(4, 4, 4, causal=True), [TOKENS] * 3),
    "attention of others": (ops.Attention(4, 2, 4), [TOKENS, (7, 8), (7, 8)]),
    "lstm": (ops.Lstm(5, layers=2), [TOKENS]),
    "lstm both ways": (ops.Lstm(5, layers=2, bidirectional=True, bias=False), [TOKENS]),
    **{name: (ops.Activation(name), [(3, 40)]) for name in sorted(COMMON_ACTIVATIONS)},
}
LOSSES = {
    "cross_entropy": (ops.CrossEntropy(), [(4, 7), (4,)]),
    "weighted_sum": (ops.WeightedSum((1.0, 0.3)), [(), ()]),
    "binary_cross_entropy": (ops.ElementwiseLoss("binary_cross_entropy"), [(3, 2), (3, 2)]),
}
INTEGERS = {"embedding": {0: 9}, "cross_entropy": {1: 7}}
"""Inputs that are integers, and their limit."""

BATCH = 3


@pytest.fixture(autouse=True)
def double_precision(monkeypatch):
    """PyTorch in float64, also where a worker asks for 32 bits."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    yield
    torch.set_default_dtype(torch.float32)


def values_of(op, shapes):
    """Random tensors for the inputs of an operation; reals want gradients."""
    limits = INTEGERS.get(op.kind, {})
    return [
        torch.randint(limits[number], (BATCH, *shape))
        if number in limits
        else (3 * torch.randn(BATCH, *shape)).requires_grad_()
        for number, shape in enumerate(shapes)
    ]


def assert_same(found, tensor):
    np.testing.assert_allclose(found, tensor.detach().numpy(), rtol=1e-9, atol=1e-11)


def assert_layer(op, node, own, values, result):
    """The layer's result and gradients are those PyTorch has for the same values."""
    ours, backward = OPERATIONS[op.kind](
        node,
        [value.detach().numpy() for value in values],
        {short: parameter.detach().numpy() for short, parameter in own.items()},
    )
    assert_same(ours, result)
    wanted = torch.randn(result.shape)
    result.backward(wanted)
    of_inputs, of_own = backward(wanted.numpy())
    for value, gradient in zip(values, of_inputs, strict=True):
        if value.requires_grad:
            assert_same(gradient, value.grad)
    assert of_own.keys() == own.keys()
    for short, parameter in own.items():
        assert_same(of_own[short], parameter.grad)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_and_its_gradients_are_pytorchs(name):
    op, shapes = LAYERS[name]
    node = {"name": name, "op": op.kind, **fields_of(op), "output_shape": op.output(tuple(shapes))}
    values = values_of(op, shapes)
    module = torch_model.build_node(node, shapes)
    own = dict(module.named_parameters())
    for parameter in own.values():
        torch.nn.init.normal_(parameter)
    assert_layer(op, node, own, values, module(*values))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_and_its_gradients_are_pytorchs(name):
    op, shapes = LOSSES[name]
    node = {"name": name, "op": op.kind, **fields_of(op)}
    values = values_of(op, shapes)
    result = torch_model.LOSS_FUNCTIONS[op.kind](node, *values)
    assert_layer(op, node, {}, values, result)


def test_the_reference_has_every_operation_of_the_workers_but_dropout():
    tested = {op.kind for op, _ in [*LAYERS.values(), *LOSSES.values()]}
    assert tested == set(OPERATIONS) == COMMON_OPERATIONS - {"dropout"}


def random_batch(graph, random):
    shapes = {name: [BATCH, *spec["shape"]] for name, spec in graph["inputs"].items()}
    return {
        name: random.normal(size=shapes[name])
        if spec["dtype"] == "float"
        else random.integers(spec["limit"], size=shapes[name])
        for name, spec in graph["inputs"].items()
    }


@pytest.mark.parametrize("name", SMALL_NETWORKS)
def test_the_gradients_of_a_network_are_pytorchs(name):
    """Weights that two nodes share have the sum of both gradients."""
    random = np.random.default_rng(1)
    graph = with_shapes(SMALL_NETWORKS[name]().to_json())
    weights = {
        full: value + 0.1 * random.normal(size=value.shape)
        for full, value in initial_weights(graph, seed=1).items()
    }
    batch = random_batch(graph, random)
    torch.set_default_dtype(torch.float32)  # while shapes are worked out
    network, loss_of = torch_model.build(graph).double(), torch_model.build_loss(graph)
    torch.set_default_dtype(torch.float64)
    parameters = {}
    for node in graph["nodes"]:
        for short, parameter in network.node_parameters(node["name"]):
            if not any(parameter is other for other in parameters.values()):
                parameters[f"{node['name']}.{short}"] = parameter
    assert parameters.keys() == weights.keys()
    with torch.no_grad():
        for full, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(weights[full]))
    inputs, targets = (
        [torch.from_numpy(batch[one]) for one in names]
        for names in (network.input_names, loss_of.target_names)
    )
    result = loss_of(network(*inputs), *targets)
    result.backward()

    loss, gradients = loss_and_gradients(graph, weights, batch)
    assert loss == pytest.approx(result.item(), rel=1e-12)
    for full, parameter in parameters.items():
        assert_same(gradients[full], parameter.grad)


def test_small_networks_together_use_every_operation():
    """With the two of the zoo that every framework's contract trains; dropout is random."""
    graphs = [build() for build in SMALL_NETWORKS.values()]
    graphs += [zoo.build("fcn5"), zoo.build("resnet20")]
    nodes = [node.op for graph in graphs for node in graph.nodes]
    assert {op.kind for op in nodes} >= COMMON_OPERATIONS - {"dropout"}
    assert {op.function for op in nodes if op.kind == "activation"} == COMMON_ACTIVATIONS
