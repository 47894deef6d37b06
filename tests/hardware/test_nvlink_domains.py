"""Machines joined by NVLink (GB200 NVL72) are one node; networks join such domains."""

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.hardware.cluster import fewest_domains
from paceline.hardware.usual_links import with_default_links

GB200 = catalogue.device("gb200")


@pytest.mark.parametrize(
    ("machines", "domains"), [(1, 1), (16, 1), (18, 1), (20, 2), (32, 2), (64, 4), (19, 19)]
)
def test_machines_fill_equal_domains(machines, domains):
    assert fewest_domains(machines, 4, 72) == domains


@pytest.mark.parametrize(
    ("nodes", "per_node", "shape"),
    [(16, 4, (1, 64)), (64, 4, (4, 64)), (2, 2, (1, 4)), (2, 72, (2, 72)), (1, 64, (1, 64))],
)
def test_nodes_of_a_machine_are_machines(nodes, per_node, shape):
    found = catalogue.cluster("gb200-nvl72").shaped(nodes, per_node)
    assert (found.nodes, found.devices_per_node) == shape
    assert found.nics_per_node == found.devices_per_node


def test_a_domain_is_the_default_and_a_stated_network_joins_machines():
    joined = with_default_links(GB200, 16, 4)
    assert (joined.nodes, joined.devices_per_node, joined.inter) == (1, 64, None)
    assert "NVLink domains of 64 devices" in joined.assumed
    larger = with_default_links(GB200, 64, 4)
    assert (larger.nodes, larger.devices_per_node) == (4, 64)
    assert larger.require_network().transport == "rdma"
    apart = with_default_links(GB200, 16, 4, outer=catalogue.link("ib_ndr_400g"), nics=4)
    assert (apart.nodes, apart.devices_per_node) == (16, 4)


def test_nvlink_between_machines_is_a_fabric():
    def seconds(**options):
        return pl.predict("llama3_8b", batch=1, zero=1, framework="megatron-lm", **options)

    stated = seconds(device="gb200", topology="16x4", link="nvlink5")
    whole = seconds(cluster="gb200-nvl72", topology="1x64")
    assert stated.step_seconds == pytest.approx(whole.step_seconds, rel=1e-3)
    with pytest.raises(InputError, match="link inside a node"):
        seconds(device="b200_sxm", topology="2x8", link="nvlink5")
