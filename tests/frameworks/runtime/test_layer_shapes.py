"""Shapes that workers infer from a graph's JSON, beside those that the graph itself infers."""

import math

import layer_shapes
import pytest

from paceline.frameworks.registry import framework
from paceline.testing.small_networks import SMALL_NETWORKS
from paceline.workload import ops, zoo
from paceline.workload.zoo.builder import NetworkBuilder

CLAIMED = [name for name in zoo.names() if framework("jax").claims(zoo.build(name).to_json())]
GRAPHS = {**{name: lambda name=name: zoo.build(name) for name in CLAIMED}, **SMALL_NETWORKS}


@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_parameters_are_those_the_graph_describes(name):
    graph = GRAPHS[name]()
    layers = graph.cost(1).layers
    values = layer_shapes.value_shapes(graph.to_json())
    tensors = {layer.name: {} for layer in layers}
    for node, short, shape in layer_shapes.parameter_shapes(graph.to_json()):
        tensors[node["name"]][short] = math.prod(shape)
    for layer in layers:
        assert values.get(layer.name, layer.output_shape) == layer.output_shape
        assert tensors[layer.name] == dict(layer.tensors)
    losses = {layer.name for layer in layers if layer.kind in layer_shapes.LOSSES}
    assert values.keys() == {*graph.inputs, *(layer.name for layer in layers)} - losses


def test_most_of_the_zoo_is_claimed():
    assert len(CLAIMED) == 73
    assert {"googlenet", "mobilenet_v2", "vit_b_16", "bert_base", "gpt2"} <= set(CLAIMED)


def test_a_length_of_sequences_is_asked_for_or_the_graphs_own():
    graph = zoo.build("gpt2").to_json()
    assert layer_shapes.value_shapes(graph, 5)["tokens"] == (5,)
    assert layer_shapes.value_shapes(graph)["tokens"] == (graph["sequence"],)


def tied(bias):
    net = NetworkBuilder("tied")
    x = net.embedding("embedding", net.integers("words", 11, "sequence"), 11, 4)
    scores = net.linear("head", x, 11, bias=bias, shares="embedding")
    return net.build(net.cross_entropy("loss", scores, net.integers("next", 11, "sequence")), 3)


def test_a_node_that_shares_weights_owns_the_rest():
    graph = tied(bias=True).to_json()
    assert layer_shapes.parameter_owners(graph) == {
        "embedding": {"weight": "embedding"},
        "head": {"weight": "embedding", "bias": "head"},
    }
    owned = [(node["name"], short) for node, short, _ in layer_shapes.parameter_shapes(graph)]
    assert owned == [("embedding", "weight"), ("head", "bias")]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "beyond"),
    [(13, 3, 2, 0), (12, 3, 2, 1), (8, 2, 3, 0), (7, 3, 3, 2), (9, 2, 2, 1)],
)
def test_how_far_the_last_window_of_a_pool_that_rounds_up_reaches(size, kernel, stride, beyond):
    net = NetworkBuilder("one")
    pool = ops.MaxPool((kernel,) * 2, (stride,) * 2, (0, 0), ceil=True)
    graph = net.build(net.add_node("pool", pool, net.image(2, size, size)))
    (node,) = graph.to_json()["nodes"]
    assert layer_shapes.beyond_end(node, (2, size, size)) == [beyond, beyond]
    windows = layer_shapes.value_shapes(graph.to_json())["pool"][1]
    assert (windows - 1) * stride + kernel == size + beyond or beyond == 0


def test_an_operation_that_is_not_there_is_named_with_its_node():
    graph = {
        "inputs": {"x": {"shape": [3]}},
        "nodes": [{"name": "gate", "op": "teleport", "inputs": ["x"]}],
    }
    with pytest.raises(ValueError, match="node 'gate': no operation 'teleport'"):
        layer_shapes.value_shapes(graph)
