from dataclasses import replace

import pytest

from paceline.analysis.parity import (
    PARITY_SEQUENCE,
    PARITY_TOLERANCE,
    parity_job,
    with_suited_rate,
    within_reach_of_reference,
    without_dropout,
)
from paceline.testing.reference import reference_losses
from paceline.testing.small_networks import SMALL_NETWORKS
from paceline.workload import Graph, zoo

pytestmark = pytest.mark.thorough


def reached(name):
    graph = zoo.build(name)
    return within_reach_of_reference(graph, parity_job(graph))


@pytest.mark.parametrize("name", ["resnet20", *SMALL_NETWORKS])
def test_updates_that_are_one_percent_off_are_detected(name):
    graph = SMALL_NETWORKS[name]() if name in SMALL_NETWORKS else zoo.build(name)
    job = with_suited_rate(parity_job(graph))
    rate = job.optimiser.learning_rate
    off = replace(job, optimiser=replace(job.optimiser, learning_rate=1.01 * rate))
    pairs = zip(reference_losses(job), reference_losses(off), strict=True)
    assert max(abs(a - b) / b for a, b in pairs) > PARITY_TOLERANCE


@pytest.mark.parametrize("name", ["alexnet", "googlenet", "bert_base"])
def test_removing_dropout_changes_nothing_else(name):
    graph = zoo.build(name)
    plain = Graph.from_json(without_dropout(graph.to_json()))
    kinds = [node.op.kind for node in graph.nodes]
    assert "dropout" in kinds
    assert [node.op.kind for node in plain.nodes] == [kind for kind in kinds if kind != "dropout"]
    assert plain.cost(2).parameters == graph.cost(2).parameters
    assert plain.cost(2).training_flops == graph.cost(2).training_flops


def test_consecutive_dropouts_are_removed():
    node = {"op": "dropout", "probability": 0.5}
    graph = {
        "nodes": [
            {"name": "fc", "op": "linear", "inputs": ["x"]},
            {**node, "name": "first", "inputs": ["fc"]},
            {**node, "name": "second", "inputs": ["first"]},
            {"name": "sum", "op": "add", "inputs": ["second", "fc"]},
        ],
        "output": "sum",
    }
    assert [node["inputs"] for node in without_dropout(graph)["nodes"]] == [["x"], ["fc", "fc"]]


def test_parity_uses_short_sequences():
    graph = zoo.build("gpt2")
    assert graph.sequence > PARITY_SEQUENCE == parity_job(graph).sequence
    assert parity_job(zoo.build("resnet20")).sequence is None


def test_the_numpy_reference_has_limits():
    assert all(map(reached, ("alexnet", "vgg16", "googlenet", "gpt2", "bert_base", "lstm_ptb")))
    assert not any(map(reached, ("bert_large", "mixtral_8x7b", "gnmt_v2")))
