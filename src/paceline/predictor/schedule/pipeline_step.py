"""The step of a pipeline, as tasks of one representative rank per stage."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from paceline.predictor.comm.buckets import messages
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.comm.replica_comm import cost_among, hop_seconds
from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.partition.pipeline_stages import Chunk, tied_bytes
from paceline.predictor.schedule.device_times import DeviceTimes
from paceline.predictor.schedule.fsdp_prefetch import FsdpUnit, fsdp_pass_seconds
from paceline.predictor.schedule.pipeline_tasks import (
    ChunkTime,
    PipelineSegment,
    PipelineSharding,
    pipeline_tasks,
)
from paceline.predictor.schedule.pipeline_times import pipeline_clocks
from paceline.predictor.schedule.step_costs import GradientExchange, StepCosts
from paceline.predictor.schedule.task_schedule import TaskSchedule
from paceline.step import Phase, Step, Task
from paceline.workload.blocks import blocks
from paceline.workload.cost import LayerProfile

if TYPE_CHECKING:
    from paceline.predictor.schedule.timeline import Timeline


def pipeline_step(timeline: "Timeline", *, with_passes: bool) -> Step:
    """All micro-batches through all stages, gradients exchanged, weights updated.

    Overlapping policies send gradients during the last backward of each chunk, others after it.
    ``with_passes``: one task per pass; else all passes of a stage are one task.
    """
    parts, exchange, costs = timeline.step.parts, timeline.gradients, timeline.costs
    plan, chunks = parts.plan, timeline.step.communication.chunks
    times = chunk_times(timeline)
    if with_passes:
        times = [replace(own, name=f"chunk {number}") for number, own in enumerate(times)]
    builder = TaskSchedule(costs.interference)
    lists = with_passes or plan.pipeline.splits_backward
    passes = pipeline_tasks if lists else pipeline_clocks
    waits = passes(builder, times, plan.pp, parts.micro_batches, plan.pipeline)
    _input(builder, costs)
    tied = _tied(builder, parts, chunks, waits, timeline.corrections.step.bandwidth_factor)
    gathered = np.zeros(plan.pp)
    if exchange is not None and plan.zero in (1, 2):
        gathered = timeline.step.communication.stage_counts @ parts.weight_bytes
    for stage, finished in enumerate(waits):
        after = (*finished, *tied.get(stage, ()))
        _update(builder, stage, timeline.updates[stage], after, exchange, float(gathered[stage]))
    return builder.build(plan.label)


def chunk_times(timeline: "Timeline") -> list[ChunkTime]:
    """Times of all chunks; chunks with equal layers are evaluated once."""
    parts, chunks = timeline.step.parts, timeline.step.communication.chunks
    kinds, width = parts.classes.of_layer.tobytes(), parts.classes.of_layer.itemsize
    known: dict[object, ChunkTime] = {}
    times = []
    for chunk in chunks:
        key = (kinds[width * chunk.first : width * chunk.last], chunk.sent_bytes)
        if key not in known:
            known[key] = _chunk_time(chunk, timeline)
        times.append(known[key])
    return times


def _chunk_time(chunk: Chunk, timeline: "Timeline") -> ChunkTime:
    parts, times, exchange = timeline.step.parts, timeline.times, timeline.gradients
    counts, zero = parts.classes.counts(chunk.positions), parts.plan.zero
    launch = 0.0
    if exchange is not None:
        launch = timeline.costs.message_overhead_seconds * exchange.share
    sharded: tuple[PipelineSharding | None, PipelineSharding | None] = (None, None)
    segments: tuple[PipelineSegment, ...] = ()
    launches = weights = 0.0
    if exchange is not None and zero >= 2:
        units = [
            parts.classes.counts(range(unit.first, unit.last))
            for unit in blocks(parts.workload.graph)
            if chunk.first <= unit.first < chunk.last
        ]
        sharded = _shardings(units, parts, times, exchange)
        launches = launch * sum(float(own @ times.gradient_bytes) > 0 for own in units)
    elif exchange is not None:
        own = parts.classes.of_layer[chunk.first : chunk.last]
        segments = last_backward_segments(
            times.whole_backward[own], times.gradient_bytes[own], exchange, zero, launch
        )
    if parts.plan.pipeline.splits_backward:
        shares = np.array([weight_gradient_share(part.profile) for part in parts.kinds])
        weights = float(counts @ (shares * times.backward))
    tokens, factor = parts.plan.sequence_parallel, timeline.corrections.step.bandwidth_factor
    hop = hop_seconds(parts, parts.layout, chunk.sent_bytes, sequence_parallel=tokens)
    return ChunkTime(
        name="",
        forward_seconds=float(counts @ times.forward),
        backward_seconds=float(counts @ (times.recompute + times.backward)),
        forward_exchange_seconds=float(counts @ times.forward_exchange),
        backward_exchange_seconds=float(counts @ times.backward_exchange),
        send_seconds=float(hop) / factor,
        send_bytes=chunk.sent_bytes,
        segments=segments,
        forward_sharding=sharded[0],
        backward_sharding=sharded[1],
        launch_seconds=launches,
        weight_seconds=weights,
    )


def weight_gradient_share(profile: LayerProfile) -> float:
    """FLOP share of weight gradients in backward; 0 for layers without GEMMs in backward."""
    weights, inputs = (
        float(sum(g.m * g.n * g.k * g.count * g.executed for g in gemms))
        for gemms in (profile.weight_gradient_gemms, profile.input_gradient_gemms)
    )
    return weights / (weights + inputs) if weights > 0 else 0.0


def _shardings(
    units: Sequence[Array], parts: Partition, times: DeviceTimes, exchange: GradientExchange
) -> tuple[PipelineSharding | None, PipelineSharding | None]:
    """Messages of blocks in every pass: gradients, and with stage 3 weights before them.

    ``units`` are the numbers of layers of each kind in each block.
    """
    forward, backward, gathered, scattered = [], [], 0.0, 0.0
    for counts in units:
        weights = float(counts @ parts.weight_bytes) if parts.plan.zero == 3 else 0.0
        gradients = float(counts @ times.gradient_bytes)
        gather = float(exchange.gather(weights)) if weights > 0 else 0.0
        scatter = float(exchange.scatter(gradients)) if gradients > 0 else 0.0
        gathered += weights
        scattered += gradients
        forward.append(FsdpUnit(float(counts @ times.whole_forward), gather))
        backward.append(FsdpUnit(float(counts @ times.whole_backward), gather, scatter))
    return _sharding(forward, gathered), _sharding(backward[::-1], gathered + scattered)


def _sharding(units: Sequence[FsdpUnit], size_bytes: float) -> PipelineSharding | None:
    work = float(sum(unit.work for unit in units))
    link = float(sum(unit.gather + unit.scatter for unit in units))
    if link == 0:
        return None
    exposed = float(fsdp_pass_seconds(units)) - work
    return PipelineSharding(exposed, max(0.0, link - exposed), size_bytes)


def last_backward_segments(
    backward_seconds: Array,
    gradient_bytes: Array,
    exchange: GradientExchange,
    zero: int,
    launch_seconds: float = 0.0,
) -> tuple[PipelineSegment, ...]:
    """The last backward cut at gradient messages; all at its end without overlap.

    Arrays are by layer; each message takes ``launch_seconds`` from the device.
    """
    policy = exchange.synchronisation
    seconds = exchange.scatter if zero >= 1 else exchange.round_trip
    ready = np.cumsum(backward_seconds[::-1])[::-1]
    groups = messages(policy, gradient_bytes.tolist(), ready.tolist(), seconds, launch_seconds)
    total = float(ready[0])
    if policy.leaves_after_backward or total == 0:
        return tuple(
            PipelineSegment(
                float(number == 0),
                float(seconds(group.size_bytes)),
                group.size_bytes,
                launch_seconds,
            )
            for number, group in enumerate(groups)
        )
    cut: list[PipelineSegment] = []
    done = 0.0
    for group in groups:
        until, size = float(ready[group.layers[-1]]), group.size_bytes
        share = (until - done) / total
        cut.append(PipelineSegment(share, float(seconds(size)), size, launch_seconds))
        done = until
    rest = (total - done) / total
    return (*cut, PipelineSegment(rest, 0.0, 0.0)) if rest > 0 else tuple(cut)


def _input(builder: TaskSchedule, costs: StepCosts) -> None:
    """The input of the next step, which overlaps everything, and framework overhead."""
    for name, phase, seconds in (
        ("input", Phase.INPUT, costs.input_seconds),
        ("copy", Phase.COPY, costs.copy_seconds),
    ):
        if seconds > 0:
            builder.add(Task(name, phase, str(phase), seconds))
    if costs.overhead_seconds > 0:
        builder.compute("framework", Phase.OTHER, costs.overhead_seconds)


def _tied(
    builder: TaskSchedule,
    parts: Partition,
    chunks: Sequence[Chunk],
    waits: Sequence[tuple[int, ...]],
    bandwidth_factor: float,
) -> dict[int, tuple[int, ...]]:
    """Sum the gradients of tied weights of the first and the last stage.

    With V-shaped schedules the first stage also has the last chunk, so nothing is sent.
    """
    size = tied_bytes(parts, chunks)
    if size == 0 or parts.plan.pipeline.is_v:
        return {}
    pair = Group(2, parts.layout.neighbours.ranks_per_node)
    seconds = float(cost_among(parts, "all_reduce", pair).seconds(size)) / bandwidth_factor
    ends = (*waits[0], *waits[-1])
    return {
        stage: (builder.send("all-reduce tied weights", seconds, size, ends, rank=stage),)
        for stage in (0, len(waits) - 1)
    }


def _update(
    builder: TaskSchedule,
    stage: int,
    seconds: float,
    after: tuple[int, ...],
    exchange: GradientExchange | None,
    gathered_bytes: float,
) -> None:
    """Update a stage; gather its weights if the update is sharded."""
    done = builder.compute("update", Phase.UPDATE, seconds, after, rank=stage)
    if exchange is not None and gathered_bytes > 0:
        gather = float(exchange.gather(gathered_bytes))
        builder.send("all-gather weights", gather, gathered_bytes, (done,), rank=stage)
