"""Groups of ranks by enumeration, in the order of Megatron-LM: tensor, context, data, pipeline.

Rank = tp index + tp (cp index + cp (dp index + dp pp index)); node = rank // devices per node
(Megatron-LM ``parallel_state.py``, order tp-cp-dp-pp).
"""

import itertools

import pytest

from paceline.predictor.comm.rank_group import Group
from paceline.predictor.partition.rank_layout import Layout, layout_of
from paceline.predictor.plan.plan import Plan

SHAPES = [
    shape
    for shape in itertools.product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8), (1, 2, 4))
    if shape[0] * shape[1] * shape[2] * shape[3] >= 8
]


def enumerated(tp, cp, dp, pp, axes):
    """Lists of ranks that differ in ``axes`` only."""
    groups = {}
    for t, c, d, p in itertools.product(range(tp), range(cp), range(dp), range(pp)):
        rank = t + tp * (c + cp * (d + dp * p))
        index = {"tp": t, "cp": c, "dp": d, "pp": p}
        key = tuple(value for name, value in index.items() if name not in axes)
        groups.setdefault(key, []).append(rank)
    return list(groups.values())


def on_nodes(groups, node):
    """Ranks of a group, ranks of it on one node, and groups that cross out of one node."""
    first = groups[0]
    inside = sum(rank // node == first[0] // node for rank in first)
    crossing = [own for own in groups if any(rank // node == 0 for rank in own)]
    return len(first), inside, len(crossing)


@pytest.mark.parametrize("node", [4, 8])
@pytest.mark.parametrize(
    ("name", "axes"), [("tensor", "tp"), ("context", "cp"), ("replicas", "cp dp")]
)
def test_groups(node, name, axes):
    for tp, cp, dp, pp in SHAPES:
        group = getattr(Layout(tp, cp, dp, pp, 1, node), name)
        ranks, inside, crossing = on_nodes(enumerated(tp, cp, dp, pp, axes.split()), node)
        assert (group.ranks, group.ranks_per_node) == (ranks, inside), (tp, cp, dp, pp)
        if group.ranks > 1:
            assert group.concurrent_groups == crossing, (tp, cp, dp, pp)


def experts_enumerated(etp, ep, copies, axes):
    """Ranks of a stage in Megatron's order for experts: etp, ep, then copies (order tp-ep-dp)."""
    groups = {}
    for t, e, c in itertools.product(range(etp), range(ep), range(copies)):
        index = {"etp": t, "ep": e, "copies": c}
        key = tuple(value for name, value in index.items() if name != axes)
        groups.setdefault(key, []).append(t + etp * (e + ep * c))
    return list(groups.values())


@pytest.mark.parametrize(
    ("name", "axis"),
    [("expert_tensor", "etp"), ("experts", "ep"), ("expert_replicas", "copies")],
)
def test_groups_of_experts_folded_over_a_stage(name, axis):
    for tp, dp, etp, ep in itertools.product((1, 2, 8), (4, 16), (1, 2, 4), (2, 8, 16)):
        copies = tp * dp // (etp * ep)
        if tp * dp < 8 or copies * etp * ep != tp * dp:
            continue
        group = getattr(Layout(tp, 1, dp, 1, ep, 8, etp=etp), name)
        ranks, inside, crossing = on_nodes(experts_enumerated(etp, ep, copies, axis), 8)
        assert (group.ranks, group.ranks_per_node) == (ranks, inside), (tp, dp, etp, ep)
        if group.ranks > 1:
            assert group.concurrent_groups == crossing, (tp, dp, etp, ep)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # 2 stages of 4 ranks in a node of 8: four pairs inside.
        (Layout(4, 1, 1, 2, 1, 8), Group(2.0, 2.0, 4.0)),
        # 2 stages of 8 ranks on two nodes of 8: eight pairs between nodes.
        (Layout(8, 1, 1, 2, 1, 8), Group(2.0, 1.0, 8.0)),
        # 4 stages of 4 ranks: some hops are between nodes, four pairs at once.
        (Layout(4, 1, 1, 4, 1, 8), Group(2.0, 1.0, 4.0)),
        (Layout(8, 1, 4, 2, 1, 8), Group(2.0, 1.0, 8.0)),
        (Layout(4, 1, 1, 1, 1, 8), Group(1.0, 2.0, 4.0)),
    ],
)
def test_neighbours_of_a_pipeline(layout, expected):
    assert layout.neighbours == expected


def test_shard_groups_and_their_copies():
    """32 replicas, shards among 8 neighbours: groups fill nodes, copies are on 4 nodes."""
    layout = Layout(1, 1, 32, 1, 1, 8, shards=8)
    assert layout.shard_group == Group(8.0, 8.0, 1.0)
    assert layout.shard_copies == Group(4.0, 1.0, 8.0)
    one = Layout(1, 1, 32, 1, 1, 8)
    assert one.shard_group == one.replicas == Group(32.0, 8.0, 1.0)
    assert one.shard_copies.ranks == 1
    small = Layout(2, 1, 8, 1, 1, 8, shards=2)
    assert small.shard_group == Group(2.0, 2.0, 4.0)
    assert small.shard_copies == Group(4.0, 2.0, 4.0)


def test_experts_are_neighbours_among_replicas():
    assert Layout(2, 1, 16, 1, 4, 8).experts == Group(4.0, 4.0, 2.0)
    assert Layout(2, 1, 16, 1, 8, 8).experts == Group(8.0, 4.0, 2.0)


def test_layout_of_a_plan():
    found = layout_of(Plan(dp=8, tp=2, pp=4, cp=2, ep=4), 8)
    assert found == Layout(2, 2, 8, 4, 4, 8, etp=2)
    assert found.stage_stride == 32
    sharded = layout_of(Plan(dp=8, cp=2, zero=3, shard_group=4), 8)
    assert sharded == Layout(1, 2, 8, 1, 1, 8, 4, etp=1)
