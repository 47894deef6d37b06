"""Volumes of the messages of experts: dispatch of tokens, and gradients of experts."""

from paceline.hardware import Cluster
from paceline.predictor.comm.collective_cost import collective_cost
from paceline.predictor.comm.library import Library
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.plan.plan_choices import ExpertDispatch

_LARGE_BYTES = 2.0**28
"""A message that bandwidth limits."""


def sent_share(copies: int, form: ExpertDispatch, group: Group) -> float:
    """Copies of a token that are sent, over its ``copies``: one for each expert.

    DeepEP sends a token once to each node (inside a node: to each device) with some of its
    experts. With balanced routing n nodes have n (1 - (1 - 1/n)^k) of k experts.
    """
    if form is ExpertDispatch.ALL_TO_ALL or copies <= 1:
        return 1.0
    destinations = float(group.nodes if group.nodes > 1 else group.ranks)
    reached = destinations * (1.0 - (1.0 - 1.0 / destinations) ** copies)
    return reached / copies


def relative_gradient_cost(layout: Layout, cluster: Cluster, library: Library) -> float:
    """Seconds per gradient byte of an expert, over those of layers that all replicas share.

    Fewer devices hold the same expert, but they are far apart: a ring over whole nodes uses all
    NICs of a node, while copies of an expert on different nodes have one each.
    """

    def seconds(group: Group) -> Numbers:
        return collective_cost("all_reduce", group, cluster, library).seconds(_LARGE_BYTES)

    everyone = float(seconds(layout.replicas))
    return float(seconds(layout.expert_replicas)) / everyone if everyone else 1.0
