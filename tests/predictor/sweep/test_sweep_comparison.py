"""Data against model parallelism over the five axes, and where one overtakes the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError, UnknownNameError
from paceline.hardware import catalogue
from paceline.predictor.sweep import AXES, ModelParallelSweep, Points, compare
from paceline.predictor.sweep.crossover import crossings
from paceline.workload.workload import Workload

GBIT = 1.25e8
LINKS = list(np.geomspace(0.1, 400, 12) * GBIT)
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def one_device_per_node(nodes=8, cluster="hkbu-v100-pcie"):
    return catalogue.cluster(cluster).shaped(nodes, 1)


@settings(max_examples=25, deadline=None)
@given(
    network=st.sampled_from(["alexnet", "vgg16", "resnet50", "googlenet"]),
    batch=st.integers(1, 64),
    nodes=st.sampled_from([1, 2, 4, 8]),
    flops=st.floats(0.1, 10),
    memory=st.floats(0.1, 10),
    link=st.floats(0.01, 10),
)
def test_model_parallel_steps_are_those_of_the_scheduler(
    network, batch, nodes, flops, memory, link
):
    sweep = ModelParallelSweep(Workload.of(network, 8), one_device_per_node())
    base = sweep.base
    values = {
        "batch": float(batch),
        "flops": flops * base["flops"],
        "memory": memory * base["memory"],
        "link": link * base["link"],
        "nodes": float(nodes),
    }
    point = Points(*(np.array([values[name]]) for name in AXES))
    assert sweep.at(point)[0] == pytest.approx(sweep.scheduled(values).step_seconds, rel=0.01)


@pytest.mark.parametrize("network", ["alexnet", "vgg16"])
def test_model_parallel_pays_for_heavy_linear_layers_at_small_batch_and_slow_links(network):
    found = compare(
        Workload.of(network, 1), one_device_per_node(), {"link": LINKS, "batch": BATCHES}
    )
    gain = found.seconds["dp"] / found.seconds["mp"]
    assert gain[0, 0] > 1.5, "one sample per worker on the slowest link"
    assert (gain[:, -2:] < 1).all(), "batches of 128 and more"
    assert (np.diff(gain, axis=1) < 0).all(), "it pays less the larger the batch"
    pays = gain > 1
    assert (np.diff(gain, axis=0)[pays[1:]] < 0.01).all(), "and less the faster the link"


@pytest.mark.parametrize("network", ["resnet50", "googlenet"])
def test_model_parallel_never_pays_for_convolutions(network):
    found = compare(
        Workload.of(network, 1), one_device_per_node(), {"link": LINKS, "batch": BATCHES}
    )
    assert (found.seconds["dp"] < found.seconds["mp"]).all()


@pytest.mark.parametrize("axis", ["flops", "memory", "link"])
def test_at_a_crossover_both_take_the_same(axis):
    # At 29 samples per worker the two ways are close, so that every axis has a crossover. On
    # RDMA: what TCP moves does not grow with a link of more than 2.7 GB/s.
    workload = Workload.of("alexnet", 29)
    cluster = one_device_per_node(cluster="hkbu-v100-pcie-100g")
    base = ModelParallelSweep(workload, cluster).base
    found = compare(workload, cluster, {axis: base[axis] * np.geomspace(0.01, 300, 9)})
    assert found.crossings[0]
    for crossing in found.crossings[0]:
        both = compare(workload, cluster, {axis: [crossing.value]})
        assert both.seconds["dp"][0] == pytest.approx(both.seconds["mp"][0], rel=1e-6)


def test_a_crossover_on_a_counted_axis_is_the_first_number_beyond_it():
    workload, cluster = Workload.of("alexnet", 1), one_device_per_node()
    (crossing,) = compare(workload, cluster, {"batch": [1, 256]}).crossings[0]
    before = compare(workload, cluster, {"batch": [crossing.value - 1]}).seconds
    beyond = compare(workload, cluster, {"batch": [crossing.value]}).seconds
    assert before["mp"][0] < before["dp"][0]
    assert beyond["dp"][0] < beyond["mp"][0]
    assert (crossing.faster_below, crossing.faster_beyond) == ("mp", "dp")


@given(st.floats(1.5, 900.0))
def test_a_bracketed_crossing_is_solved(place):
    values = [1.0, 30.0, 1000.0]
    (found,) = crossings(
        "link", values, ("a", "b"), ([place] * 3, values), (lambda x: place, lambda x: x)
    )
    assert found.value == pytest.approx(place, rel=1e-8)
    assert found.faster_beyond == "a"


def test_a_fixed_global_batch_shrinks_the_share_of_each_worker():
    workload, cluster = Workload.of("alexnet", 1), one_device_per_node()
    found = compare(workload, cluster, {"nodes": [1, 2, 4]}, global_batch=64)
    assert found.samples.tolist() == [64, 64, 64]
    with pytest.raises(InputError, match="smaller than the number of workers"):
        compare(workload, cluster, {"nodes": [1, 128]}, global_batch=64)


def test_unknown_axes_and_ways_are_named():
    workload, cluster = Workload.of("alexnet", 1), one_device_per_node()
    with pytest.raises(UnknownNameError, match="lnik"):
        compare(workload, cluster, {"lnik": [1.0]})
    with pytest.raises(UnknownNameError, match="pp"):
        compare(workload, cluster, {"nodes": [1]}, ["dp", "pp"])
    alone = catalogue.cluster("workstation-rtx4090")
    with pytest.raises(InputError, match="no network"):
        compare(workload, alone, {"link": [1e9, 2e9]})
