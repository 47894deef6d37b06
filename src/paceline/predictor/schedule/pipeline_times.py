"""End times of the stages of a pipeline, without tasks for all passes.

The same passes in the same order as `pipeline_tasks`, but only clocks are kept. Rounds of a long
1F1B that repeat the previous ones are extrapolated instead of evaluated.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

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

_ROUNDS = (3, 6)
"""Rounds of ``pp`` micro-batches that are evaluated to detect repetition; 3 is the least."""
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
    clocks = _evaluated(chunks, pp, micro_batches, schedule, builder.interference)
    done: list[tuple[int, ...]] = []
    for stage in range(pp):
        builder.occupy((stage, COMPUTE), clocks.computed[stage])
        builder.occupy((stage, NETWORK), clocks.network[stage])
        passes = Task("passes", Phase.OTHER, "passes", clocks.finished[stage], rank=stage)
        done.append((builder.add(passes),))
    return done


def _evaluated(
    chunks: Sequence[ChunkTime],
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
    interference: float,
) -> "_Clocks":
    """The clocks after all passes; only some rounds are evaluated if the others repeat them."""
    is_sharded = any(chunk.backward_sharding is not None for chunk in chunks)
    if schedule is PipelineSchedule.ONE_F_ONE_B and not is_sharded:
        for rounds in _ROUNDS:
            further = micro_batches // pp - rounds
            if further < 1:
                break
            few = micro_batches - further * pp
            clocks = _Clocks(chunks, pp, interference)
            clocks.run(schedule, few)
            if (seconds := clocks.round_seconds(schedule, few)) is not None:
                clocks.delay(further * seconds)
                return clocks
    clocks = _Clocks(chunks, pp, interference)
    clocks.run(schedule, micro_batches)
    return clocks


class _Clocks:
    """Clocks of each stage: end of computing, end of network use, end of everything."""

    def __init__(self, chunks: Sequence[ChunkTime], pp: int, interference: float) -> None:
        self.chunks, self.pp, self.interference = chunks, pp, interference
        self.computed, self.network, self.finished = ([0.0] * pp for _ in range(3))
        self.ends: list[float] = []
        self.arrived: list[float] = []

    def run(self, schedule: PipelineSchedule, micro_batches: int) -> None:
        """Evaluate all passes."""
        chunks, network, pp = self.chunks, self.network, self.pp
        columns = _columns(schedule, pp, micro_batches, len(chunks) // pp)
        work, hops = self._seconds_and_hops()
        # Messages to other stages queue only if one takes longer than a pass.
        queues = max(hops) > min(work)
        is_sharded = any(chunk.backward_sharding is not None for chunk in chunks)
        free, sent = [0.0] * pp, [0.0] * pp
        # The first entry is for passes that wait for nothing.
        arrived = self.arrived = [0.0] * (len(columns.passes) + 1)
        ends = self.ends = arrived.copy() if queues else arrived
        alone = 0 if queues or is_sharded else columns.is_last.index(True)
        # Before the first gradient message only the device and arrivals matter. This loop takes
        # most of the time of a long pipeline.
        entry = 0
        for stage, source, kind in columns.passes[:alone]:
            start, ready = free[stage], arrived[source]
            free[stage] = end = (start if start > ready else ready) + work[kind]
            entry += 1
            arrived[entry] = end + hops[kind]
        for stage, source, kind in columns.passes[alone:]:
            start, ready, is_last = free[stage], arrived[source], columns.is_last[entry]
            start = start if start > ready else ready
            entry += 1
            end = start + work[kind]
            if is_sharded or is_last or network[stage] > start:
                end = self._with_messages(stage, chunks[kind // 2], kind % 2 == 1, is_last, start)
            free[stage] = ends[entry] = end
            arrived[entry] = end + hops[kind]
            # A message waits for earlier ones of its stage, even if it takes no time.
            if queues and columns.is_sent[kind]:
                arrived[entry] = sent[stage] = max(end, sent[stage]) + hops[kind]

    def _seconds_and_hops(self) -> tuple[list[float], list[float]]:
        """Seconds of a pass and of its message by kind: twice its chunk, plus 1 for forward."""
        work, hops, before = [], [], 0.0
        for number, chunk in enumerate(self.chunks):
            after = chunk.send_seconds if number + 1 < len(self.chunks) else 0.0
            backward = chunk.backward_seconds + chunk.launch_seconds
            work.append(backward + chunk.backward_exchange_seconds)
            work.append(chunk.forward_seconds + chunk.forward_exchange_seconds)
            hops += [before, after]
            before = chunk.send_seconds
        return work, hops

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
        self.computed[stage], self.network[stage] = clock, network
        exchange = chunk.forward_exchange_seconds if is_forward else chunk.backward_exchange_seconds
        if is_last:
            sent = network if chunk.segments else 0.0
            self.finished[stage] = max(self.finished[stage], clock + exchange, sent)
        return clock + exchange

    def round_seconds(self, schedule: PipelineSchedule, micro_batches: int) -> float | None:
        """Seconds of each further round; None if the last rounds differ."""
        pairs = _repeated(schedule, self.pp, micro_batches, len(self.chunks) // self.pp)
        # A saturated link hides how much later passes end, so their ends count too.
        added = [
            clocks[now] - clocks[before]
            for clocks in (self.arrived, self.ends)
            for now, before in pairs
        ]
        shortest, longest = min(added), max(added)
        return longest if longest - shortest <= _REPEATS * longest else None

    def delay(self, seconds: float) -> None:
        """Shift all clocks by ``seconds``; networks without messages stay idle."""
        for clocks in (self.computed, self.network, self.finished):
            clocks[:] = [clock + seconds if clock > 0 else 0.0 for clock in clocks]


class _Columns(NamedTuple):
    """All passes of a step.

    ``passes`` are the stage, the entry of the arrival that a pass waits for (0: none), and its
    kind: twice the index of its chunk, plus 1 for forward. ``is_last`` marks backwards of the last
    micro-batch, ``is_sent`` the kinds whose result goes to another chunk.
    """

    passes: tuple[tuple[int, int, int], ...]
    is_last: tuple[bool, ...]
    is_sent: tuple[bool, ...]


@lru_cache(maxsize=64)
def _columns(schedule: PipelineSchedule, pp: int, micro_batches: int, interleave: int) -> _Columns:
    listed, last = listed_passes(schedule, pp, micro_batches, interleave), pp * interleave - 1
    return _Columns(
        tuple((work.stage, work.source + 1, 2 * work.place + work.is_forward) for work in listed),
        tuple(not work.is_forward and work.micro_batch == micro_batches - 1 for work in listed),
        tuple(sent for place in range(last + 1) for sent in (place > 0, place < last)),
    )


@lru_cache(maxsize=64)
def _repeated(
    schedule: PipelineSchedule, pp: int, micro_batches: int, interleave: int
) -> tuple[tuple[int, int], ...]:
    """Entries of the passes at one point of the steady state, each with that one round before.

    The k-th forward of stage s has the label k + s, its k-th backward k + pp - 1, or with v chunks
    per stage k + (v + 1) pp - 2 - s. In the steady state of 1F1B (Narayanan et al. 2021) every pass
    waits only for passes with its own label or the one before. So if all passes with one label end
    later than those one round (v pp labels) before by the same time, every further round takes that
    time.
    """
    entries: dict[int, dict[tuple[int, bool], int]] = {}
    counts = [[0, 0] for _ in range(pp)]
    for entry, work in enumerate(listed_passes(schedule, pp, micro_batches, interleave), 1):
        number = counts[work.stage][work.is_forward]
        counts[work.stage][work.is_forward] += 1
        backward = pp - 1 if interleave == 1 else (interleave + 1) * pp - 2 - work.stage
        label = number + (work.stage if work.is_forward else backward)
        entries.setdefault(label, {})[work.stage, work.is_forward] = entry
    final = micro_batches * interleave - 1
    now, before = entries[final], entries[final - pp * interleave]
    return tuple((now[key], before[key]) for key in now)
