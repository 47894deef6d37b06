"""Parts of a predicted step are what goes when one cause is switched off."""

from dataclasses import replace

import pytest

from paceline.explanation.predicted_waterfall import predicted_waterfall
from paceline.hardware import catalogue
from paceline.predictor.evidence import Evidence
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.workload import zoo
from paceline.workload.workload import Workload


@pytest.fixture
def cluster():
    found = replace(catalogue.cluster("hkbu-v100-pcie"), nodes=4, devices_per_node=1)
    return replace(found, inter=catalogue.link("eth_10g"))


def parts(prediction):
    waterfall = predicted_waterfall(prediction)
    assert waterfall.total_seconds == pytest.approx(prediction.step_seconds)
    return {item.label: item.seconds for item in waterfall.items}


def test_the_network_part_is_the_gain_of_a_free_network(cluster):
    workload = Workload(zoo.build("vgg16"), 32)
    now = predict(workload, cluster, Plan(dp=4))
    free = replace(cluster.inter, bandwidth=1e20, latency_seconds=0.0, collective_bandwidth=None)
    quick = predict(workload, replace(cluster, inter=free), Plan(dp=4))
    saved = now.step_seconds - quick.step_seconds
    assert parts(now)["network"] - parts(quick).get("network", 0.0) == pytest.approx(
        saved, rel=0.03
    )


def test_the_waiting_part_is_the_gain_of_equal_workers(cluster):
    workload = Workload(zoo.build("resnet50"), 32)
    uneven, even = (
        predict(workload, cluster, Plan(dp=4), evidence=Evidence(spread=spread))
        for spread in (0.1, 0.0)
    )
    saved = uneven.step_seconds - even.step_seconds
    lost = parts(uneven)["waiting for the slowest"]
    assert lost > 0.05 * even.step_seconds
    assert lost - parts(even).get("waiting for the slowest", 0.0) == pytest.approx(saved, rel=0.1)


def test_one_device_has_an_ideal_and_next_to_nothing_else(cluster):
    alone = predict(Workload(zoo.build("resnet50"), 32), replace(cluster, nodes=1), Plan(dp=1))
    found = predicted_waterfall(alone)
    assert found.ideal_seconds > 0.9 * found.total_seconds
