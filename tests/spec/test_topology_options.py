"""Places in the words of a person: links by name or rate, nics, faster parts."""

import pytest

import paceline as pl
from paceline.errors import InputError, UnknownNameError
from paceline.spec.resolve_cluster import cluster_of


def place(**words):
    return cluster_of("dgx-a100", {"nodes": 4, **words})


def test_a_link_may_be_a_rate_of_each_card():
    known = place()
    faster = place(link="400gbit")
    assert faster.inter.bandwidth == 50e9
    assert (faster.inter.name, faster.inter.transport) == ("400gbit", known.inter.transport)
    assert faster.nics_per_node == known.nics_per_node


@pytest.mark.parametrize("link", ["10gbit", "eth_10g"])
def test_a_rate_names_a_network_as_a_name_does(link):
    one_node = cluster_of(
        None, {"device": "a100_sxm_80gb", "nodes": 1, "processes": 2, "link": link}
    )
    assert one_node.inter.bandwidth == 1.25e9
    without_network = cluster_of("workstation-rtx4090", {"nodes": 2, "link": link})
    assert without_network.inter.bandwidth == 1.25e9


def test_cards_of_a_node_can_be_said():
    assert place(nics=1).nics_per_node == 1
    one, two = (
        pl.predict("bert_large", "dgx-a100", batch=8, nodes=8, link="10gbit", nics=nics)
        for nics in (1, 2)
    )
    assert two.step_seconds < one.step_seconds
    assert "1 NIC of 10gbit per node" in str(one)
    assert "2 NICs of 10gbit per node" in str(two)


def test_parts_can_be_made_faster():
    known, scaled = place(), place(scale="flops=2,memory=0.5,link=4")
    assert scaled.device.peak_flops["fp32"] == 2 * known.device.peak_flops["fp32"]
    assert scaled.device.memory_bandwidth == 0.5 * known.device.memory_bandwidth
    assert scaled.inter.bandwidth == 4 * known.inter.bandwidth
    assert scaled.inter.latency_seconds == known.inter.latency_seconds


@pytest.mark.parametrize("scale", ["flops", "flops=0", "flops=-1", "flops=nan", "link=1e9", ""])
def test_a_scale_that_means_nothing_is_refused(scale):
    with pytest.raises(InputError, match="invalid scale"):
        place(scale=scale)


def test_an_unknown_part_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="no scale named 'flop'"):
        place(scale="flop=2")


def test_small_rates_keep_their_digits():
    slow = pl.predict("llama3_70b", "dgx-a100", batch=1, nodes=2, zero=3, precision="bf16")
    assert slow.samples_per_second < 1
    line = next(line for line in str(slow).splitlines() if "throughput" in line)
    assert len(line.split()[1].lstrip("0.")) >= 3
    assert "tokens/s" in line
