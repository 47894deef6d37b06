"""Group: ranks that communicate, and their placement on nodes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError

Numbers = float | NDArray[np.float64]
"""One number or an array of them: every formula here is vectorised."""


@dataclass(frozen=True)
class Group:
    """``ranks`` that communicate, ``ranks_per_node`` of them on each node.

    ``concurrent_groups`` such groups share the NICs of a node (with tensor parallelism of 8
    in a node, 8 data-parallel groups do). Fields may be arrays.
    """

    ranks: Numbers
    ranks_per_node: Numbers = 1
    concurrent_groups: Numbers = 1

    def __post_init__(self) -> None:
        for field in ("ranks", "ranks_per_node", "concurrent_groups"):
            if np.any(getattr(self, field) < 1):
                raise InputError(
                    f"{field} must be at least 1 (got {getattr(self, field)})",
                    "give a positive number",
                )

    @cached_property
    def in_node(self) -> Numbers:
        """Ranks of the group that share a node."""
        return np.minimum(self.ranks, self.ranks_per_node)

    @cached_property
    def nodes(self) -> Numbers:
        """Nodes that the group spans."""
        return np.ceil(self.ranks / self.in_node)
