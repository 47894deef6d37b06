"""Seconds of collectives on links with round numbers, computed by hand (alpha-beta model).

alpha: 10 us per message inside a node and 100 us between nodes; beta: 1/(100 GB/s) per byte of a
device's inner link and 1/(10 GB/s) per byte of the NICs of a node.
"""

import dataclasses

import numpy as np
import pytest

from paceline.hardware import Cluster, Device, Link
from paceline.predictor.comm.collective_cost import (
    Choice,
    VariantCost,
    collective_cost,
    cost_on_fabric,
    variant_cost,
)
from paceline.predictor.comm.fabric import Fabric, fabric_of
from paceline.predictor.comm.library import Library, Negotiation, Rule, Variant
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.comm.parameter_server import parameter_server_cost
from paceline.predictor.comm.rank_group import Group

FABRIC = Fabric(
    inner="nvlink",
    outer="rdma",
    inner_bandwidth=100e9,
    outer_bandwidth=10e9,
    inner_latency_seconds=4e-6,
    outer_latency_seconds=60e-6,
)
HOPS = {"nvlink": 6e-6, "rdma": 40e-6}
RING = Variant("all_reduce", "ring", "Simple", start_seconds=5e-6, hop_seconds=HOPS)
HIERARCHICAL = dataclasses.replace(RING, algorithm="hierarchical", protocol="")


def a_library(*variants, **changes):
    fields = {
        "name": "by hand",
        "variants": variants,
        "rules": (),
        "efficiency": {},
        "pipelined": False,
        "hides_reduction": False,
        "uses_collective_bandwidth": False,
        "message_overhead_seconds": 0.0,
        "interference": 0.0,
        "source": "this test",
    }
    return Library(**{**fields, **changes})


def cost(variant=RING, group=None, fabric=FABRIC, **changes):
    return variant_cost(variant, group or Group(4, 4), fabric, a_library(variant, **changes))


def test_ring_inside_a_node():
    found = cost()
    assert found.latency_seconds == pytest.approx(5e-6 + 6 * 10e-6)
    assert found.seconds_per_byte == pytest.approx(1.5 / 100e9)
    assert found.seconds(1e9) == pytest.approx(65e-6 + 0.015)
    assert found.name == "ring/Simple"


def test_ring_over_nodes_is_as_fast_as_its_slowest_link():
    """2 nodes of 4: 14 hops, a quarter of them between nodes; 2 * 7/8 M through every link."""
    found = cost(group=Group(8, 4))
    assert found.latency_seconds == pytest.approx(5e-6 + 10.5 * 10e-6 + 3.5 * 100e-6)
    assert found.seconds_per_byte == pytest.approx(1.75 / 10e9)


def test_phases_of_a_hierarchical_all_reduce_add():
    found = cost(HIERARCHICAL, Group(8, 4))
    assert found.latency_seconds == pytest.approx(5e-6 + 6 * 10e-6 + 2 * 100e-6)
    assert found.seconds_per_byte == pytest.approx(1.5 / 100e9 + 1.0 / 10e9)


@pytest.mark.parametrize(("hides", "expected"), [(False, 1.5e-11 + 3e-12), (True, 1.5e-11)])
def test_a_reduction_adds_unless_it_is_hidden(hides, expected):
    """3/4 of M is summed at 250 GB/s: 3 ps per byte, next to 15 ps of transfer."""
    fabric = dataclasses.replace(FABRIC, reduce_bandwidth=250e9)
    found = cost(fabric=fabric, hides_reduction=hides)
    assert found.seconds_per_byte == pytest.approx(expected)


def test_a_hidden_reduction_slower_than_the_transfer_decides():
    fabric = dataclasses.replace(FABRIC, reduce_bandwidth=25e9)
    assert cost(fabric=fabric, hides_reduction=True).seconds_per_byte == pytest.approx(0.75 / 25e9)


