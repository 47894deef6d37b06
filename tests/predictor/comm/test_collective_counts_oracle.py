"""Counts of collective algorithms against their message schedules, listed round by round.

The schedules are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
Operations in MPICH" (2005). A round is a list of (sender, receiver, multiple of M).
"""

import math
from collections import Counter

import pytest

from paceline.predictor.comm.collective_algorithms import ALGORITHMS, Counts
from paceline.predictor.comm.rank_group import Group

POWERS = [(2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 2), (8, 8), (16, 1), (16, 4), (16, 16)]
RINGS = [(n, 1) for n in range(2, 18)] + [(n, n) for n in range(2, 18)] + [(8, 4), (12, 4), (16, 2)]
powers = pytest.mark.parametrize(("ranks", "per_node"), POWERS)
rings = pytest.mark.parametrize(("ranks", "per_node"), RINGS)
one_node_and_many = pytest.mark.parametrize("per_node", [1, 99])
to_17 = pytest.mark.parametrize("ranks", range(2, 18))


def counts(operation, algorithm, ranks, per_node) -> Counts:
    return ALGORITHMS[operation][algorithm](Group(ranks, per_node))


def ring_rounds(ranks, passes):
    """Every rank passes an N-th of M to its neighbour, ``passes`` (N - 1) times."""
    return [[(r, (r + 1) % ranks, 1 / ranks) for r in range(ranks)]] * (passes * (ranks - 1))


def doubling_rounds(ranks, volume_of):
    """Partners at distance 1, 2, 4, ...; ``volume_of(distance)`` is what each sends."""
    distances = [2**d for d in range(ranks.bit_length() - 1)]
    return [[(r, r ^ d, volume_of(d)) for r in range(ranks)] for d in distances]


def binomial_rounds(ranks):
    """Broadcast from rank 0: in round d every rank that has M sends it on by 2**d."""
    rounds, have = [], 1
    while have < ranks:
        rounds.append([(r, r + have, 1.0) for r in range(min(have, ranks - have))])
        have *= 2
    return rounds


