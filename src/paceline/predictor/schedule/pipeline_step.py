"""The step of a replica with a pipeline, as tasks of one representative rank per stage."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.predictor.comm.rank_group import Group
from paceline.predictor.partition.pipeline_stages import Chunk, stage_chunks, tied_bytes
from paceline.predictor.partition.replica import Replica
from paceline.predictor.schedule.fsdp_prefetch import FsdpUnit, fsdp_pass_seconds
from paceline.predictor.schedule.pipeline_tasks import (
    ChunkTime,
    PipelineSegment,
    PipelineSharding,
    pipeline_tasks,
)
from paceline.predictor.schedule.pipeline_times import pipeline_clocks
from paceline.predictor.schedule.step_costs import (
    GradientExchange,
    LayerTime,
    StepCosts,
    gradient_messages,
)
from paceline.predictor.schedule.task_schedule import TaskSchedule
from paceline.predictor.schedule.zero_bubble_tasks import split_pipeline_tasks
from paceline.step import Phase, Step, Task
from paceline.workload.blocks import blocks


def pipeline_step(
    replica: Replica,
    layers: Sequence[LayerTime],
    chunks: Sequence[Chunk],
    exchange: GradientExchange | None,
    costs: StepCosts,
    update_seconds: Sequence[float],
    label: str = "",
    bandwidth_factor: float = 1.0,
    *,
    timeline: bool = True,
) -> Step:
    """All micro-batches through all stages, gradients exchanged, weights updated.

    ``layers`` are for one micro-batch, ``update_seconds`` for each stage. Overlapping policies
    send gradients during the last backward of each chunk, others after it. ``bandwidth_factor`` is
    the speed of messages between stages over the modelled one. Without a ``timeline`` all passes
    of a stage are one task.
    """
    plan = replica.plan
    launch = 0.0 if exchange is None else costs.message_overhead_seconds * exchange.share
    times = _chunk_times(chunks, replica, layers, exchange, launch, bandwidth_factor)
    builder = TaskSchedule(costs.interference)
    passes = pipeline_tasks if timeline else pipeline_clocks
    if plan.pipeline.splits_backward:
        passes = split_pipeline_tasks
    waits = passes(builder, times, plan.pp, replica.micro_batches, plan.pipeline)
    _input(builder, costs)
    tied = _tied(builder, replica, chunks, waits, bandwidth_factor)
    for stage, finished in enumerate(waits):
        size = 0.0
        if exchange is not None and plan.zero in (1, 2):
            own = [i for chunk in stage_chunks(plan, chunks, stage) for i in chunk.positions]
            size = sum(replica.weight_bytes[i] for i in own)
        after = (*finished, *tied.get(stage, ()))
        _update(builder, stage, update_seconds[stage], after, exchange, size)
    return builder.build(label)


def _chunk_times(
    chunks: Sequence[Chunk],
    replica: Replica,
    layers: Sequence[LayerTime],
    exchange: GradientExchange | None,
    launch_seconds: float,
    bandwidth_factor: float,
) -> list[ChunkTime]:
    """Times of all chunks; chunks with equal layers are evaluated once."""
    known: dict[object, ChunkTime] = {}
    times = []
    for number, chunk in enumerate(chunks):
        key = (replica.layer_classes.of_layer[chunk.first : chunk.last].tobytes(), chunk.sent_bytes)
        if key not in known:
            known[key] = _chunk_time(
                chunk, replica, layers, exchange, launch_seconds, bandwidth_factor
            )
        times.append(replace(known[key], name=f"chunk {number}"))
    return times


def _chunk_time(
    chunk: Chunk,
    replica: Replica,
    layers: Sequence[LayerTime],
    exchange: GradientExchange | None,
    launch_seconds: float,
    bandwidth_factor: float,
) -> ChunkTime:
    own = [layers[i] for i in chunk.positions]
    zero = replica.plan.zero
    sharded: tuple[PipelineSharding | None, PipelineSharding | None] = (None, None)
    launches = 0.0
    if exchange is not None and zero >= 2:
        units = _units(chunk, replica)
        sharded = _shardings(units, replica, layers, exchange)
        sending = [unit for unit in units if any(layers[i].gradient_bytes > 0 for i in unit)]
        launches = len(sending) * launch_seconds
    return ChunkTime(
        name="",
        forward_seconds=sum(x.forward_seconds for x in own),
        backward_seconds=sum(x.recompute_seconds + x.backward_seconds for x in own),
        forward_exchange_seconds=sum(x.forward_exchange_seconds for x in own),
        backward_exchange_seconds=sum(x.backward_exchange_seconds for x in own),
        send_seconds=hop_seconds(replica, chunk.sent_bytes) / bandwidth_factor,
        send_bytes=chunk.sent_bytes,
        segments=last_backward_segments(own, exchange, zero, launch_seconds),
        forward_sharding=sharded[0],
        backward_sharding=sharded[1],
        launch_seconds=launches,
        weight_seconds=_weight_seconds(chunk, replica, own),
    )


def _weight_seconds(chunk: Chunk, replica: Replica, own: Sequence[LayerTime]) -> float:
    """Seconds of weight gradients in a chunk's backward, if they are a separate pass."""
    if not replica.plan.pipeline.splits_backward:
        return 0.0
    shares = replica.weight_shares[chunk.first : chunk.last]
    return float(sum(share * x.backward_seconds for share, x in zip(shares, own, strict=True)))


