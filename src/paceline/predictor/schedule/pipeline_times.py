"""End times of the stages of a pipeline, without tasks for all passes.

The same passes in the same order as `pipeline_tasks`, but only clocks are kept. Rounds of a long
1F1B that repeat the previous ones are extrapolated instead of evaluated.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_orders import listed_passes
from paceline.predictor.schedule.pipeline_tasks import ChunkTime, PipelineSegment
from paceline.predictor.schedule.task_schedule import (
    COMPUTE,
    NETWORK,
    TaskSchedule,
    interfered_seconds,
)
from paceline.step import Phase, Task

_ROUNDS = 5
"""Rounds of ``pp`` micro-batches that are evaluated to detect repetition."""
_REPEATS = 1e-10
"""Relative difference up to which rounds take the same time."""


def pipeline_clocks(
    builder: TaskSchedule,
    chunks: Sequence[ChunkTime],
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
) -> list[tuple[int, ...]]:
    """As `pipeline_tasks`, with one task for all passes of a stage."""
    clocks = _Clocks(chunks, pp, builder.interference)
    further = (micro_batches - _ROUNDS * pp) // pp
    if further < 1 or schedule is PipelineSchedule.GPIPE or any(clocks.slow):
        clocks.run(schedule, micro_batches)
    else:
        clocks.run(schedule, micro_batches - further * pp)
        round_seconds = clocks.round_seconds(schedule, micro_batches - further * pp)
        if round_seconds is None:
            clocks = _Clocks(chunks, pp, builder.interference)
            clocks.run(schedule, micro_batches)
        else:
            clocks.delay(further * round_seconds)
    done: list[tuple[int, ...]] = []
    for stage in range(pp):
        builder.occupy((stage, COMPUTE), clocks.computed[stage])
        builder.occupy((stage, NETWORK), clocks.network[stage])
        passes = Task("passes", Phase.OTHER, "passes", clocks.finished[stage], rank=stage)
        done.append((builder.add(passes),))
    return done


class _Clocks:
    """Clocks of each stage: end of computing, end of network use, end of everything."""

    def __init__(self, chunks: Sequence[ChunkTime], pp: int, interference: float) -> None:
        self.chunks, self.pp, self.interference = chunks, pp, interference
        self.computed, self.network, self.finished = ([0.0] * pp for _ in range(3))
        self.slow = [
            any(chunk.backward_sharding is not None for chunk in chunks[stage::pp])
            for stage in range(pp)
        ]
        self.ends: list[float] = []
        self.arrived: list[float] = []

    def run(self, schedule: PipelineSchedule, micro_batches: int) -> None:
        """Evaluate all passes."""
        chunks, final, last = self.chunks, micro_batches - 1, len(self.chunks) - 1
        forward = [chunk.forward_seconds + chunk.forward_exchange_seconds for chunk in chunks]
        backward = [
            chunk.backward_seconds + chunk.launch_seconds + chunk.backward_exchange_seconds
            for chunk in chunks
        ]
        hops = [chunk.send_seconds for chunk in chunks]
        free, sent = [0.0] * self.pp, [0.0] * self.pp
        ends, arrived, slow = self.ends, self.arrived, self.slow
        for stage, place, is_forward, micro_batch, source in listed_passes(
            schedule, self.pp, micro_batches, len(chunks) // self.pp
        ):
            start, ready = free[stage], arrived[source] if source >= 0 else 0.0
            if ready > start:
                start = ready
            is_last = micro_batch == final and not is_forward
            if is_last or slow[stage]:
                end = self._with_messages(stage, chunks[place], is_forward, is_last, start)
            else:
                end = start + (forward if is_forward else backward)[place]
            free[stage] = end
            ends.append(end)
            if place != (last if is_forward else 0):
                before = sent[stage]
                end = (end if end > before else before) + hops[place if is_forward else place - 1]
                sent[stage] = end
            arrived.append(end)

    def _with_messages(
        self, stage: int, chunk: ChunkTime, is_forward: bool, is_last: bool, start: float
    ) -> float:
        """End of a pass on a stage with gradient messages in flight."""
        network, clock = self.network[stage], start
        sharded = chunk.forward_sharding if is_forward else chunk.backward_sharding
        if sharded is not None:
            clock = max(network, start) + sharded.exposed_seconds
            network = clock + sharded.hidden_seconds
        whole = (PipelineSegment(1.0, 0.0, 0.0, 0.0 if is_forward else chunk.launch_seconds),)
        seconds = chunk.forward_seconds if is_forward else chunk.backward_seconds
        for segment in (chunk.segments if is_last else ()) or whole:
            for work in (segment.fraction * seconds, segment.launch_seconds):
                clock += interfered_seconds(work, network - clock, self.interference)
            if segment.size_bytes > 0:
                network = max(network, clock) + segment.message_seconds
                self.slow[stage] = True
        self.computed[stage], self.network[stage] = clock, network
        exchange = chunk.forward_exchange_seconds if is_forward else chunk.backward_exchange_seconds
        if is_last:
            sent = network if chunk.segments else 0.0
            self.finished[stage] = max(self.finished[stage], clock + exchange, sent)
        return clock + exchange

    def round_seconds(self, schedule: PipelineSchedule, micro_batches: int) -> float | None:
        """Seconds of each further round; None if the last rounds differ."""
        now, before = _repeated(schedule, self.pp, micro_batches, len(self.chunks) // self.pp)
        times = np.array([self.ends, self.arrived])
        added = times[:, now] - times[:, before]
        shortest, longest = float(added.min()), float(added.max())
        return longest if longest - shortest <= _REPEATS * longest else None

    def delay(self, seconds: float) -> None:
        """Shift all clocks by ``seconds``; networks without messages stay idle."""
        for clocks in (self.computed, self.network, self.finished):
            clocks[:] = [clock + seconds if clock > 0 else 0.0 for clock in clocks]


@lru_cache(maxsize=64)
def _repeated(
    schedule: PipelineSchedule, pp: int, micro_batches: int, interleave: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of the passes of two mid-step rounds, and of the same passes one round before."""
    listed = listed_passes(schedule, pp, micro_batches, interleave)
    where = {(work.place, work.is_forward, work.micro_batch): i for i, work in enumerate(listed)}
    pairs = [
        (index, where[place, is_forward, number - pp])
        for (place, is_forward, number), index in where.items()
        if 1 <= (micro_batches - 1 - number) // pp - (0 if is_forward else 1) <= 2
    ]
    now, before = np.array(pairs, dtype=np.intp).T
    return now, before
