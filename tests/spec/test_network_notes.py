"""The answer states NICs, and what TCP reaches of the line rate."""

import re

import pytest

import paceline as pl


def notes(**options):
    return " ".join(pl.predict("resnet50", batch=32, **options).notes)


def test_tcp_says_what_a_nic_reaches():
    found = notes(device="h100_sxm_80gb", topology="2x8", link="eth_100g")
    assert re.search(r"eth_100g over TCP reaches [\d.]+ GB/s per NIC, of 12.5 GB/s", found)
    assert "RDMA (RoCE, InfiniBand) would reach" in found
    assert "over TCP" not in notes(device="h100_sxm_80gb", topology="2x8", link="ib_ndr_400g")
    assert "over TCP" not in notes(device="h100_sxm_80gb", topology="2x8", link="eth_10g")


@pytest.mark.parametrize(
    ("options", "nics"),
    [
        ({"device": "h100_sxm_80gb", "link": "100gbit"}, 8),
        ({"device": "h100_sxm_80gb", "link": "100gbit", "nics": 2}, 2),
        ({"device": "h100_sxm_80gb", "link": "eth_100g"}, 1),
        ({"cluster": "dgx-h100", "link": "eth_100g"}, 8),
        ({"cluster": "dgx-h100", "link": "eth_100g", "nics": 1}, 1),
    ],
)
def test_a_stated_link_keeps_the_nics_of_a_node_and_says_so(options, nics):
    found = pl.predict("resnet50", batch=32, topology="2x8", **options)
    assert found.cluster.nics_per_node == nics
    assumed = any(f"{nics} NICs" in note for note in found.notes)
    assert assumed == (nics == 8)


def test_a_link_by_rate_is_accepted_on_one_node():
    for link in ("10gbit", "eth_10g"):
        found = pl.predict("resnet50", batch=32, device="rtx4090", topology="1x2", link=link)
        assert found.cluster.nodes == 1