def test_protocols_reach_a_fraction_of_the_bandwidth():
    slow = dataclasses.replace(RING, bandwidth_fraction=0.5, half_ranks=4.0)
    # Half of the rate by the protocol, and half of that again among 4 ranks.
    assert cost(slow).seconds_per_byte == pytest.approx(1.5 / (100e9 * 0.25))
    assert cost(slow, Group(16, 16)).seconds_per_byte == pytest.approx(1.875 / 50e9 * 1.25)


def test_efficiency_of_links_by_family_or_as_measured():
    shares = {"nvlink": 0.5, "rdma": 0.25}
    assert cost(efficiency=shares).seconds_per_byte == pytest.approx(1.5 / 50e9)
    across = cost(HIERARCHICAL, Group(8, 4), efficiency=shares)
    assert across.seconds_per_byte == pytest.approx(1.5 / 50e9 + 1.0 / 2.5e9)
    measured = dataclasses.replace(FABRIC, inner_efficiency=0.8, outer_efficiency=0.4)
    ignored = cost(HIERARCHICAL, Group(8, 4), measured, efficiency=shares)
    assert ignored.seconds_per_byte == across.seconds_per_byte
    used = cost(
        HIERARCHICAL, Group(8, 4), measured, efficiency=shares, uses_collective_bandwidth=True
    )
    assert used.seconds_per_byte == pytest.approx(1.5 / 80e9 + 1.0 / 4e9)


def test_start_and_hops_scale_with_the_clock():
    clocked = dataclasses.replace(RING, clock_mhz=2000.0)
    half = dataclasses.replace(FABRIC, clock_mhz=1000.0)
    # The latency of the link itself (4 us) does not.
    assert cost(clocked, fabric=half).latency_seconds == pytest.approx(10e-6 + 6 * (12e-6 + 4e-6))
    assert cost(clocked).latency_seconds == cost().latency_seconds
    assert cost(RING, fabric=half).latency_seconds == cost().latency_seconds


def test_negotiation_precedes_the_message():
    """Two trees over 4 ranks of a node: 2 levels each of 20 + 4 us."""
    found = cost(negotiation=Negotiation(2, {"nvlink": 20e-6}))
    assert found.latency_seconds == pytest.approx(65e-6 + 2 * 2 * 24e-6)


def test_a_pipelined_message_takes_the_longer_of_latency_and_transfer():
    both = VariantCost("x", 1e-3, 1e-9, pipelined=True)
    assert both.seconds(5e5) == 1e-3
    assert both.seconds(2e6) == pytest.approx(2e-3)
    assert VariantCost("x", 1e-3, 1e-9).seconds(2e6) == pytest.approx(3e-3)


def test_the_middle_adds_a_share_of_the_geometric_mean():
    assert VariantCost("x", 4e-3, 1e-9, middle=0.5).seconds(1e6) == pytest.approx(
        4e-3 + 1e-3 + 0.5 * 2e-3
    )


SLOW_START, FAST_LINK = VariantCost("ring", 1e-3, 1e-9), VariantCost("tree", 1e-4, 4e-9)


@pytest.mark.parametrize(
    ("size", "name", "seconds"),
    [(1e5, "tree", 5e-4), (2e5, "tree", 9e-4), (4e5, "ring", 1.4e-3), (1e6, "ring", 2e-3)],
)
def test_without_rules_the_fastest_variant_is_taken(size, name, seconds):
    """They meet where 1e-4 + 4e-9 x = 1e-3 + 1e-9 x: at 300 kB."""
    choice = Choice((SLOW_START, FAST_LINK))
    assert choice.taken(size) == name
    assert choice.seconds(size) == pytest.approx(seconds)


def test_a_rule_switches_at_its_limit():
    choice = Choice((FAST_LINK, SLOW_START), (5e5, float("inf")))
    assert [choice.taken(size) for size in (499_999.0, 5e5)] == ["tree", "ring"]
    assert float(choice.seconds(np.float64(499_999.0))) == pytest.approx(1e-4 + 4e-9 * 499_999)
    # The ring needs 1.5 ms at the limit, the tree 2.1 ms: time stays there until the ring does.
    assert float(choice.seconds(np.float64(5e5))) == pytest.approx(2.1e-3)
    assert float(choice.seconds(np.float64(1e6))) == pytest.approx(2.1e-3)
    assert float(choice.seconds(np.float64(2e6))) == pytest.approx(3e-3)


