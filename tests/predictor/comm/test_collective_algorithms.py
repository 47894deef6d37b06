"""Algorithms against the textbook's closed forms, and the bounds that none can beat."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collective_textbook import bus_bandwidth, closed_form_seconds
from paceline.errors import InputError, UnknownNameError
from paceline.predictor.comm.collective_algorithms import ALGORITHMS, hierarchical_all_reduce
from paceline.predictor.comm.rank_group import Group

ALPHA, BETA, GAMMA = 3e-5, 8e-10, 1e-10

sizes = st.floats(1.0, 1e10)
workers = st.integers(2, 600)
every_algorithm = pytest.mark.parametrize(
    ("operation", "algorithm"),
    [(operation, name) for operation, table in ALGORITHMS.items() for name in table],
)


def seconds(operation, algorithm, size, count, **constants):
    chosen = {
        "alpha_seconds": ALPHA,
        "beta_seconds_per_byte": BETA,
        "gamma_seconds_per_byte": GAMMA,
        **constants,
    }
    return closed_form_seconds(operation, algorithm, size, count, **chosen)


@given(sizes, workers)
def test_ring_all_reduce(size, count):
    expected = (
        2 * (count - 1) * ALPHA
        + 2 * (count - 1) / count * size * BETA
        + (count - 1) / count * size * GAMMA
    )
    assert seconds("all_reduce", "ring", size, count) == pytest.approx(expected)


@given(sizes, workers)
def test_recursive_doubling_all_reduce(size, count):
    expected = math.ceil(math.log2(count)) * (ALPHA + size * (BETA + GAMMA))
    assert seconds("all_reduce", "recursive_doubling", size, count) == pytest.approx(expected)


@given(sizes, st.integers(1, 10))
def test_halving_doubling_all_reduce_of_a_power_of_two(size, doublings):
    count = 2**doublings
    share = (count - 1) / count
    expected = 2 * doublings * ALPHA + 2 * share * size * BETA + share * size * GAMMA
    assert seconds("all_reduce", "halving_doubling", size, count) == pytest.approx(expected)


@given(sizes, workers)
def test_all_gather_reduce_scatter_and_tree_broadcast(size, count):
    part = (count - 1) * ALPHA + (count - 1) / count * size * BETA
    assert seconds("all_gather", "ring", size, count) == pytest.approx(part)
    summed = part + (count - 1) / count * size * GAMMA
    assert seconds("reduce_scatter", "ring", size, count) == pytest.approx(summed)
    levels = math.ceil(math.log2(count))
    assert seconds("broadcast", "tree", size, count) == pytest.approx(
        levels * (ALPHA + size * BETA)
    )


@given(sizes)
def test_two_workers_leave_every_algorithm_its_own_closed_form(size):
    """At N = 2 only the number of start-ups and who sends what is left of an algorithm."""
    free_sum = {"gamma_seconds_per_byte": 0.0}
    ring = seconds("all_reduce", "ring", size, 2, **free_sum)
    assert ring == pytest.approx(2 * ALPHA + size * BETA)
    assert seconds("all_reduce", "halving_doubling", size, 2, **free_sum) == pytest.approx(ring)
    assert seconds("all_reduce", "hierarchical", size, 2, **free_sum) == pytest.approx(ring)
    whole = seconds("all_reduce", "recursive_doubling", size, 2, **free_sum)
    assert whole == pytest.approx(ALPHA + size * BETA)
    for tree in ("tree", "double_tree"):
        assert seconds("all_reduce", tree, size, 2, **free_sum) == pytest.approx(2 * whole)
    assert seconds("broadcast", "chain", size, 2) == pytest.approx(whole)
    assert seconds("all_to_all", "pairwise", size, 2) == pytest.approx(ALPHA + size / 2 * BETA)


@every_algorithm
def test_one_worker_communicates_nothing(operation, algorithm):
    assert seconds(operation, algorithm, 1e9, 1) == 0.0


@every_algorithm
@settings(max_examples=25, deadline=None)
@given(size=sizes, count=workers)
def test_no_algorithm_beats_latency_or_bandwidth(operation, algorithm, size, count):
    """Information reaches N ranks in log2 N messages at best; each rank receives its part."""
    taken = seconds(operation, algorithm, size, count)
    one_message = operation in {"all_to_all", "point_to_point"} or algorithm == "switch"
    messages = 1 if one_message else math.ceil(math.log2(count))
    others = (count - 1) / count
    received = {"all_reduce": 2 * others, "broadcast": 1.0, "point_to_point": 1.0}
    volume = received.get(operation, others)
    if algorithm in {"switch", "recursive_doubling"} and operation == "all_reduce":
        # A switch sums for the ranks; recursive doubling sums M twice over in place of moving it.
        volume = 1.0
    assert taken >= messages * ALPHA * (1 - 1e-9)
    assert taken >= volume * size * BETA * (1 - 1e-9)


@every_algorithm
@settings(max_examples=25, deadline=None)
@given(size=sizes, more=st.floats(1.0, 10.0), count=workers)
def test_more_bytes_or_slower_links_never_take_less(operation, algorithm, size, more, count):
    taken = seconds(operation, algorithm, size, count)
    assert seconds(operation, algorithm, size * more, count) >= taken
    slower = seconds(operation, algorithm, size, count, beta_seconds_per_byte=BETA * more)
    assert slower >= taken
    later = seconds(operation, algorithm, size, count, alpha_seconds=ALPHA * more)
    assert later >= taken


@every_algorithm
@settings(max_examples=25, deadline=None)
@given(size=sizes, count=workers, factor=st.floats(0.1, 10.0))
def test_scaling_every_rate_scales_the_time(operation, algorithm, size, count, factor):
    slowed = closed_form_seconds(
        operation,
        algorithm,
        size,
        count,
        alpha_seconds=ALPHA * factor,
        beta_seconds_per_byte=BETA * factor,
        gamma_seconds_per_byte=GAMMA * factor,
    )
    assert slowed == pytest.approx(factor * seconds(operation, algorithm, size, count))


@every_algorithm
def test_arrays_give_what_single_numbers_give(operation, algorithm):
    many_sizes = np.array([1e3, 1e6, 1e9])
    many_workers = np.array([2.0, 12.0, 64.0])
    together = seconds(operation, algorithm, many_sizes, many_workers)
    alone = [
        seconds(operation, algorithm, float(size), float(count))
        for size, count in zip(many_sizes, many_workers, strict=True)
    ]
    assert together == pytest.approx(alone)


def test_hierarchy_sends_over_the_network_what_nodes_alone_would():
    counts = hierarchical_all_reduce(Group(32, 8))
    assert counts.outer_volume == pytest.approx(2 * 3 / 4)
    assert counts.outer_messages == 2 * 3
    assert counts.inner_volume == pytest.approx(2 * 7 / 8)


def test_bus_bandwidth_of_a_ring_at_line_rate_is_the_line_rate():
    taken = seconds("all_reduce", "ring", 1e9, 16, alpha_seconds=0.0, gamma_seconds_per_byte=0.0)
    assert bus_bandwidth(1e9, 16, taken) == pytest.approx(1 / BETA)


def test_unknown_names_are_answered():
    with pytest.raises(
        UnknownNameError, match=r"no all_reduce algorithm named 'rign'. Did you mean ring"
    ):
        seconds("all_reduce", "rign", 1e6, 4)
    with pytest.raises(InputError, match=r"ranks must be at least 1"):
        seconds("all_reduce", "ring", 1e6, 0)
