"""Pipelines of all plans of a setting: seconds of their chunks, and through all of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.plan.choices import PipelineSchedule
from paceline.plan.gathered_passes import GatheredUnit, gathered_pass_seconds
from paceline.plan.pipeline_times import EqualBlocks, TimedChunk, one_f_one_b_seconds
from paceline.predictor.layer_arrays import Array
from paceline.predictor.search.layer_table import Sums
from paceline.predictor.search.setting import Setting
from paceline.predictor.step_costs import GradientExchange


def pipelines(setting: Setting) -> EqualBlocks:
    """Pipelines by degrees, micro-batch, recomputation and what is sharded in each pass.

    The last axis: nothing, gradients (stage 2), weights too (stage 3).
    """
    further = setting.blocks_per_chunk - 1.0
    sharded = _Sharded(setting)
    first, middle, last = (
        _joined(
            _chunk(setting, own, further),
            sharded.chunk(own, place, 0.0),
            sharded.chunk(own, place, 1.0),
        )
        for own, place in ((setting.first, 0), (setting.middle, 0), (setting.last, -1))
    )
    return EqualBlocks(
        first,
        middle,
        last,
        setting.hop_seconds,
        setting.pp,
        setting.micro_batches,
        setting.interleave,
    )


def through_seconds(several: Sequence[EqualBlocks], schedule: PipelineSchedule) -> list[Array]:
    """From the first forward to the last backward, by shard stage on the last axis."""
    if schedule is PipelineSchedule.GPIPE:
        return [by_stage(each.gpipe_seconds()) for each in several]
    return [by_stage(seconds) for seconds in one_f_one_b_seconds(several)]


def by_stage(array: Array) -> Array:
    """An array by what is sharded in each pass as one by shard stage."""
    shape = (*np.shape(array)[:-1], 3)
    return np.broadcast_to(array, shape)[..., [0, 0, 1, 2]]


def _joined(*chunks: TimedChunk) -> TimedChunk:
    return TimedChunk(
        np.concatenate(np.broadcast_arrays(*(chunk.forward for chunk in chunks)), axis=-1),
        np.concatenate(np.broadcast_arrays(*(chunk.backward for chunk in chunks)), axis=-1),
    )


def _chunk(setting: Setting, own: Sums, further: Array) -> TimedChunk:
    """A chunk of a block of its own and ``further`` middle ones, weights at hand."""
    one, middle = _unit(setting, own), _unit(setting, setting.middle)
    return TimedChunk(
        one.forward + further * middle.forward, one.backward + further * middle.backward
    )


def _unit(setting: Setting, own: Sums) -> TimedChunk:
    """One block with its exchanges, on the slowest device."""
    place, factor = setting.by_micro_batch, setting.slowest_factor
    return TimedChunk(
        factor * place(own.forward) + place(own.forward_exchange),
        factor * place(own.backward) + place(own.backward_exchange),
    )


class _Sharded:
    """Chunks that exchange gradients, and weights, block by block in each pass."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        chosen = (setting.degrees.pp > 1) & (setting.degrees.dp > 1)
        counts = setting.blocks_per_chunk.ravel()
        self.by_count = [
            (
                int(count),
                some := chosen & (counts == count),
                setting.exchange_among(setting.dp[some]),
            )
            for count in np.unique(counts[chosen])
        ]

    def chunk(self, own: Sums, place: int, gathered: float) -> TimedChunk:
        """A chunk of a block of its own, the first (0) or last (-1) of it, and middle ones.

        ``gathered`` is 1 if weights are sharded, 0 if not.
        """
        setting = self.setting
        shape = (setting.degrees.size, setting.micro_batch.size, 3, 1)
        forward, backward = np.zeros(shape), np.zeros(shape)
        for count, some, exchange in self.by_count:
            units: list[tuple[GatheredUnit, GatheredUnit]] = []
            alone: list[Array] = [np.zeros(1), np.zeros(1)]
            launches = 0.0
            for sums, times in ((own, 1), (setting.middle, count - 1)):
                if times == 0:
                    continue
                work = _unit(setting, sums)
                gather = gathered * exchange.gather(sums.weight_bytes)
                scatter = exchange.scatter(sums.gradient_bytes)
                units.append(
                    (
                        GatheredUnit(_rows(work.forward, some), gather, count=times),
                        GatheredUnit(_rows(work.backward, some), gather, scatter, times),
                    )
                )
                launches += self._launch(exchange) * times * float(sums.gradient_bytes > 0)
                computing = setting.slowest_factor
                work_of = (sums.forward, sums.backward)
                for way in (0, 1):
                    alone[way] = alone[way] + times * _rows(
                        computing * setting.by_micro_batch(work_of[way]), some
                    )
            forwards = units if place == 0 else units[::-1]
            forward[some] = self._slowed([unit for unit, _ in forwards], alone[0])
            backward[some] = self._slowed([unit for _, unit in forwards[::-1]], alone[1]) + launches
        return TimedChunk(forward, backward)

    def _slowed(self, units: Sequence[GatheredUnit], computing: Array) -> Array:
        """A pass whose computing is slowed down by the messages that it hides."""
        seconds = np.asarray(gathered_pass_seconds(units))
        exposed = seconds - sum(unit.count * unit.work for unit in units)
        link = sum(unit.count * (unit.gather + unit.scatter) for unit in units)
        interference = self.setting.case.costs.interference
        hidden = np.maximum(link - exposed, 0.0) / (1.0 + interference)
        return np.asarray(seconds + interference * np.minimum(computing, hidden))

    def _launch(self, exchange: GradientExchange) -> float:
        """What a message takes from the device that computes."""
        return self.setting.case.costs.message_overhead_seconds * exchange.share


def _rows(array: Array, some: NDArray[np.bool_]) -> Array:
    """Rows of an array by degrees; all of one that has the same for all degrees."""
    return array if array.shape[0] == 1 else array[some]
