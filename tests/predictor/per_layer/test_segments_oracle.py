"""Segments of small networks, cut by hand."""

import pytest

from paceline.errors import InputError
from paceline.predictor.per_layer.segments import segments
from paceline.workload import Graph, InputSpec, Node, ops, zoo


def conv(filters):
    return ops.Convolution(filters, (3, 3), (1, 1), (1, 1), (1, 1))


def graph(*nodes):
    inputs = {"x": InputSpec((3, 8, 8)), "label": InputSpec((), "integer", 10)}
    return Graph("net", inputs, nodes, nodes[-1].name)


def names(own):
    return [(segment.name, segment.source, len(segment.positions)) for segment in segments(own)]


def test_a_chain_is_cut_at_every_matrix():
    own = graph(
        Node("conv1", conv(8), ("x",)),
        Node("relu1", ops.Activation("relu"), ("conv1",)),
        Node("conv2", conv(8), ("relu1",)),
        Node("flatten", ops.Flatten(), ("conv2",)),
        Node("fc", ops.Linear(10), ("flatten",)),
        Node("loss", ops.CrossEntropy(), ("fc", "label")),
    )
    assert names(own) == [("conv1", "", 2), ("conv2", "relu1", 2), ("fc", "flatten", 2)]


def test_a_residual_block_is_one_segment():
    own = graph(
        Node("conv1", conv(8), ("x",)),
        Node("conv2", conv(8), ("conv1",)),
        Node("conv3", conv(8), ("conv2",)),
        Node("add", ops.Add(), ("conv3", "conv1")),
        Node("conv4", conv(8), ("add",)),
        Node("flatten", ops.Flatten(), ("conv4",)),
        Node("fc", ops.Linear(10), ("flatten",)),
        Node("loss", ops.CrossEntropy(), ("fc", "label")),
    )
    # conv1 crosses every cut until the sum; conv2 reads it alone.
    assert [name for name, _, _ in names(own)] == ["conv1", "conv2", "conv4", "fc"]


def test_shared_weights_stay_in_one_segment():
    """conv3 shares the weights of conv1, so nothing between them is a cut."""
    plain = (
        Node("conv1", conv(3), ("x",)),
        Node("conv2", conv(3), ("conv1",)),
        Node("conv3", conv(3), ("conv2",)),
        Node("conv4", conv(3), ("conv3",)),
    )
    shared = (
        *plain[:2],
        Node("conv3", conv(3), ("conv2",), shares_weights_with="conv1"),
        plain[3],
    )
    tail = (
        Node("flatten", ops.Flatten(), ("conv4",)),
        Node("fc", ops.Linear(10), ("flatten",)),
        Node("loss", ops.CrossEntropy(), ("fc", "label")),
    )
    cuts = [name for name, _, _ in names(graph(*plain, *tail))]
    assert cuts == ["conv1", "conv2", "conv3", "conv4", "fc"]
    assert [name for name, _, _ in names(graph(*shared, *tail))] == [
        "conv1",
        "conv2",
        "conv4",
        "fc",
    ]


def test_transformers_are_refused():
    with pytest.raises(InputError, match="does not support transformers"):
        segments(zoo.build("gpt2"))
