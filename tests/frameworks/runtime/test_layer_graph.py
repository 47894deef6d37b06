"""Programs that workers run a graph by."""

import layer_graph
import pytest

from paceline.testing.small_networks import SMALL_NETWORKS, small_images
from paceline.workload import ops
from paceline.workload.shapes import with_shapes
from paceline.workload.zoo.network_builder import NetworkBuilder


def run_of(program, name):
    (found,) = [run for run in program.runs if run.node["name"] == name]
    return found


def small_graph():
    net = NetworkBuilder("small")
    x = net.batch_norm("norm", net.conv("conv", net.image(3, 4, 4), 5, 3, bias=True))
    graph = net.classifier_loss(net.linear("fc", net.flatten("flat", x), 7), 7)
    return with_shapes(graph.to_json())


def test_a_program_runs_the_framework_s_functions_on_named_parameters():
    """A framework on text: each operation returns its arguments as a string."""

    def operation(node, values, own):
        arguments = [*values, *(f"{short}={value}" for short, value in own.items())]
        return f"{node['op']}({', '.join(arguments)})"

    net = NetworkBuilder("two")
    graph = net.build(net.activation("out", net.linear("fc", net.image(3, name="x"), 2)))
    program = layer_graph.whole_program(with_shapes(graph.to_json()))
    result = program.run(
        {"linear": operation, "activation": operation},
        {"fc.weight": "w", "fc.bias": "b"},
        {"x": "x"},
    )
    assert result == "activation(linear(x, weight=w, bias=b))"


def test_batch_normalisation_reads_its_running_statistics_too():
    run = run_of(layer_graph.whole_program(small_graph()), "norm")
    assert run.own == {
        short: f"norm.{short}" for short in ("weight", "bias", "running_mean", "running_var")
    }


def test_a_linear_layer_reads_a_shared_embedding_as_rows():
    program = layer_graph.whole_program(with_shapes(SMALL_NETWORKS["small_gpt"]().to_json()))
    (head,) = [run for run in program.runs if layer_graph.TIED_ROWS in run.own]
    assert head.node["op"] == "linear"
    owner, short = head.own[layer_graph.TIED_ROWS].rsplit(".", 1)
    assert run_of(program, owner).node["op"] == "embedding"
    assert run_of(program, owner).own == {short: f"{owner}.{short}"}
    assert "weight" not in head.own


def test_loss_program_reads_the_output_of_the_network():
    graph = small_images().to_json()
    program = layer_graph.loss_program(graph)
    kinds = [run.node["op"] for run in program.runs]
    assert sorted(kinds) == ["cross_entropy", "cross_entropy", "weighted_sum"]
    assert program.output == graph["output"]
    network, loss, reads = layer_graph.split_loss(graph)
    assert reads == ["side.head", "head"]
    assert [run.node for run in program.runs] == loss
    assert len(network) + len(loss) == len(graph["nodes"])
    value = program.run(
        {
            "cross_entropy": lambda node, values, own: values[0] * values[1],
            "weighted_sum": lambda node, values, own: sum(
                w * x for w, x in zip(node["weights"], values, strict=True)
            ),
        },
        {},
        {"side.head": 2.0, "head": 5.0, "label": 10.0},
    )
    assert value == pytest.approx(1.0 * 50.0 + 0.3 * 20.0)


def test_a_network_without_a_loss_is_its_output():
    net = NetworkBuilder("plain")
    graph = net.build(net.linear("fc", net.image(3), 2)).to_json()
    assert layer_graph.split_loss(graph) == (graph["nodes"], [], ["fc"])


def tied(bias):
    net = NetworkBuilder("tied")
    x = net.embedding("embedding", net.integers("words", 11, "sequence"), 11, 4)
    scores = net.linear("head", x, 11, bias=bias, shares="embedding")
    return net.build(net.cross_entropy("loss", scores, net.integers("next", 11, "sequence")), 3)


def test_a_node_that_shares_weights_owns_the_rest():
    graph = with_shapes(tied(bias=True).to_json())
    assert layer_graph.parameter_owners(graph) == {
        "embedding": {"weight": "embedding"},
        "head": {"weight": "embedding", "bias": "head"},
        "loss": {},
    }
    owned = [(node["name"], *rest) for node, *rest in layer_graph.trained_parameters(graph)]
    assert owned == [("embedding", "weight", (11, 4)), ("head", "bias", (11,))]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "beyond"),
    [(13, 3, 2, 0), (12, 3, 2, 1), (8, 2, 3, 0), (7, 3, 3, 2), (9, 2, 2, 1)],
)
def test_how_far_the_last_window_of_a_pool_that_rounds_up_reaches(size, kernel, stride, beyond):
    net = NetworkBuilder("one")
    pool = ops.MaxPool((kernel,) * 2, (stride,) * 2, (0, 0), ceil=True)
    graph = net.build(net.add_node("pool", pool, net.image(2, size, size)))
    (node,) = with_shapes(graph.to_json())["nodes"]
    assert layer_graph.beyond_end(node, (size, size)) == [beyond, beyond]
    windows = node["output_shape"][1]
    assert (windows - 1) * stride + kernel == size + beyond or beyond == 0


def test_frozen_weights_are_refused_rather_than_trained():
    graph = small_graph()
    graph["nodes"][0]["frozen"] = True
    with pytest.raises(ValueError, match="node 'conv': frozen weights"):
        layer_graph.trained_parameters(graph)
