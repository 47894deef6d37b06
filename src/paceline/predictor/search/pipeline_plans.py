"""Pipelines of all plans of a grid: times of chunks and of whole passes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.fsdp_prefetch import FsdpUnit, fsdp_pass_seconds
from paceline.predictor.schedule.pipeline_closed_form import (
    EqualBlocks,
    TimedChunk,
    one_f_one_b_seconds,
)
from paceline.predictor.schedule.step_costs import GradientExchange
from paceline.predictor.search.layer_table import Sums
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