def _units(chunk: Chunk, replica: Replica) -> list[range]:
    """The blocks of a chunk, which sharded replicas exchange one by one."""
    return [
        range(part.first, part.last)
        for part in blocks(replica.workload.graph)
        if chunk.first <= part.first < chunk.last
    ]


def _shardings(
    units: Sequence[range],
    replica: Replica,
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
) -> tuple[PipelineSharding | None, PipelineSharding | None]:
    """Messages of blocks in every pass: gradients, and with stage 3 weights before them."""
    forward, backward, gathered, scattered = [], [], 0.0, 0.0
    for part in units:
        weights = sum(replica.weight_bytes[i] for i in part) if replica.plan.zero == 3 else 0.0
        gradients = sum(layers[i].gradient_bytes for i in part)
        gather = float(exchange.gather(weights)) if weights > 0 else 0.0
        scatter = float(exchange.scatter(gradients)) if gradients > 0 else 0.0
        gathered += weights
        scattered += gradients
        forward.append(FsdpUnit(sum(layers[i].whole_forward_seconds for i in part), gather))
        backward.append(
            FsdpUnit(sum(layers[i].whole_backward_seconds for i in part), gather, scatter)
        )
    return _sharding(forward, gathered), _sharding(backward[::-1], gathered + scattered)


def _sharding(units: Sequence[FsdpUnit], size_bytes: float) -> PipelineSharding | None:
    work = float(sum(unit.work for unit in units))
    link = float(sum(unit.gather + unit.scatter for unit in units))
    if link == 0:
        return None
    exposed = float(fsdp_pass_seconds(units)) - work
    return PipelineSharding(exposed, max(0.0, link - exposed), size_bytes)


def hop_seconds(replica: Replica, sent_bytes: float) -> float:
    """Seconds of a message of ``sent_bytes`` per device to the next chunk."""
    plan, layout = replica.plan, replica.layout
    seconds = float(replica.cost("point_to_point", layout.neighbours).seconds(sent_bytes))
    if plan.tp > 1 and not plan.sequence_parallel:
        gather = replica.cost("all_gather", layout.tensor)
        seconds += float(gather.seconds(plan.tp * sent_bytes))
    return seconds


def last_backward_segments(
    layers: Sequence[LayerTime],
    exchange: GradientExchange | None,
    zero: int,
    launch_seconds: float = 0.0,
) -> tuple[PipelineSegment, ...]:
    """The last backward cut at gradient messages; all at its end without overlap.

    Each message takes ``launch_seconds`` from the device.
    """
    if exchange is None or zero >= 2:
        return ()
    seconds = exchange.scatter if zero >= 1 else exchange.round_trip
    groups = gradient_messages(layers, exchange.synchronisation, seconds, launch_seconds)
    total = sum(layer.whole_backward_seconds for layer in layers)
    if exchange.synchronisation.leaves_after_backward or total == 0:
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
    done = len(layers)
    for group in groups:
        first = group.layers[-1]
        share = sum(layer.whole_backward_seconds for layer in layers[first:done]) / total
        size = group.size_bytes
        cut.append(PipelineSegment(share, float(seconds(size)), size, launch_seconds))
        done = first
    rest = sum(layer.whole_backward_seconds for layer in layers[:done]) / total
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
    replica: Replica,
    chunks: Sequence[Chunk],
    waits: Sequence[tuple[int, ...]],
    bandwidth_factor: float,
) -> dict[int, tuple[int, ...]]:
    """Sum the gradients of tied weights of the first and the last stage.

    With V-shaped schedules the first stage also has the last chunk, so nothing is sent.
    """
    size = tied_bytes(replica, chunks)
    if size == 0 or replica.plan.pipeline.is_v:
        return {}
    pair = Group(2, replica.layout.neighbours.ranks_per_node)
    seconds = float(replica.cost("all_reduce", pair).seconds(size)) / bandwidth_factor
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
