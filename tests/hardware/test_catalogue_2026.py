"""The catalogue knows the machines of 2026, each ready to be predicted on."""

import math

import pytest

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.workload.workload import Workload

DEVICES = (
    *("h800", "a800", "h20", "h200_sxm", "b200", "b300", "gb200", "gb300", "rtx 5090"),
    *("rtx pro 6000", "l40s", "mi300x", "mi325x", "mi355x", "gaudi2", "gaudi3", "tpu_v4"),
    *("tpu_v5e", "tpu_v5p", "tpu_v6e", "trainium1", "trainium2", "gh200"),
)
LINKS = (
    *("roce_400g", "roce_800g", "xdr", "efa", "efav3", "efav4", "slingshot", "eth_100g"),
    "gcp_tcpx_200g",
)
READY = sorted(catalogue.shipped().clusters)


@pytest.mark.parametrize("name", DEVICES)
def test_devices_of_2026_have_rates_memory_and_year(name):
    device = catalogue.device(name)
    assert device.peak("bf16") > 0
    assert device.known_memory_bytes > 1e10
    assert device.known_memory_bandwidth > 1e11
    assert device.year is not None
    assert device.provenance


@pytest.mark.parametrize("name", LINKS)
def test_links_of_2026_are_there(name):
    assert catalogue.link(name).known_bandwidth > 1e9


@pytest.mark.parametrize("name", READY)
def test_every_ready_cluster_is_predicted_on(name):
    cluster = catalogue.cluster(name)
    if cluster.inter is not None:
        cluster = cluster.with_nodes(2)
    arithmetic = next(p for p in ("bf16", "fp16", "fp32") if p in cluster.device.peak_flops)
    workload = Workload.of("gpt_h256_l2_a4", 1, 128, arithmetic, "adam")
    found = predict(workload, cluster, Plan(dp=cluster.devices))
    assert math.isfinite(found.step_seconds)
    assert 0 < found.efficiency <= 1


def test_prices_have_a_source_and_a_date():
    priced = [own for own in map(catalogue.cluster, READY) if own.price_per_device_hour is not None]
    assert len(priced) >= 4
    for cluster in priced:
        origin = cluster.provenance["price_per_device_hour"]
        assert origin.date
        assert "hourly rate" in origin.source