def test_rules_by_ranks_and_bytes():
    rules = (
        Rule("all_reduce", "tree", 4, 1000.0),
        Rule("all_reduce", "ring", 4, float("inf")),
        Rule("all_reduce", "hierarchical", float("inf"), float("inf")),
    )
    tree = dataclasses.replace(RING, algorithm="tree", protocol="")
    which = a_library(RING, HIERARCHICAL, tree, rules=rules)

    def taken(ranks, size):
        return cost_on_fabric("all_reduce", Group(ranks, 8), FABRIC, which).taken(size)

    assert taken(3, 999.0) == "tree"
    assert taken(3, 1000.0) == "ring/Simple"
    assert taken(4, 999.0) == taken(4, 1e9) == "hierarchical"
    many = cost_on_fabric("all_reduce", Group(np.array([3.0, 4.0]), 8), FABRIC, which)
    alone = [
        cost_on_fabric("all_reduce", Group(ranks, 8), FABRIC, which).seconds(2000.0)
        for ranks in (3.0, 4.0)
    ]
    assert many.seconds(2000.0) == pytest.approx(alone)


def test_variants_of_one_node_and_of_switches():
    one_node = dataclasses.replace(RING, protocol="one node", start_seconds=1.0, one_node=True)
    switch = dataclasses.replace(
        RING, algorithm="switch", protocol="", start_seconds=0.0, one_node=True, needs_switch=True
    )
    pcie = dataclasses.replace(RING, protocol="pcie", start_seconds=0.0, inner_families=("pcie",))
    which = a_library(RING, one_node, switch, pcie)

    def taken(group, fabric=FABRIC):
        return cost_on_fabric("all_reduce", group, fabric, which).taken(1e6)

    assert taken(Group(8, 8)) == "ring/one node", "slower, but the only one of a node"
    assert taken(Group(16, 8)) == "ring/Simple"
    reducing = dataclasses.replace(FABRIC, sums_in_switch=True)
    assert taken(Group(8, 8), reducing) == "switch"
    assert taken(Group(16, 8), dataclasses.replace(FABRIC, inner="pcie")) == "ring/pcie"


def test_nothing_takes_no_time():
    found = cost_on_fabric("all_reduce", Group(4, 4), FABRIC, a_library(RING))
    assert found.seconds(0.0) == 0.0
    assert found.seconds(np.array([0.0, 1e9])) == pytest.approx([0.0, 65e-6 + 0.015])
    assert cost_on_fabric("all_reduce", Group(1, 4), FABRIC, a_library(RING)).seconds(1e9) == 0.0


def test_features_are_copied_once_each_way():
    """Read and written at the memory bandwidth, which is three times that of reductions."""
    gather = dataclasses.replace(RING, operation="all_gather")
    fabric = dataclasses.replace(FABRIC, reduce_bandwidth=300e9)
    which = a_library(gather, message_overhead_seconds=7e-6)
    plain = cost_on_fabric("all_gather", Group(4, 4), fabric, which).seconds(9e8)
    copied = cost_on_fabric("gather_features", Group(4, 4), fabric, which).seconds(9e8)
    assert copied - plain == pytest.approx(7e-6 + 2 * 9e8 / 900e9)
    unknown = cost_on_fabric("gather_features", Group(4, 4), FABRIC, which).seconds(9e8)
    without = cost_on_fabric("all_gather", Group(4, 4), FABRIC, which).seconds(9e8)
    assert unknown - without == pytest.approx(7e-6)


# Fabric: what a group gets of a node with 8 devices, 4 NICs of 12.5 GB/s, RDMA.

