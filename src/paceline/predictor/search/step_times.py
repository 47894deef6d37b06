"""Step times of all plans of a grid: the scheduler's steps in closed form, vectorised."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.kernels.copy_and_update import whole_update_seconds
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.fsdp_prefetch import FsdpUnit, fsdp_pass_seconds
from paceline.predictor.schedule.pipeline_closed_form import (
    EqualBlocks,
    TimedChunk,
    one_f_one_b_seconds,
)
from paceline.predictor.schedule.step_costs import GradientExchange
from paceline.predictor.search.exposed_comm import exposed_tail
from paceline.predictor.search.layer_table import Sums
from paceline.predictor.search.no_pipeline import unpiped_seconds
from paceline.predictor.search.plan_grid import PlanGrid


def pipelines(grid: PlanGrid) -> EqualBlocks:
    """Pipelines by degrees, micro-batch, recomputation and sharding within passes.

    The last axis: nothing, gradients (stage 2), weights too (stage 3).
    """
    further = grid.blocks_per_chunk - 1.0
    sharded = _Sharded(grid)
    first, middle, last = (
        _joined(
            _chunk(grid, own, further),
            sharded.chunk(own, position, 0.0),
            sharded.chunk(own, position, 1.0),
        )
        for own, position in ((grid.first, 0), (grid.middle, 0), (grid.last, -1))
    )
    return EqualBlocks(
        first,
        middle,
        last,
        grid.hop_seconds,
        grid.pp,
        grid.micro_batches,
        grid.interleave,
    )


def through_seconds(several: Sequence[EqualBlocks], schedule: PipelineSchedule) -> list[Array]:
    """Seconds from the first forward to the last backward, by ZeRO stage on the last axis."""
    if schedule is PipelineSchedule.GPIPE:
        return [by_stage(each.gpipe_seconds()) for each in several]
    return [by_stage(seconds) for seconds in one_f_one_b_seconds(several)]


def by_stage(array: Array) -> Array:
    """An array by sharding within passes, expanded to ZeRO stages 0 to 3."""
    shape = (*np.shape(array)[:-1], 3)
    return np.broadcast_to(array, shape)[..., [0, 0, 1, 2]]


def _joined(*chunks: TimedChunk) -> TimedChunk:
    return TimedChunk(
        np.concatenate(np.broadcast_arrays(*(chunk.forward for chunk in chunks)), axis=-1),
        np.concatenate(np.broadcast_arrays(*(chunk.backward for chunk in chunks)), axis=-1),
    )


def _chunk(grid: PlanGrid, own: Sums, further: Array) -> TimedChunk:
    """A chunk of block ``own`` and ``further`` middle blocks, without gathers."""
    one, middle = _unit(grid, own), _unit(grid, grid.middle)
    return TimedChunk(
        one.forward + further * middle.forward, one.backward + further * middle.backward
    )


def _unit(grid: PlanGrid, own: Sums) -> TimedChunk:
    """One block including exchanges, on the slowest device."""
    shaped, factor = grid.by_micro_batch, grid.slowest_factor
    return TimedChunk(
        factor * shaped(own.forward) + shaped(own.forward_exchange),
        factor * shaped(own.backward) + shaped(own.backward_exchange),
    )


class _Sharded:
    """Chunks that exchange gradients (and weights) block by block in each pass."""

    def __init__(self, grid: PlanGrid) -> None:
        self.grid = grid
        chosen = (grid.degrees.pp > 1) & (grid.degrees.dp > 1)
        counts = grid.blocks_per_chunk.ravel()
        self.by_count = [
            (
                int(count),
                some := chosen & (counts == count),
                grid.exchange_among(grid.dp[some]),
            )
            for count in np.unique(counts[chosen])
        ]

    def chunk(self, own: Sums, position: int, gathered: float) -> TimedChunk:
        """A chunk of block ``own``, its first (0) or last (-1), and middle blocks.

        ``gathered`` is 1 if weights are sharded, 0 if not.
        """
        grid = self.grid
        shape = (grid.degrees.size, grid.micro_batch.size, 3, 1)
        forward, backward = np.zeros(shape), np.zeros(shape)
        for count, some, exchange in self.by_count:
            units: list[tuple[FsdpUnit, FsdpUnit]] = []
            alone: list[Array] = [np.zeros(1), np.zeros(1)]
            launches = 0.0
            for sums, times in ((own, 1), (grid.middle, count - 1)):
                if times == 0:
                    continue
                work = _unit(grid, sums)
                gather = gathered * exchange.gather(sums.weight_bytes)
                scatter = exchange.scatter(sums.gradient_bytes)
                units.append(
                    (
                        FsdpUnit(_rows(work.forward, some), gather, count=times),
                        FsdpUnit(_rows(work.backward, some), gather, scatter, times),
                    )
                )
                launches += self._launch(exchange) * times * float(sums.gradient_bytes > 0)
                computing = grid.slowest_factor
                work_of = (sums.forward, sums.backward)
                for way in (0, 1):
                    alone[way] = alone[way] + times * _rows(
                        computing * grid.by_micro_batch(work_of[way]), some
                    )
            forwards = units if position == 0 else units[::-1]
            forward[some] = self._slowed([unit for unit, _ in forwards], alone[0])
            backward[some] = self._slowed([unit for _, unit in forwards[::-1]], alone[1]) + launches
        return TimedChunk(forward, backward)

    def _slowed(self, units: Sequence[FsdpUnit], computing: Array) -> Array:
        """A pass whose computing is slowed down by the messages that it hides."""
        seconds = np.asarray(fsdp_pass_seconds(units))
        exposed = seconds - sum(unit.count * unit.work for unit in units)
        link = sum(unit.count * (unit.gather + unit.scatter) for unit in units)
        interference = self.grid.costs.interference
        hidden = np.maximum(link - exposed, 0.0) / (1.0 + interference)
        return np.asarray(seconds + interference * np.minimum(computing, hidden))

    def _launch(self, exchange: GradientExchange) -> float:
        """Cost of a message on the computing device."""
        return self.grid.costs.message_overhead_seconds * exchange.share


def _rows(array: Array, some: NDArray[np.bool_]) -> Array:
    """Selected rows of an array by degrees; an array with one row is returned as is."""
    return array if array.shape[0] == 1 else array[some]


def step_seconds(grids: Sequence[PlanGrid], schedule: PipelineSchedule) -> list[Array]:
    """Seconds per step of each grid, by degrees, micro-batch, recomputation and ZeRO stage."""
    own = [pipelines(grid) for grid in grids]
    through = through_seconds(own, schedule)
    return [_step_seconds(*each) for each in zip(grids, own, through, strict=True)]


def _step_seconds(grid: PlanGrid, own: EqualBlocks, through: Array) -> Array:
    trained = np.full((1, 1, 1, 1), grid.whole.trainable_parameters)
    unpiped = unpiped_seconds(grid, _overhead(grid), _update(grid, trained))
    supply = grid.costs.input_seconds + grid.copy_seconds
    piped = np.maximum(_pipelined(grid, own, through), supply)
    return np.where(grid.pp > 1, piped, unpiped)


def _pipelined(grid: PlanGrid, own: EqualBlocks, through: Array) -> Array:
    """All micro-batches through all stages; the first or the last stage ends last."""
    back = own.first.backward + (grid.pp - 2.0) * own.middle.backward
    last_ends = through - by_stage(back + (grid.pp - 1.0) * grid.hop_seconds)
    tails = exposed_tail(grid)
    through, last_ends = through + tails.first_delay, last_ends + tails.last_delay
    sent = [through + tails.first, last_ends + tails.last]
    tied = grid.tied_seconds
    together = np.maximum(*sent) + tied
    blocks = len(grid.parts) / grid.pp - 1.0
    # The framework's own time passes on the first stage while gradients travel.
    ready = [
        np.maximum(np.where(tied > 0, together, own_end), busy)
        for own_end, busy in zip(sent, (through + _overhead(grid), last_ends), strict=True)
    ]
    ends = [
        end
        + _update(grid, part.trainable_parameters + blocks * grid.middle.trainable_parameters)
        + _weights(grid, part.weight_bytes + blocks * grid.middle.weight_bytes)
        for end, part in zip(ready, (grid.first, grid.last), strict=True)
    ]
    return np.asarray(np.maximum(*ends))


def _overhead(grid: PlanGrid) -> Array:
    """Framework overhead per step."""
    framework = grid.job.framework
    tensors = sum(len(part.profile.tensors) for part in grid.table.parts)
    own = [
        framework.overhead_seconds(tensors // int(pp), int(dp))
        for pp, dp in zip(grid.degrees.pp, grid.degrees.dp, strict=True)
    ]
    return grid.by_degrees(np.array(own))


def _update(grid: PlanGrid, parameters: Array) -> Array:
    """The optimizer's update of a stage, or of a shard of it."""
    table, shards = grid.table, np.where(grid.zero >= 1, grid.dp, 1.0)
    return np.asarray(whole_update_seconds(table.whole, parameters / shards, table.efficiency))


def _weights(grid: PlanGrid, size: Array | float) -> Array:
    """All-gather of weights after a sharded update (stages 1 and 2)."""
    gathers = (grid.zero >= 1) & (grid.zero <= 2) & (grid.dp > 1)
    return np.where(gathers, grid.exchange.gather(size), 0.0)
