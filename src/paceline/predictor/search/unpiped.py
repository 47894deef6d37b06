"""Plans without a pipeline: the steps that the predictor tells, on arrays of plans."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.plan.messages import messages
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predictor.joined_layers import one_message_each, runs_between
from paceline.predictor.layer_arrays import Array
from paceline.predictor.replica_step import tell_replica
from paceline.predictor.search.setting import Setting
from paceline.predictor.sharded_step import tell_fully_sharded, tell_sharded_update
from paceline.predictor.step_clocks import StepClocks
from paceline.predictor.step_costs import GradientExchange, LayerTime, Seconds, StepCosts

_BY_TIMES = (Policy.FUSED, Policy.MERGED, Policy.SPLIT, Policy.PRIORITY)


def unpiped_seconds(setting: Setting, overhead: Array, update: Array) -> Array:
    """Seconds per step by degrees, micro-batch, recomputation and shard stage; 0 for pipelines.

    ``overhead`` and ``update`` have these axes too.
    """
    result = np.zeros((setting.degrees.size, setting.micro_batch.size, 3, 4))
    alone = (setting.degrees.pp == 1) & (setting.degrees.dp == 1)
    if alone.any():
        plans = _Plans(setting, alone, overhead, update)
        result[alone] = plans.told(0, plans.joined([range(len(setting.table.parts))]), None)
    several = (setting.degrees.pp == 1) & (setting.degrees.dp > 1)
    if several.any():
        plans = _Plans(setting, several, overhead, update)
        result[several] = np.concatenate(list(plans.by_stage()), axis=-1)
    return result


def depends_on_times(synchronisation: Synchronisation) -> bool:
    """Whether order or sizes of messages without a pipeline are not the same for all plans."""
    return synchronisation.policy in _BY_TIMES


class _Plans:
    """Plans of some combinations of degrees: arrays by these, micro-batch and recomputation."""

    def __init__(
        self, setting: Setting, chosen: NDArray[np.bool_], overhead: Array, update: Array
    ) -> None:
        self.setting, self.chosen = setting, chosen
        shape = (setting.degrees.size, setting.micro_batch.size, 3, 4)
        self.overhead, self.update, self.factor = (
            np.broadcast_to(own, (*shape[:1], *own.shape[1:]))[chosen]
            for own in (overhead, update, setting.slowest_factor)
        )
        self.dp, self.micro_batches = setting.dp[chosen], setting.micro_batches[chosen]
        self.exchange = setting.exchange_among(self.dp)

    def by_stage(self) -> Iterator[Array]:
        """Seconds of several replicas, for each shard stage."""
        synchronisation = self.setting.case.synchronisation
        everything = range(len(self.setting.table.parts))
        for stage in (0, 1, 2):
            if depends_on_times(synchronisation):
                yield self._one_by_one(stage)
                continue
            sizes = self.setting.table.gradient_bytes(everything)
            grouped = messages(synchronisation, sizes, [0.0] * len(sizes), lambda size: size)
            runs = runs_between(grouped, 0, len(everything))
            exchange = replace(self.exchange, synchronisation=one_message_each(synchronisation))
            yield self.told(stage, self.joined(runs), exchange)
        units = [range(part.first, part.last) for part in self.setting.parts]
        yield self.told(3, self.joined(units), self.exchange)

    def joined(self, runs: Sequence[range]) -> list[tuple[LayerTime, float]]:
        """Runs of layers as one layer each, and the bytes of their weights."""
        place, found = self.setting.by_micro_batch, []
        for run in runs:
            own = self.setting.table.sums(run)
            layer = LayerTime(
                "",
                self.factor * place(own.forward),
                self.factor * place(own.backward),
                own.gradient_bytes,
                0.0,
                place(own.forward_exchange),
                place(own.backward_exchange),
            )
            found.append((layer, own.weight_bytes))
        return found

    def told(
        self,
        stage: int,
        layers: Sequence[tuple[LayerTime, float]],
        exchange: GradientExchange | None,
    ) -> Array:
        """Seconds of a step with a shard stage, told once for all plans."""
        costs = replace(
            self.setting.case.costs,
            copy_seconds=self.setting.copy_seconds[self.chosen],
            overhead_seconds=self.overhead,
            update_seconds=self.update[..., stage : stage + 1],
        )
        seconds = _step_seconds(stage, layers, exchange, costs, self.micro_batches)
        return np.broadcast_to(seconds, (len(self.dp), self.setting.micro_batch.size, 3, 1))

    def _one_by_one(self, stage: int) -> Array:
        """The same where each plan has messages of its own."""
        setting, table = self.setting, self.setting.table
        everything = range(len(table.parts))
        weights = table.weight_bytes(everything)
        result = np.zeros((len(self.dp), setting.micro_batch.size, 3, 1))
        rows = np.flatnonzero(self.chosen)
        valid = np.broadcast_to(setting.valid, (*setting.valid.shape[:2], 3, 4))[self.chosen]
        for row, micro, mode in np.argwhere(valid[..., stage]).tolist():
            factor = float(np.broadcast_to(self.factor, self.dp.shape)[row, 0, 0, 0])
            layers = table.layer_times(everything, micro, mode, factor)
            costs = replace(
                setting.case.costs,
                copy_seconds=float(setting.copy_seconds[rows[row], 0, 0, 0]),
                overhead_seconds=float(self.overhead[row, 0, 0, 0]),
                update_seconds=float(self.update[row, 0, 0, stage]),
            )
            result[row, micro, mode] = _step_seconds(
                stage,
                list(zip(layers, weights, strict=True)),
                setting.exchange_among(float(self.dp[row, 0, 0, 0])),
                costs,
                int(self.micro_batches[row, micro, 0, 0]),
            )
        return result


def _step_seconds(
    stage: int,
    layers: Sequence[tuple[LayerTime, float]],
    exchange: GradientExchange | None,
    costs: StepCosts,
    micro_batches: Seconds,
) -> Seconds:
    """Seconds of the step of one device; ``layers`` come with the bytes of their weights."""
    clocks = StepClocks(costs.interference)
    times, weights = zip(*layers, strict=True)
    if exchange is None or stage == 0:
        tell_replica(clocks, times, exchange, costs, micro_batches=micro_batches)
    elif stage == 3:
        units = [(number,) for number in range(len(times))]
        tell_fully_sharded(
            clocks, times, exchange, costs, weights, units, micro_batches=micro_batches
        )
    else:
        tell_sharded_update(
            clocks,
            times,
            exchange,
            costs,
            weights,
            scatters_each=stage == 2,
            micro_batches=micro_batches,
        )
    return clocks.seconds
