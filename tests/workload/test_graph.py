"""Graphs are validated on creation, name the invalid node, and round-trip through JSON."""

import json

import numpy as np
import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.workload import Graph, InputSpec, Node, zoo
from paceline.workload.ops import Add, Attention, Convolution, CrossEntropy, Flatten, Linear


def small_graph(**changes):
    nodes = (
        Node("flatten", Flatten(), ("image",)),
        Node("fc", Linear(10), ("flatten",)),
        Node("loss", CrossEntropy(), ("fc", "label")),
    )
    fields = {
        "name": "small",
        "inputs": {"image": InputSpec((3, 4, 4)), "label": InputSpec((), "integer", 10)},
        "nodes": nodes,
        "output": "loss",
    }
    return Graph(**{**fields, **changes})


def test_json_form_is_plain_data_with_the_fields_of_each_operation():
    document = small_graph().to_json()
    assert document["schema"] == "paceline/graph/1"
    assert document["inputs"]["label"] == {"shape": [], "dtype": "integer", "limit": 10}
    assert document["nodes"][1] == {
        "name": "fc",
        "op": "linear",
        "inputs": ["flatten"],
        "out_features": 10,
        "bias": True,
    }


@pytest.mark.parametrize("name", zoo.names())
def test_every_network_of_the_zoo_survives_json(name):
    graph = zoo.build(name)
    again = Graph.from_json(json.loads(json.dumps(graph.to_json())))
    assert again == graph
    assert again.cost(2).training_flops == graph.cost(2).training_flops


def test_a_shape_that_does_not_fit_names_the_node():
    graph = zoo.build("resnet20").with_inputs({"image": (3, 32)})
    with pytest.raises(InputError, match=r"node 'conv1' \(conv\): a 2-dimensional kernel"):
        graph.cost(1)


def test_a_sum_of_unequal_shapes_names_both():
    nodes = (
        Node("a", Linear(4), ("x",)),
        Node("b", Linear(5), ("x",)),
        Node("sum", Add(), ("a", "b")),
    )
    graph = Graph("unequal", {"x": InputSpec((3,))}, nodes, "sum")
    with pytest.raises(InputError, match=r"node 'sum' \(add\): cannot add 4 and 5"):
        graph.cost(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": ()}, "no nodes"),
        ({"output": "nowhere"}, "output 'nowhere'"),
        ({"nodes": (Node("fc", Linear(1), ("later",)),), "output": "fc"}, "reads 'later'"),
        ({"nodes": (Node("image", Linear(1), ("image",)),)}, "duplicate name 'image'"),
        (
            {"nodes": (Node("sum", Add(), ("image",)),), "output": "sum"},
            r"2 or more inputs \(got 1\)",
        ),
        (
            {"nodes": (Node("fc", Linear(1), ("image",), "ghost"),), "output": "fc"},
            "shares weights with 'ghost'",
        ),
    ],
)
def test_an_impossible_graph_is_refused_when_it_is_made(change, message):
    with pytest.raises(InputError, match=message):
        small_graph(**change)


@pytest.mark.parametrize(
    ("shape", "dtype", "limit"),
    [
        ((0,), "float", None),
        (("words",), "float", None),
        ((2,), "text", None),
        ((2,), "integer", 0),
    ],
)
def test_an_impossible_input_is_refused(shape, dtype, limit):
    with pytest.raises(InputError):
        InputSpec(shape, dtype, limit)


def test_an_unknown_operation_in_json_suggests_the_nearest():
    document = small_graph().to_json()
    document["nodes"][1]["op"] = "linaer"
    with pytest.raises(UnknownNameError, match=r"node 'fc': no operation named 'linaer'.*linear"):
        Graph.from_json(document)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("out_features", "ten", "'out_features' of 'linear' must be int"),
        ("out_features", 0, "out_features must be greater than 0"),
        ("outfeatures", 3, "no field of 'linear' named 'outfeatures'"),
    ],
)
def test_a_wrong_field_in_json_is_named(field, value, message):
    document = small_graph().to_json()
    document["nodes"][1][field] = value
    with pytest.raises((InputError, UnknownNameError), match=message):
        Graph.from_json(document)


def test_a_missing_field_and_a_foreign_document_are_named():
    document = small_graph().to_json()
    del document["nodes"][1]["out_features"]
    with pytest.raises(InputError, match="missing fields of 'linear': out_features"):
        Graph.from_json(document)
    with pytest.raises(InputError, match="not a layer graph"):
        Graph.from_json({"schema": "something/else"})
    with pytest.raises(InputError, match="has no 'nodes'"):
        Graph.from_json({"schema": "paceline/graph/1", "name": "x", "inputs": {}})


@pytest.mark.parametrize("batch", [0, -1, 1.5, "many", [], [1, 0], float("nan")])
def test_a_batch_that_cannot_be_is_refused(batch):
    with pytest.raises(InputError, match="batch must be"):
        small_graph().cost(batch)


@pytest.mark.parametrize("sequence", [0, -5, np.array([16, -1])])
def test_a_sequence_that_cannot_be_is_refused(sequence):
    with pytest.raises(InputError, match="sequence must be at least 1"):
        zoo.build("gpt2").cost(1, sequence)


def test_a_sequence_beyond_the_learned_positions_is_refused_with_the_limit():
    with pytest.raises(InputError, match="sequence of 4096 exceeds the 1024 learned positions"):
        zoo.build("gpt2").cost(1, 4096)


def test_weights_are_shared_only_between_equal_operations():
    nodes = (Node("a", Linear(4), ("x",)), Node("b", Linear(5), ("x",), "a"))
    graph = Graph("untied", {"x": InputSpec((3,))}, nodes, "b")
    with pytest.raises(InputError, match="no tensor in common with 'a'"):
        graph.cost(1)


def test_attention_can_be_made_to_write_its_scores():
    fused = zoo.build("gpt2")
    unfused = fused.with_attention(fused=False)
    assert any(isinstance(n.op, Attention) and not n.op.fused for n in unfused.nodes)
    assert unfused.cost(1).activation_bytes > fused.cost(1).activation_bytes
    assert unfused.cost(1).training_flops == fused.cost(1).training_flops


def test_the_same_network_takes_images_of_another_size():
    graph = zoo.build("resnet50")
    half = graph.with_inputs({"image": (3, 112, 112)})
    assert half.cost(1).parameters == graph.cost(1).parameters
    assert half.cost(1).forward_flops < graph.cost(1).forward_flops / 3
    with pytest.raises(InputError, match="no input 'picture'"):
        graph.with_inputs({"picture": (3, 112, 112)})


def test_operations_refuse_settings_that_cannot_be():
    with pytest.raises(InputError, match="not divisible by 3 groups"):
        Convolution(64, (3, 3), (1, 1), (1, 1), (1, 1), groups=3)
    with pytest.raises(InputError, match="must have equal length"):
        Convolution(64, (3, 3), (1,), (1, 1), (1, 1))
    with pytest.raises(InputError, match="not divisible by 5 key-value heads"):
        Attention(32, 5, 64)


def test_frozen_nodes_and_sparse_tables_survive_the_json_form():
    for name in ("llama2_7b_lora", "wide_deep_vocab1000_emb16_fc1x8"):
        graph = zoo.build(name)
        again = Graph.from_json(graph.to_json())
        assert again == graph
        assert again.cost(4).gradient_bytes == graph.cost(4).gradient_bytes
