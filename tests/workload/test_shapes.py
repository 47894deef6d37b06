"""Shapes in jobs for workers agree with the graph's costs."""

import math

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.testing.small_networks import SMALL_NETWORKS
from paceline.workload import zoo
from paceline.workload.shapes import with_shapes

GRAPHS = {
    **{name: lambda name=name: zoo.build(name) for name in ("resnet20", "googlenet", "bert_base")},
    **SMALL_NETWORKS,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_shapes_are_those_that_costs_are_worked_out_from(name):
    graph = GRAPHS[name]()
    nodes = {node["name"]: node for node in with_shapes(graph.to_json())["nodes"]}
    for layer in graph.cost(1).layers:
        node = nodes[layer.name]
        assert tuple(node["output_shape"]) == layer.output_shape
        sizes = {short: math.prod(shape) for short, shape in node["parameter_shapes"].items()}
        assert dict(layer.tensors).items() <= sizes.items()


def test_sequence_length_defaults_to_that_of_the_graph():
    graph = zoo.build("gpt2").to_json()
    assert with_shapes(graph, 5)["inputs"]["tokens"]["shape"] == [5]
    assert with_shapes(graph)["inputs"]["tokens"]["shape"] == [graph["sequence"]]
    with pytest.raises(InputError, match="needs a sequence length"):
        with_shapes({**graph, "sequence": None})


def test_an_operation_that_is_not_there_is_named_with_its_node():
    graph = zoo.build("fcn5").to_json()
    graph["nodes"][1]["op"] = "teleport"
    with pytest.raises(UnknownNameError, match=rf"node '{graph['nodes'][1]['name']}': .*teleport"):
        with_shapes(graph)


def test_shapes_that_do_not_fit_are_named_with_their_node():
    graph = zoo.build("resnet20").to_json()
    graph["inputs"]["image"]["shape"] = [3, 32]
    with pytest.raises(InputError, match="node '"):
        with_shapes(graph)
