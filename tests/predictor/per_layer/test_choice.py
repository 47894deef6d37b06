"""Data or model parallelism for each layer: exact, and what it says of known networks."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.per_layer import PerLayerPlan, Way, choose_per_layer
from paceline.predictor.per_layer.segments import segments
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.workload import zoo
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload

ETHERNET = catalogue.cluster("hkbu-v100-pcie").shaped(8, 1)
INFINIBAND = catalogue.cluster("hkbu-v100-pcie-100g").shaped(8, 1)
TRICK = [Way.DATA] * 5 + [Way.MODEL] * 3


def node(name, op, source, **fields):
    return {"name": name, "op": op, "inputs": [source], **fields}


@st.composite
def small_networks(draw):
    """Convolutions, some of them residual, and linear layers: up to six parts."""
    nodes, last = [], "image"
    channels = draw(st.lists(st.sampled_from([16, 64, 256]), min_size=1, max_size=3))
    for number, width in enumerate(channels):
        shape = {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
        shape["out_channels"] = width
        nodes.append(node(f"conv{number}", "conv", last, bias=draw(st.booleans()), **shape))
        nodes.append(node(f"relu{number}", "activation", f"conv{number}", function="relu"))
        last = f"relu{number}"
        if draw(st.booleans()):
            nodes.append(node(f"inner{number}", "conv", last, **shape))
            sources = [f"inner{number}", last]
            nodes.append({"name": f"add{number}", "op": "add", "inputs": sources})
            last = f"add{number}"
    nodes.append(node("flatten", "flatten", last))
    last = "flatten"
    widths = draw(st.lists(st.sampled_from([10, 128, 2048]), min_size=1, max_size=3))
    for number, width in enumerate(widths):
        nodes.append(node(f"fc{number}", "linear", last, out_features=width))
        last = f"fc{number}"
    nodes.append({"name": "loss", "op": "cross_entropy", "inputs": [last, "label"]})
    inputs = {
        "image": {"shape": [3, 16, 16], "dtype": "float"},
        "label": {"shape": [], "dtype": "integer", "limit": 10},
    }
    return Graph.from_json(
        {
            "schema": "paceline/graph/1",
            "name": "small",
            "inputs": inputs,
            "nodes": nodes,
            "output": "loss",
        }
    )


@settings(max_examples=40, deadline=None)
@given(
    graph=small_networks(),
    batch=st.sampled_from([1, 8, 64]),
    shape=st.sampled_from([(2, 1), (4, 1), (2, 4)]),
    bandwidth=st.floats(1e7, 1e11),
    framework=st.sampled_from(["torch-ddp", "torch-single", "wfbp", "pydtnn"]),
)
@pytest.mark.thorough
def test_the_choice_is_that_of_trying_every_combination(graph, batch, shape, bandwidth, framework):
    cluster = catalogue.cluster("hkbu-v100-pcie").shaped(*shape)
    cluster = replace(cluster, inter=replace(cluster.inter, bandwidth=bandwidth))
    workload = replace(Workload.of("alexnet", batch), graph=graph)
    chosen = choose_per_layer(workload, cluster, Plan(framework=framework))
    steps = [
        PerLayerPlan(chosen.costs, ways).step.seconds
        for ways in product(Way, repeat=len(chosen.segments))
    ]
    assert chosen.step.seconds == pytest.approx(min(steps), rel=1e-9)


@pytest.mark.parametrize("network", ["alexnet", "vgg16", "resnet50", "googlenet", "mobilenet_v1"])
@pytest.mark.parametrize("batch", [1, 32])
def test_one_way_for_all_layers_is_what_the_scheduler_says_of_it(network, batch):
    workload = Workload.of(network, batch)
    plan = choose_per_layer(workload, ETHERNET)

    def scheduled(samples, spread):
        uncorrected = predict(
            workload.with_batch(samples), ETHERNET, spread, corrections=NO_CORRECTIONS
        )
        return uncorrected.step_seconds

    data = scheduled(batch, Plan(dp=8, synchronisation=synchronisation("per_tensor")))
    model = scheduled(8 * batch, Plan(tp=8))
    assert plan.all_in(Way.DATA).step.seconds == pytest.approx(data, rel=1e-9)
    assert plan.all_in(Way.MODEL).step.seconds == pytest.approx(model, rel=1e-9)
    assert plan.step.seconds <= min(data, model) * (1 + 1e-9)


@pytest.mark.parametrize("cluster", [ETHERNET, INFINIBAND])
def test_alexnet_has_data_parallel_convolutions_and_model_parallel_linear_layers(cluster):
    """Krizhevsky's "one weird trick" (arXiv 1404.5997) comes out, and pays several times."""
    plan = choose_per_layer(Workload.of("alexnet", 32), cluster)
    assert [part.name for part in plan.segments[5:]] == ["fc6", "fc7", "fc8"]
    assert list(plan.ways) == TRICK
    one_way = min(plan.all_in(way).step.seconds for way in Way)
    print(f"alexnet on {cluster.name}: {one_way / plan.step.seconds:.1f} times as fast")
    assert one_way > 2 * plan.step.seconds


def test_vgg_has_them_on_a_slow_link_and_is_all_data_parallel_on_a_fast_one():
    slow, fast = (choose_per_layer(Workload.of("vgg16", 48), c) for c in (ETHERNET, INFINIBAND))
    assert list(slow.ways) == [Way.DATA] * 13 + [Way.MODEL] * 3
    assert set(fast.ways) == {Way.DATA}


def test_large_batches_make_everything_data_parallel():
    for network in ("alexnet", "vgg16", "resnet50"):
        assert set(choose_per_layer(Workload.of(network, 512), INFINIBAND).ways) == {Way.DATA}


def test_residual_blocks_stay_in_one_piece():
    graph = zoo.build("resnet50")
    parts = segments(graph)
    assert [part.name for part in parts][:3] == ["conv1", "layer1.0.conv1", "layer1.1.conv1"]
    assert parts[-1].name == "fc"
    assert [i for part in parts for i in part.positions] == list(range(len(graph.nodes)))
    for part in parts[1:]:
        inside = {graph.nodes[i].name for i in part.positions}
        read = {name for i in part.positions for name in graph.nodes[i].inputs}
        assert read - inside - set(graph.inputs) == {part.source}


def test_what_cannot_be_chosen_per_layer_is_said():
    alexnet = Workload.of("alexnet", 8)
    with pytest.raises(InputError, match="does not support transformers"):
        segments(zoo.build("gpt2"))
    with pytest.raises(InputError, match="parameter servers"):
        choose_per_layer(alexnet, ETHERNET, Plan(framework="wfbp-ps"))
    with pytest.raises(InputError, match="sharded weights"):
        choose_per_layer(alexnet, ETHERNET, Plan(framework="torch-fsdp"))
    with pytest.raises(InputError, match="at least 2 devices"):
        choose_per_layer(alexnet, ETHERNET.shaped(1, 1))