def volumes(rounds, per_node):
    """Largest multiple of M that a device sends inside its node, and that a node sends out."""
    device, node = Counter(), Counter()
    for messages in rounds:
        for sender, receiver, volume in messages:
            if sender // per_node == receiver // per_node:
                device[sender] += volume
            else:
                node[sender // per_node] += volume
    return max(device.values(), default=0.0), max(node.values(), default=0.0)


def serial_messages(rounds, per_node):
    """Rounds that stay in the nodes, and rounds with a message between nodes."""
    outer = sum(any(s // per_node != r // per_node for s, r, _ in messages) for messages in rounds)
    return len(rounds) - outer, outer


def assert_counts(found, rounds, per_node):
    assert (found.inner_messages, found.outer_messages) == serial_messages(rounds, per_node)
    assert (found.inner_volume, found.outer_volume) == pytest.approx(volumes(rounds, per_node))


@rings
@pytest.mark.parametrize(
    ("operation", "passes", "reduces"),
    [("all_reduce", 2, True), ("all_gather", 1, False), ("reduce_scatter", 1, True)],
)
def test_ring_volumes(operation, passes, reduces, ranks, per_node):
    found = counts(operation, "ring", ranks, per_node)
    device, node = volumes(ring_rounds(ranks, passes), per_node)
    # The last device of a node has no inner link in the ring if it is the only one there.
    assert found.inner_volume == pytest.approx(device)
    assert found.outer_volume == pytest.approx(node)
    assert found.inner_messages + found.outer_messages == pytest.approx(passes * (ranks - 1))
    assert found.reduced == pytest.approx((ranks - 1) / ranks if reduces else 0.0)
    assert found.together


def test_ring_of_two_nodes_of_four_crosses_nodes_in_two_of_its_eight_edges():
    found = counts("all_reduce", "ring", 8, 4)
    assert found.outer_messages == pytest.approx(14 * 2 / 8)
    assert found.inner_messages == pytest.approx(14 * 6 / 8)


@powers
def test_recursive_doubling_all_reduce(ranks, per_node):
    found = counts("all_reduce", "recursive_doubling", ranks, per_node)
    assert_counts(found, doubling_rounds(ranks, lambda distance: 1.0), per_node)
    assert found.reduced == math.log2(ranks)
    assert not found.together


@powers
@pytest.mark.parametrize(
    ("operation", "algorithm", "reduced"),
    [("all_gather", "recursive_doubling", 0.0), ("reduce_scatter", "recursive_halving", 1.0)],
)
def test_recursive_gather_and_scatter(operation, algorithm, reduced, ranks, per_node):
    """At distance d a rank has d parts and sends all of them; scattering runs backwards."""
    found = counts(operation, algorithm, ranks, per_node)
    assert_counts(found, doubling_rounds(ranks, lambda distance: distance / ranks), per_node)
    assert found.reduced == pytest.approx(reduced * (ranks - 1) / ranks)


@powers
def test_halving_doubling_all_reduce_of_powers_of_two(ranks, per_node):
    """Rabenseifner: halves, quarters, ... with partners at distance 1, 2, ..., and back."""
    found = counts("all_reduce", "halving_doubling", ranks, per_node)
    halving = doubling_rounds(ranks, lambda distance: 1 / (2 * distance))
    assert_counts(found, halving + halving[::-1], per_node)
    assert found.reduced == pytest.approx((ranks - 1) / ranks)


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 9, 12, 15, 17])
def test_halving_doubling_folds_ranks_beyond_a_power_of_two(ranks):
    """Extra ranks send M to a partner before, and receive M after: two messages of M."""
    rounds = 2 * (ranks - 1).bit_length() + 2
    volume = 2 * (ranks - 1) / ranks + 2
    one_node = counts("all_reduce", "halving_doubling", ranks, ranks)
    assert (one_node.inner_messages, one_node.outer_messages) == (rounds, 0)
    assert (one_node.inner_volume, one_node.outer_volume) == pytest.approx((volume, 0))
    across = counts("all_reduce", "halving_doubling", ranks, 1)
    assert (across.inner_messages, across.outer_messages) == (0, rounds)
    assert (across.inner_volume, across.outer_volume) == pytest.approx((0, volume))


@to_17
@one_node_and_many
def test_binomial_trees(ranks, per_node):
    rounds = binomial_rounds(ranks)
    levels = len(rounds)
    broadcast = counts("broadcast", "tree", ranks, per_node)
    inner, outer = (levels, 0) if per_node > 1 else (0, levels)
    assert (broadcast.inner_messages, broadcast.outer_messages) == (inner, outer)
    # The root sends M in each round.
    assert (broadcast.inner_volume, broadcast.outer_volume) == volumes(rounds, per_node)
    assert broadcast.reduced == 0.0
    reduced = counts("all_reduce", "tree", ranks, per_node)
    assert (reduced.inner_messages, reduced.outer_messages) == (2 * inner, 2 * outer)
    assert (reduced.inner_volume, reduced.outer_volume) == (2 * inner, 2 * outer)
    assert reduced.reduced == levels


@to_17
def test_chain_broadcast_in_pieces(ranks):
    """Each rank forwards every piece once; the last piece crosses N - 1 links."""
    inside = counts("broadcast", "chain", ranks, ranks)
    assert (inside.inner_messages, inside.outer_messages) == (ranks - 1, 0)
    assert (inside.inner_volume, inside.outer_volume) == (1, 0)
    across = counts("broadcast", "chain", ranks, 1)
    assert (across.inner_messages, across.outer_messages) == (0, ranks - 1)
    assert (across.inner_volume, across.outer_volume) == (0, 1)
    assert across.together


def test_chain_broadcast_through_three_nodes_of_four():
    found = counts("broadcast", "chain", 12, 4)
    assert (found.inner_messages, found.outer_messages) == (9, 2)


@powers
def test_scatter_then_gather_broadcast(ranks, per_node):
    """Van de Geijn: the root halves what it holds in each round, then a ring gathers.

    Between nodes first: M/2, M/4, ... leave the root's node; inside it gives away 1/N parts.
    """
    found = counts("broadcast", "scatter_gather", ranks, per_node)
    gather = counts("all_gather", "ring", ranks, per_node)
    nodes = ranks // min(ranks, per_node)
    held, inner, outer = 1.0, 0.0, 0.0
    for _ in range(nodes.bit_length() - 1):
        held /= 2
        outer += held
    for _ in range((ranks // nodes).bit_length() - 1):
        held /= 2
        inner += held
    assert found.inner_volume - gather.inner_volume == pytest.approx(inner)
    assert found.outer_volume - gather.outer_volume == pytest.approx(outer)
    rounds = found.inner_messages + found.outer_messages
    assert rounds == pytest.approx(math.log2(ranks) + ranks - 1)
    inner_rounds = math.log2(ranks // nodes) + gather.inner_messages
    assert found.inner_messages == pytest.approx(inner_rounds)


@rings
def test_pairwise_all_to_all(ranks, per_node):
    """In round k rank r sends an N-th of M to rank r + k."""
    rounds = [[(r, (r + k) % ranks, 1 / ranks) for r in range(ranks)] for k in range(1, ranks)]
    found = counts("all_to_all", "pairwise", ranks, per_node)
    device, node = volumes(rounds, per_node)
    assert (found.inner_volume, found.outer_volume) == pytest.approx((device, node))
    in_node = min(ranks, per_node)
    assert (found.inner_messages, found.outer_messages) == (in_node - 1, ranks - in_node)
    assert not found.together
    direct = counts("all_to_all", "direct", ranks, per_node)
    assert (direct.inner_volume, direct.outer_volume) == pytest.approx((device, node))
    assert direct.inner_messages == (1 if in_node > 1 else 0)
    assert direct.outer_messages == (1 if ranks > in_node else 0)
    assert direct.together


@pytest.mark.parametrize(
    ("ranks", "per_node", "inner", "outer"),
    [(2, 2, 2, 0), (8, 8, 14, 0), (16, 8, 14, 2), (32, 8, 14, 4), (34, 2, 2, 10), (17, 1, 0, 10)],
)
def test_double_tree_all_reduce(ranks, per_node, inner, outer):
    """NCCL 2.4: chains of the devices of a node, binary trees over nodes, up and down.

    17 nodes need trees of ceil(log2 17) = 5 levels.
    """
    found = counts("all_reduce", "double_tree", ranks, per_node)
    assert (found.inner_messages, found.outer_messages) == (inner, outer)
    assert found.inner_volume == (2 if inner else 0)
    assert found.outer_volume == (2 if outer else 0)
    assert found.reduced == 1
    assert found.together


@pytest.mark.parametrize(("ranks", "per_node"), [(4, 2), (8, 4), (12, 4), (34, 2), (17, 17)])
def test_hierarchical_all_reduce(ranks, per_node):
    """Rings in the nodes, then in_node rings of M / in_node between nodes, on the same NICs."""
    nodes = ranks // per_node
    inner = [volumes(ring_rounds(per_node, 1), per_node)[0]] * 2
    between = volumes(ring_rounds(nodes, 2), 1)[1] if nodes > 1 else 0.0
    found = counts("all_reduce", "hierarchical", ranks, per_node)
    assert found.inner_volume == pytest.approx(sum(inner))
    assert found.outer_volume == pytest.approx(per_node * between / per_node)
    assert found.inner_messages == 2 * (per_node - 1)
    assert found.outer_messages == 2 * (nodes - 1)
    assert found.reduced == pytest.approx((ranks - 1) / ranks), "every element is summed once"


@to_17
def test_switch_all_reduce(ranks):
    """NVLink SHARP: every device sends M to the switch, and its N-th of the results more."""
    found = counts("all_reduce", "switch", ranks, ranks)
    assert found.inner_messages == 1
    assert found.inner_volume == pytest.approx(1 + 1 / ranks)
    assert (found.outer_messages, found.outer_volume, found.reduced) == (0, 0, 0)


@pytest.mark.parametrize(
    ("ranks", "per_node", "expected"),
    [(1, 1, (0, 0, 0, 0)), (2, 2, (1, 0, 1, 0)), (2, 1, (0, 1, 0, 1)), (16, 8, (0, 1, 0, 1))],
)
def test_point_to_point(ranks, per_node, expected):
    found = counts("point_to_point", "direct", ranks, per_node)
    assert (
        found.inner_messages,
        found.outer_messages,
        found.inner_volume,
        found.outer_volume,
    ) == expected


@pytest.mark.parametrize("operation", ALGORITHMS)
def test_one_rank_sends_and_sums_nothing(operation):
    for algorithm in ALGORITHMS[operation].values():
        found = algorithm(Group(1, 8))
        assert found.inner_messages == found.outer_messages == found.reduced == 0
        assert found.inner_volume == found.outer_volume == 0


@pytest.mark.parametrize(
    ("ranks", "per_node", "in_node", "nodes"),
    [(1, 8, 1, 1), (8, 8, 8, 1), (9, 8, 8, 2), (16, 8, 8, 2), (17, 8, 8, 3), (3, 1, 1, 3)],
)
def test_nodes_of_a_group(ranks, per_node, in_node, nodes):
    group = Group(ranks, per_node)
    assert (group.in_node, group.nodes) == (in_node, nodes)
