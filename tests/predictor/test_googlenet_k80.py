"""Checks 1 to 3 of the model: GoogLeNet on K80 nodes, measured by the authors of B-Caffe."""

import numpy as np
import pytest

from paceline.constants import numbers_of
from paceline.located_toml import shipped_toml
from paceline.predictor.kernels.layer_traces import example_trace, layer_times
from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import GradientExchange, StepCosts
from paceline.predictor.uncertainty.step_corrections import cluster_corrections

TRACE = example_trace("googlenet_k80")
SYSTEM = numbers_of("overheads").table("cluster").table("hkbu-k80").values
IMAGES_PER_NODE = 64


def all_reduce(nodes):
    start = SYSTEM["latency_seconds"] + SYSTEM["latency_per_doubling_seconds"] * np.log2(nodes)
    return lambda size: start + 2 * (nodes - 1) / nodes * SYSTEM["seconds_per_byte"] * size


def replay(policy, seconds, interference=0.0):
    exchange = GradientExchange(synchronisation(policy), seconds)
    costs = StepCosts(interference=interference)
    return DeviceStep(layer_times(TRACE), exchange, costs).tasks()


def replay_on(policy, nodes):
    return replay(policy, all_reduce(nodes), cluster_corrections("hkbu-k80").interference)


def images_per_second(nodes, step):
    return nodes * IMAGES_PER_NODE / step.seconds


def show(what, nodes, predicted, measured):
    error = predicted / measured - 1
    print(f"{what}, {nodes} nodes: {predicted:.1f} images/s, measured {measured}: {error:+.2%}")
    return abs(error)


def test_check_1_per_tensor_overlap_with_the_logged_times():
    # Each message takes what was logged for it: sizes repeat, so times are served in order.
    logged = iter([layer.communication_seconds[8] for layer in reversed(TRACE.layers)])
    step = replay("per_tensor", lambda size: next(logged))
    assert show("per tensor, logged times", 8, images_per_second(8, step), 1006.4) <= 0.025


@pytest.mark.parametrize(("nodes", "measured"), [(2, 316.08), (4, 600.24), (8, 1210.88)])
def test_check_2_merged(nodes, measured):
    step = replay_on("merged", nodes)
    assert show("merged", nodes, images_per_second(nodes, step), measured) <= 0.05


@pytest.mark.parametrize(("nodes", "measured"), [(2, 250.28), (4, 461.36), (8, 889.28)])
def test_check_3_one_message(nodes, measured):
    step = replay_on("one_message", nodes)
    assert show("one message", nodes, images_per_second(nodes, step), measured) <= 0.04


def test_the_all_reduce_of_the_system_is_what_the_trace_says():
    document = shipped_toml("data", "traces", "googlenet_k80.toml").values
    passes = [*document["communication_us"].items(), *document["second_pass_us"].items()]
    sizes = np.array(document["gradient_bytes"], dtype=float)
    rows, times = [], []
    for nodes, microseconds in passes:
        n = int(nodes)
        ring = 2 * (n - 1) / n * sizes
        rows.append(np.column_stack([np.ones_like(sizes), np.full_like(sizes, np.log2(n)), ring]))
        times.append(np.array(microseconds) * 1e-6)
    # Scaled columns: the plain ones differ by thirteen orders of magnitude.
    scale = np.array([1.0, 1.0, 1e-6])
    matrix = np.concatenate(rows) * scale
    fitted = np.linalg.lstsq(matrix, np.concatenate(times), rcond=None)[0] * scale
    names = ("latency_seconds", "latency_per_doubling_seconds", "seconds_per_byte")
    stated = [SYSTEM[name] for name in names]
    assert fitted == pytest.approx(stated, rel=1e-4)


def test_one_node_alone_trains_what_was_measured():
    step = DeviceStep(layer_times(TRACE), None, StepCosts()).tasks()
    assert images_per_second(1, step) == pytest.approx(163.36, rel=1e-4)
