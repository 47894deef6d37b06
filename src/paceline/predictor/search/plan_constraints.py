"""Fields of a plan that the user fixes, so that a search keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError, PacelineError
from paceline.predictor.plan.plan import Plan
from paceline.predictor.search.layer_table import MODES
from paceline.predictor.search.search_space import ZERO_STAGES

if TYPE_CHECKING:
    from paceline.predictor.search.plan_search import Candidates

_SEARCHED = {
    *("tp", "pp", "dp", "interleave", "micro_batch", "micro_batches"),
    *("recompute", "zero", "sequence_parallel"),
}
_LIKE = ("framework", "fused_attention", "loss_kernel", "optimizer_state", "synchronisation")
"""Fields that all plans of a search share."""
NOT_MODELLED = (
    *("cp", "ep", "etp", "ep_impl", "ep_overlap", "shard_group", "offload", "compression"),
    *("recompute_every", "recompute_modules", "stage_layers", "tp_overlap"),
)
"""Fields that the arrays of a search do not model."""
_MOST_LAYOUTS = 16
"""Layouts whose plans are predicted one by one."""


@dataclass(frozen=True)
class PlanConstraints:
    """Fixed fields: ``searched`` are axes of the search, ``added`` are not.

    The arrays of the search do not model the fields of ``added`` (context and expert parallelism,
    offloading, compression, split backward, ...), so such plans are predicted one by one.
    """

    searched: Mapping[str, Any] = field(default_factory=dict)
    added: Mapping[str, Any] = field(default_factory=dict)

    def allows(self, plan: Plan, global_batch: int) -> bool:
        """Whether a plan has all fixed values."""
        fixed = {**self.searched, **self.added}
        count = fixed.pop("micro_batches", None)
        if count is not None and global_batch != count * plan.dp * (plan.micro_batch or 1):
            return False
        return all(getattr(plan, name) == value for name, value in fixed.items())

    def restricted(self, found: "Candidates", global_batch: int) -> "Candidates":
        """The plans of a search that have the fixed values."""
        if not self.searched:
            return found
        kept = np.ones(found.size, dtype=bool)
        for number in range(len(found.grids)):
            own = found.grid == number
            kept[own] = self._mask(found, number, found.position[own], global_batch)
        if not kept.any():
            texts = (f"{name} {value}" for name, value in self.searched.items())
            raise InputError(
                f"no plan on these devices has {', '.join(texts)}",
                "use values that divide the devices, the layers and the global batch",
            )
        return replace(
            found,
            grid=found.grid[kept],
            position=found.position[kept],
            seconds=found.seconds[kept],
            memory_bytes=found.memory_bytes[kept],
        )

    def _mask(
        self, found: "Candidates", number: int, position: NDArray[np.int32], global_batch: int
    ) -> NDArray[np.bool_]:
        degrees, sequence_parallel, sizes = found.grids[number]
        shape = (degrees.size, sizes.size, len(MODES), len(ZERO_STAGES))
        combination, micro, mode, zero = np.unravel_index(position, shape)
        dp, size = degrees.dp[combination], sizes[micro]
        columns = {
            "tp": np.full(position.size, degrees.tp),
            "pp": degrees.pp[combination],
            "dp": dp // self.added.get("cp", 1),
            "interleave": degrees.interleave[combination],
            "micro_batch": size,
            "micro_batches": global_batch / (dp * size),
            "recompute": mode,
            "zero": np.array(ZERO_STAGES)[zero],
            "sequence_parallel": np.full(position.size, sequence_parallel),
        }
        kept = np.ones(position.size, dtype=bool)
        for name, value in self.searched.items():
            kept &= columns[name] == (MODES.index(value) if name == "recompute" else value)
        return kept

    def candidates(self, found: "Candidates", like: Plan) -> list[Plan]:
        """Plans to predict one by one: the fastest of each layout, stage and recomputation."""
        layouts = found.best_by_layout(np.ones(found.size, dtype=bool), _MOST_LAYOUTS)
        kept = np.isin(found.layout, found.layout[layouts])
        mode = found.position // len(ZERO_STAGES) % len(MODES)
        plans: list[Plan] = []
        for stage in range(len(ZERO_STAGES)):
            for number in range(len(MODES)):
                own = kept & (found.zero == stage) & (mode == number)
                plans += [found.plan(i, like) for i in found.best_by_layout(own, _MOST_LAYOUTS)]
        small = [replace(plan, micro_batch=1) for plan in plans]
        fixed = "micro_batch" in self.searched or "micro_batches" in self.searched
        return [one for plan in plans + ([] if fixed else small) for one in self._applied(plan)]

    def _applied(self, plan: Plan) -> list[Plan]:
        """The plan with the added fields; empty if they contradict it."""
        cp = self.added.get("cp", 1)
        if plan.dp % cp:
            return []
        try:
            return [replace(plan, **{**self.added, "dp": plan.dp // cp})]
        except PacelineError:
            return []


def split_plan_fields(fields: Mapping[str, Any]) -> tuple[dict[str, Any], PlanConstraints]:
    """Fields that all plans share, and the constraints on the others."""
    shared = {name: value for name, value in fields.items() if name in _LIKE}
    rest = {name: value for name, value in fields.items() if name not in _LIKE}
    pipeline = rest.get("pipeline")
    if pipeline is not None and not pipeline.splits_backward:
        shared["pipeline"] = rest.pop("pipeline")
    unusual = rest.get("recompute") not in (None, *MODES) or "recompute_every" in rest
    searched = {
        name: value
        for name, value in rest.items()
        if name in _SEARCHED and not (name == "recompute" and unusual)
    }
    added = {name: value for name, value in rest.items() if name not in searched}
    usual = {"cp": 1, "ep": 1, "tp_overlap": False, "ep_overlap": False}
    added = {name: value for name, value in added.items() if usual.get(name) != value}
    return shared, PlanConstraints(searched, added)
