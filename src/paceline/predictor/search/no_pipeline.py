"""Plans without a pipeline: the predictor's schedules on arrays of plans."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.comm.buckets import messages
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.sync_policy import Policy, Synchronisation
from paceline.predictor.schedule.coalesce_layers import one_message_each, runs_between
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime
from paceline.predictor.search.plan_grid import PlanGrid

_BY_TIMES = (Policy.FUSED, Policy.MERGED, Policy.SPLIT, Policy.PRIORITY)


def unpiped_seconds(grid: PlanGrid, overhead: Array, update: Array) -> Array:
    """Seconds per step by degrees, micro-batch, recomputation and ZeRO stage; 0 for pipelines.

    ``overhead`` and ``update`` have these axes too.
    """
    result = np.zeros((grid.degrees.size, grid.micro_batch.size, 3, 4))
    alone = (grid.degrees.pp == 1) & (grid.degrees.dp == 1)
    if alone.any():
        plans = _Plans(grid, alone, overhead, update)
        result[alone] = plans.seconds(0, plans.joined([range(len(grid.table.parts))]), None)
    several = (grid.degrees.pp == 1) & (grid.degrees.dp > 1)
    if several.any():
        plans = _Plans(grid, several, overhead, update)
        result[several] = np.concatenate(list(plans.by_stage()), axis=-1)
    return result


def depends_on_times(synchronisation: Synchronisation) -> bool:
    """Whether order or sizes of messages differ between plans (without a pipeline)."""
    return synchronisation.policy in _BY_TIMES


class _Plans:
    """Plans of some combinations of degrees: arrays by these, micro-batch and recomputation."""

    def __init__(
        self, grid: PlanGrid, chosen: NDArray[np.bool_], overhead: Array, update: Array
    ) -> None:
        self.grid, self.chosen = grid, chosen
        shape = (grid.degrees.size, grid.micro_batch.size, 3, 4)
        self.overhead, self.update, self.factor = (
            np.broadcast_to(own, (*shape[:1], *own.shape[1:]))[chosen]
            for own in (overhead, update, grid.slowest_factor)
        )
        self.dp, self.micro_batches = grid.dp[chosen], grid.micro_batches[chosen]
        self.exchange = grid.exchange_among(self.dp)

    def by_stage(self) -> Iterator[Array]:
        """Seconds with several replicas, for each ZeRO stage."""
        synchronisation = self.grid.table.whole.synchronisation
        everything = range(len(self.grid.table.parts))
        for stage in (0, 1, 2):
            if depends_on_times(synchronisation):
                yield self._one_by_one(stage)
                continue
            sizes = self.grid.table.gradient_bytes(everything)
            grouped = messages(synchronisation, sizes, [0.0] * len(sizes), lambda size: size)
            runs = runs_between(grouped, 0, len(everything))
            exchange = replace(self.exchange, synchronisation=one_message_each(synchronisation))
            yield self.seconds(stage, self.joined(runs), exchange)
        units = [range(part.first, part.last) for part in self.grid.parts]
        yield self.seconds(3, self.joined(units), self.exchange)

    def joined(self, runs: Sequence[range]) -> list[tuple[LayerTime, float]]:
        """Runs of layers coalesced into one layer each, with the bytes of their weights."""
        shaped, found = self.grid.by_micro_batch, []
        for run in runs:
            own = self.grid.table.sums(run)
            layer = LayerTime(
                "",
                self.factor * shaped(own.forward),
                self.factor * shaped(own.backward),
                own.gradient_bytes,
                0.0,
                shaped(own.forward_exchange),
                shaped(own.backward_exchange),
            )
            found.append((layer, own.weight_bytes))
        return found

    def seconds(
        self,
        stage: int,
        layers: Sequence[tuple[LayerTime, float]],
        exchange: GradientExchange | None,
    ) -> Array:
        """Seconds of a step with a ZeRO stage, scheduled once for all plans."""
        costs = replace(
            self.grid.costs,
            copy_seconds=self.grid.copy_seconds[self.chosen],
            overhead_seconds=self.overhead,
            update_seconds=self.update[..., stage : stage + 1],
        )
        times, weights = zip(*layers, strict=True)
        units = [(number,) for number in range(len(times))]
        step = DeviceStep(times, exchange, costs, stage, weights, units, self.micro_batches)
        seconds = step.array_seconds()
        return np.broadcast_to(seconds, (len(self.dp), self.grid.micro_batch.size, 3, 1))

    def _one_by_one(self, stage: int) -> Array:
        """The same if messages differ between plans."""
        grid, table = self.grid, self.grid.table
        everything = range(len(table.parts))
        weights = table.weight_bytes(everything)
        result = np.zeros((len(self.dp), grid.micro_batch.size, 3, 1))
        rows = np.flatnonzero(self.chosen)
        valid = np.broadcast_to(grid.valid, (*grid.valid.shape[:2], 3, 4))[self.chosen]
        for row, micro, mode in np.argwhere(valid[..., stage]).tolist():
            factor = float(np.broadcast_to(self.factor, self.dp.shape)[row, 0, 0, 0])
            layers = table.layer_times(everything, micro, mode, factor)
            costs = replace(
                grid.costs,
                copy_seconds=float(grid.copy_seconds[rows[row], 0, 0, 0]),
                overhead_seconds=float(self.overhead[row, 0, 0, 0]),
                update_seconds=float(self.update[row, 0, 0, stage]),
            )
            step = DeviceStep(
                layers,
                grid.exchange_among(float(self.dp[row, 0, 0, 0])),
                costs,
                stage,
                weights,
                micro_batches=int(self.micro_batches[row, micro, 0, 0]),
            )
            result[row, micro, mode] = step.seconds()
        return result
