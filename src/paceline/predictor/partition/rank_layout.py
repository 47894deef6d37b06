"""Placement of the ranks of a plan on the nodes of a cluster.

Tensor-parallel ranks are adjacent, then context-parallel ones, then replicas, then pipeline stages
(the order of Megatron-LM), so the most frequent communication is the most local. Degrees may be
NumPy arrays.
"""

from dataclasses import dataclass

import numpy as np

from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.plan.plan import Plan


@dataclass(frozen=True)
class Layout:
    """Groups of the degrees ``tp``, ``cp``, ``dp``, ``ep`` and ``pp`` on nodes of equal size.

    The devices of a stage are numbered a second time for experts: the ``etp`` devices of one expert
    are adjacent, then the ``ep`` devices that divide experts, then copies of the same experts
    (Megatron's parallel folding).
    """

    tp: Numbers
    cp: Numbers
    dp: Numbers
    pp: Numbers
    ep: Numbers
    devices_per_node: int
    shards: Numbers | None = None
    """Devices of a shard group; None for all replicas."""
    etp: Numbers | None = None
    """Devices of one expert; None for ``tp``."""

    @property
    def tensor(self) -> Group:
        """Ranks that share the work of each layer."""
        return self._group(self.tp, 1)

    @property
    def context(self) -> Group:
        """Ranks that share the tokens of each sample."""
        return self._group(self.cp, self.tp)

    @property
    def replicas(self) -> Group:
        """Ranks that hold the same weights: they sum their gradients."""
        return self._group(self.cp * self.dp, self.tp)

    @property
    def shard_group(self) -> Group:
        """Ranks that shard weights: neighbours among the replicas."""
        return self.replicas if self.shards is None else self._group(self.shards, self.tp)

    @property
    def shard_copies(self) -> Group:
        """Ranks that hold the same shard, one in each group of shards."""
        shards = self.cp * self.dp if self.shards is None else self.shards
        return self._group(self.cp * self.dp // shards, self.tp * shards)

    @property
    def experts(self) -> Group:
        """Ranks among which experts are divided."""
        return self._group(self.ep, self._expert_tp)

    @property
    def expert_tensor(self) -> Group:
        """Ranks that share the work of each expert."""
        return self._group(self._expert_tp, 1)

    @property
    def expert_replicas(self) -> Group:
        """Ranks that hold the same experts: they sum their gradients."""
        divided = self._expert_tp * self.ep
        return self._group(self.tp * self.cp * self.dp // divided, divided)

    @property
    def stage_stride(self) -> Numbers:
        """Ranks from one pipeline stage to the next."""
        return self.tp * self.cp * self.dp

    @property
    def neighbours(self) -> Group:
        """Two ranks of adjacent stages; all pairs of a node communicate at once.

        A pipeline that spans nodes is limited by its hops between nodes.
        """
        stride = self.stage_stride
        inside = np.where(stride * self.pp <= self.devices_per_node, 2, 1)
        pairs = np.minimum(stride, self.devices_per_node)
        return Group(_plain(np.minimum(self.pp, 2)), _plain(inside), _plain(pairs))

    @property
    def _expert_tp(self) -> Numbers:
        return self.tp if self.etp is None else self.etp

    def _group(self, size: Numbers, stride: Numbers) -> Group:
        in_node = np.clip(self.devices_per_node // stride, 1, size)
        concurrent = np.maximum(1, self.devices_per_node // in_node)
        return Group(_plain(size), _plain(in_node), _plain(concurrent))


def layout_of(plan: Plan, devices_per_node: int) -> Layout:
    """The layout of one plan."""
    degrees = (plan.tp, plan.cp, plan.dp, plan.pp, plan.ep)
    return Layout(*degrees, devices_per_node, plan.shard_group, plan.expert_tp)


def _plain(number: Numbers) -> Numbers:
    """A scalar as a Python float, an array as it is."""
    return float(number) if np.ndim(number) == 0 else number