DEVICE = Device("d", "nvidia", "gpu", {"fp16": 1e14}, 80e9, 900e9, clock_mhz=1500.0)
NVLINK = Link("nv", "intra", 300e9, "device", 2e-6, "nvlink", collective_bandwidth=240e9)
NIC = Link("ib", "inter", 12.5e9, "nic", 3e-6, "infiniband", "rdma")


def a_cluster(**changes):
    fields = {"intra": NVLINK, "inter": NIC, "nics_per_node": 4}
    return Cluster("c", DEVICE, 8, 2, **{**fields, **changes})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Group(16, 8), 50e9),  # all NICs
        (Group(2, 1), 12.5e9),  # one device reaches one NIC
        (Group(4, 2), 25e9),
        (Group(2, 1, concurrent_groups=8), 50e9 / 8),  # eight groups share four NICs
        (Group(2, 1, concurrent_groups=2), 12.5e9),
    ],
)
def test_share_of_the_nics(group, expected):
    assert fabric_of(a_cluster(), group).outer_bandwidth == pytest.approx(expected)


def test_more_nics_than_devices():
    where = a_cluster(nics_per_node=16)
    assert fabric_of(where, Group(2, 1)).outer_bandwidth == pytest.approx(2 * 12.5e9)
    assert fabric_of(where, Group(16, 8)).outer_bandwidth == pytest.approx(200e9)


@pytest.mark.parametrize(
    ("per", "all_of_them", "one"), [("node", 12.5e9, 12.5e9 / 4), ("device", 100e9, 12.5e9)]
)
def test_bandwidth_of_a_node_or_a_device(per, all_of_them, one):
    where = a_cluster(inter=dataclasses.replace(NIC, per=per))
    assert fabric_of(where, Group(16, 8)).outer_bandwidth == pytest.approx(all_of_them)
    assert fabric_of(where, Group(2, 1)).outer_bandwidth == pytest.approx(one)


def test_oversubscribed_core():
    fabric = fabric_of(a_cluster(oversubscription=2.0), Group(16, 8))
    assert fabric.outer_bandwidth == pytest.approx(25e9)


def test_constants_of_the_links():
    fabric = fabric_of(a_cluster(), Group(16, 8))
    assert (fabric.inner, fabric.outer) == ("nvlink", "rdma")
    assert (fabric.inner_bandwidth, fabric.inner_latency_seconds) == (300e9, 2e-6)
    assert fabric.outer_latency_seconds == 3e-6
    assert fabric.inner_efficiency == pytest.approx(0.8)
    assert fabric.outer_efficiency is None
    # A sum reads two operands and writes one.
    assert fabric.reduce_bandwidth == pytest.approx(300e9)
    assert fabric.clock_mhz == 1500.0
    shared = a_cluster(intra=dataclasses.replace(NVLINK, per="node", collective_bandwidth=None))
    assert fabric_of(shared, Group(8, 8)).inner_bandwidth == pytest.approx(300e9 / 8)


def test_collective_of_a_cluster():
    """Ring over 2 x 8: 2 * 15/16 of M through 50 GB/s of NICs; 26 hops inside, 4 between."""
    found = collective_cost("all_reduce", Group(16, 8), a_cluster(), a_library(RING))
    hops = 30 * 14 / 16 * 8e-6 + 30 * 2 / 16 * 43e-6
    reduced = 15 / 16 * 1e9 / 300e9
    assert found.seconds(1e9) == pytest.approx(5e-6 + hops + 1.875 / 50 + reduced)


# Parameter servers: nodes of one device, so only the NICs count (Li et al. 2014).

SINGLE = Cluster(
    "s",
    dataclasses.replace(DEVICE, memory_bandwidth=None),
    1,
    4,
    inter=dataclasses.replace(NIC, bandwidth=1e9),
)
SEND = Variant("point_to_point", "direct", start_seconds=5e-6, hop_seconds={"rdma": 40e-6})


