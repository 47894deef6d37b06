"""Group: how many ranks communicate, and how they lie on nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError

Numbers = float | NDArray[np.float64]
"""One number or an array of them: every formula here is vectorised."""


@dataclass(frozen=True)
class Group:
    """``ranks`` that communicate, ``ranks_per_node`` of them on each node.

    ``concurrent_groups`` such groups use the network cards of a node at the same time (with
    tensor parallelism of 8 in a node, 8 data-parallel groups do). Fields may be arrays.
    """

    ranks: Numbers
    ranks_per_node: Numbers = 1
    concurrent_groups: Numbers = 1

    def __post_init__(self) -> None:
        for field in ("ranks", "ranks_per_node", "concurrent_groups"):
            if np.any(getattr(self, field) < 1):
                raise InputError(f"a group with {field} = {getattr(self, field)}", "count from one")

    @property
    def in_node(self) -> Numbers:
        """Ranks of the group that share a node."""
        return np.minimum(self.ranks, self.ranks_per_node)

    @property
    def nodes(self) -> Numbers:
        """Nodes that the group reaches over."""
        return np.ceil(self.ranks / self.in_node)
