"""Check 7: model parallelism by filter against data parallelism along the five axes.

The study says that model parallelism pays only at small batch, on slow links, for networks with
heavy linear layers. Both ways train on the same samples per step. What holds here, and the three
corners where it does not, is asserted below and said in ``docs/guides/sweeps-and-advice.md``.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.sweep import AXES, DataParallelSweep, compare
from paceline.workload.workload import Workload

GBIT = 1.25e8
HEAVY_LINEAR = ["alexnet", "vgg16"]
CONVOLUTIONAL = ["resnet50", "googlenet", "inception_v3", "mobilenet_v1", "densenet121"]
CLUSTER = catalogue.cluster("hkbu-v100-pcie-100g").shaped(8, 1)
"""Eight nodes of one V100 on EDR InfiniBand."""
BASE = DataParallelSweep(Workload.of("alexnet", 1), CLUSTER).base
RANGES = {
    "batch": [1, 2, 4, 8, 16, 32, 64, 128, 256],
    "flops": list(BASE["flops"] * np.geomspace(0.01, 10, 10)),
    "memory": list(BASE["memory"] * np.geomspace(0.03, 10, 10)),
    "link": list(GBIT * np.geomspace(0.1, 400, 10)),
    "nodes": [2, 4, 8, 16, 32, 64],
}
LINES = [(axis, batch) for axis in AXES for batch in (1, 8, 64) if axis != "batch" or batch == 1]
"""Axes to sweep, each with so many samples per worker (the first on the axis of batches)."""


@cache
def along(network, axis, batch):
    """Both ways along one axis, the others as the cluster has them."""
    return compare(Workload.of(network, batch), CLUSTER, {axis: RANGES[axis]})


def gain(comparison):
    """Time of data parallelism over that of model parallelism: above one, the latter pays."""
    return comparison.seconds["dp"] / comparison.seconds["mp"]


def batch_crossing(network, gigabits):
    """First batch per worker from which data parallelism is faster on such a link; 1 if always."""
    cluster = replace(CLUSTER, inter=replace(CLUSTER.inter, bandwidth=gigabits * GBIT))
    found = compare(Workload.of(network, 1), cluster, {"batch": [1, 512]})
    if gain(found)[0] < 1:
        return 1
    ((crossing,),) = found.crossings
    assert (crossing.faster_below, crossing.faster_beyond) == ("mp", "dp")
    return round(crossing.value)


def show(network, axis, batch):
    found = along(network, axis, batch)
    relative = 1.0 if axis in ("batch", "nodes") else BASE[axis]
    solved = [
        f"{c.faster_below} to {c.faster_beyond} at {c.value / relative:.3g}"
        for c in found.crossings[0]
    ]
    print(
        f"{network}, {'' if axis == 'batch' else f'{batch} per worker, '}{axis}: "
        f"dp/mp {gain(found)[0]:.2f} to {gain(found)[-1]:.2f}; {', '.join(solved) or 'no crossing'}"
    )


@pytest.mark.parametrize("network", CONVOLUTIONAL)
@pytest.mark.thorough
def test_networks_of_convolutions_gain_nothing_but_on_slow_devices(network):
    """The corner: one sample per worker and a device fifty times slower.

    Convolutions of one small image are narrow products, which model parallelism makes squarer;
    that outweighs its messages only where computing is far slower than the link.
    """
    for axis, batch in LINES:
        show(network, axis, batch)
        pays = np.array(RANGES[axis])[gain(along(network, axis, batch)) > 1]
        slow = 0.02 * BASE["flops"] if axis == "flops" and batch == 1 else 0.0
        assert (pays < slow).all(), (axis, batch, pays)


@pytest.mark.parametrize("network", HEAVY_LINEAR)
def test_heavy_linear_layers_gain_at_small_batch_and_less_on_faster_links(network):
    """The corner: among two nodes AlexNet gains a little even with 64 samples per worker.

    Each has to gather the activations of one other only; the gradients are as many as ever.
    """
    for axis, batch in LINES:
        show(network, axis, batch)
        if batch == 64:
            gains = gain(along(network, axis, batch))
            pair = np.array(RANGES[axis]) == 2 if (axis, network) == ("nodes", "alexnet") else False
            assert (gains < np.where(pair, 1.07, 1.0)).all(), axis
    crossings = {gigabits: batch_crossing(network, gigabits) for gigabits in (0.1, 1, 10, 100, 400)}
    print(f"{network}: first batch per worker where data parallelism wins, by Gbit/s: {crossings}")
    batches = list(crossings.values())
    assert batches == sorted(batches, reverse=True), "faster links leave model parallelism less"
    assert 1 < batches[0] <= 64


@pytest.mark.parametrize("network", HEAVY_LINEAR)
def test_at_the_largest_batch_that_gains_a_faster_link_turns_it_round(network):
    batch = batch_crossing(network, 0.1) - 1
    links = GBIT * np.geomspace(0.1, 4000, 20)
    found = compare(Workload.of(network, batch), CLUSTER, {"link": links})
    ((crossing,),) = found.crossings
    print(
        f"{network}, {batch} per worker: model parallel up to {crossing.value / GBIT:.1f} Gbit/s "
        f"({crossing.step_seconds * 1e3:.1f} ms per step), data parallel beyond"
    )
    assert (crossing.faster_below, crossing.faster_beyond) == ("mp", "dp")


@pytest.mark.parametrize("network", HEAVY_LINEAR)
def test_more_workers_of_the_same_batch_turn_it_round_too(network):
    """Activations to gather grow with the samples of all workers, gradients to sum do not."""
    batch = max(1, batch_crossing(network, 100) // 2)
    ((crossing,),) = compare(Workload.of(network, batch), CLUSTER, {"nodes": [8, 512]}).crossings
    print(f"{network}, {batch} per worker: data parallel from {crossing.value:.0f} nodes on")
    assert (crossing.faster_below, crossing.faster_beyond) == ("mp", "dp")


@pytest.mark.parametrize(("network", "most"), [("alexnet", 14), ("vgg16", 2)])
def test_a_link_that_costs_nothing_leaves_the_traffic_of_weights(network, most):
    """The corner on fast links: every data-parallel worker updates and reads all weights.

    Model parallelism divides that memory traffic. Without bandwidth limits between nodes AlexNet
    still gains at the smallest batches, VGG-16 at one sample, so "only on slow links" does not
    hold there.
    """
    unlimited = batch_crossing(network, 1e9)
    print(f"{network} on a link of no cost: data parallel from {unlimited} per worker on")
    assert unlimited <= most
    data = DataParallelSweep(Workload.of(network, 1), CLUSTER)
    weights = Workload.of(network, 1).cost.parameters
    memory = np.array([BASE["memory"]])
    update = data.update_seconds(weights, memory) - data.update_seconds(weights / 8, memory)
    free = compare(Workload.of(network, 1), CLUSTER, {"link": [1e9 * GBIT]}).seconds
    print(f"  of dp {free['dp'][0]:.4f} s, mp {free['mp'][0]:.4f} s: {update[0]:.4f} s are updates")
    assert free["dp"][0] - free["mp"][0] < 2.5 * update[0]


def test_the_scheduler_says_the_same_of_processors_with_the_studys_library():
    """PyDTNN on Xeons, a global batch divided among 8: no overlap, im2col, Open MPI."""

    def model_over_data(model, link, batch, nodes=8):
        one = catalogue.cluster("xeon-edr").shaped(1, 1)
        cluster = replace(one, inter=catalogue.link(link)).with_nodes(nodes)
        data = Workload.of(model, batch // nodes)
        by_batch = predict(data, cluster, Plan(dp=nodes, framework="pydtnn"))
        by_filter = predict(data.with_batch(batch), cluster, Plan(tp=nodes, framework="pydtnn"))
        return by_filter.step_seconds / by_batch.step_seconds

    links = ("eth_1g", "eth_10g", "ib_edr_100g")
    for link in links:
        for batch in (8, 64, 512):
            assert model_over_data("resnet50", link, batch) > 1, (link, batch)
    for model in HEAVY_LINEAR:
        small = [model_over_data(model, link, 8) for link in links]
        large = [model_over_data(model, link, 2048) for link in links]
        print(f"{model}: batch 8 {small}, batch 2048 {large} (model over data parallel)")
        assert small[0] < 1
        assert small == sorted(small), "the slower the link, the more it pays"
        assert min(large) > 1