@pytest.mark.parametrize(
    ("servers", "colocated", "busiest"),
    [
        (4, True, 0.75),  # each node keeps the quarter of its own server
        (1, True, 3.0),  # three nodes send everything to one
        (2, True, 1.5),
        (8, True, 0.75),
        (4, False, 1.0),
        (1, False, 4.0),
        (8, False, 1.0),  # now the workers' NICs decide
    ],
)
def test_busiest_nic_of_parameter_servers(servers, colocated, busiest):
    found = parameter_server_cost(
        Group(4, 1), SINGLE, a_library(SEND), servers=servers, colocated=colocated
    )
    assert found.seconds_per_byte == pytest.approx(2 * busiest / 1e9)
    assert found.latency_seconds == pytest.approx(2 * (45e-6 + 3e-6))
    assert found.seconds(1e6) == pytest.approx(96e-6 + 2e-3 * busiest)
    assert found.seconds(0.0) == 0.0


@pytest.mark.parametrize(
    ("ranks", "colocated", "busiest"),
    [(1, True, 0.0), (1, False, 1.0), (2, True, 0.5), (3, True, 2 / 3)],
)
def test_few_workers_of_parameter_servers(ranks, colocated, busiest):
    """A lone worker with its own server sends nothing; each of two keeps its half."""
    found = parameter_server_cost(Group(ranks, 1), SINGLE, a_library(SEND), colocated=colocated)
    assert found.seconds_per_byte == pytest.approx(2 * busiest / 1e9)


def test_servers_sum_what_they_receive():
    device = dataclasses.replace(DEVICE, memory_bandwidth=30e9)
    where = dataclasses.replace(SINGLE, device=device)
    found = parameter_server_cost(Group(4, 1), where, a_library(SEND), servers=2, colocated=False)
    assert found.seconds_per_byte == pytest.approx(2 * 2.0 / 1e9 + 2 / 10e9)


def test_devices_of_a_node_sum_before_they_send():
    where = a_cluster(nics_per_node=1)
    hop = dataclasses.replace(SEND, hop_seconds={"rdma": 40e-6, "nvlink": 6e-6})
    found = parameter_server_cost(Group(16, 8), where, a_library(hop, efficiency={"nvlink": 0.5}))
    inside = 2 * 7 / 8 / 150e9
    assert found.seconds_per_byte == pytest.approx(inside + 2 * 0.5 / 12.5e9 + 1 / 300e9)
    assert found.latency_seconds == pytest.approx(2 * 48e-6 + 14 * (11e-6 + 2e-6))


# Measured curves.


def test_a_curve_is_linear_on_logarithmic_axes_and_affine_beyond():
    curve = MeasuredCurve.through([(100.0, 1e-3), (10_000.0, 4e-3), (1e6, 1e-1)])
    assert curve.seconds(10.0) == pytest.approx(1e-3)
    assert curve.seconds(1000.0) == pytest.approx(2e-3)
    assert curve.seconds(1e5) == pytest.approx(2e-2)
    rate = (1e-1 - 4e-3) / (1e6 - 1e4)
    assert curve.seconds(3e6) == pytest.approx(1e-1 + 2e6 * rate)
    assert curve.seconds(0.0) == 0.0
    assert curve.slower(3.0).seconds(1000.0) == pytest.approx(6e-3)


def test_the_slope_beyond_a_curve_ignores_points_above_half_of_its_end():
    near = MeasuredCurve.through([(1e6, 1e-2), (4e6, 4e-2), (5e6, 4.1e-2), (8e6, 7e-2)])
    assert near.seconds(9e6) - near.seconds(8e6) == pytest.approx(1e6 * (3e-2 / 4e6))


def test_repetitions_give_their_median_and_noise_never_lowers_a_curve():
    points = [(1e3, 3e-3), (1e3, 1e-3), (1e3, 2e-3), (2e3, 1e-3), (0.0, 1.0), (5.0, 0.0)]
    curve = MeasuredCurve.through(points)
    assert curve.sizes == (1e3, 2e3)
    assert curve.times == pytest.approx((2e-3, 2e-3))
    # Without a rise, the mean bandwidth of the last point.
    assert curve.seconds(3e3) == pytest.approx(2e-3 + 1e3 * 2e-3 / 2e3)
