"""The step of a replica with a pipeline, as tasks of one representative rank per stage."""

from collections.abc import Sequence

from paceline.plan.blocks import blocks
from paceline.plan.gathered_passes import GatheredUnit, gathered_pass_seconds
from paceline.predictor.collectives import Group
from paceline.predictor.gradient_messages import gradient_messages, leaves_after_backward
from paceline.predictor.pipeline import ChunkTime, PipelineTasks, Segment, Sharding, pipeline_tasks
from paceline.predictor.replica import Replica
from paceline.predictor.stages import Chunk, tied_bytes
from paceline.predictor.step_builder import COMPUTE, NETWORK
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.step import Phase, Step, Task, schedule


def pipeline_step(
    replica: Replica,
    layers: Sequence[LayerTime],
    chunks: Sequence[Chunk],
    exchange: GradientExchange | None,
    costs: StepCosts,
    update_seconds: Sequence[float],
    label: str = "",
) -> Step:
    """All micro-batches through all stages, gradients exchanged, weights updated.

    ``layers`` are those of one micro-batch; ``update_seconds`` are those of each stage. Policies
    that overlap send gradients under the last backward of each chunk, others after it.
    """
    plan = replica.plan
    times = [
        _chunk_time(number, chunk, replica, layers, exchange) for number, chunk in enumerate(chunks)
    ]
    listed = pipeline_tasks(times, plan.pp, replica.micro_batches, plan.pipeline)
    tasks = _with_input(listed.tasks, costs)
    tied = tied_bytes(replica, chunks)
    _finish(tasks, listed, replica, exchange, update_seconds, chunks, tied)
    return schedule(tasks, label)


def _chunk_time(
    number: int,
    chunk: Chunk,
    replica: Replica,
    layers: Sequence[LayerTime],
    exchange: GradientExchange | None,
) -> ChunkTime:
    own = [layers[i] for i in chunk.positions]
    zero = replica.plan.zero
    sharded: tuple[Sharding | None, Sharding | None] = (None, None)
    if exchange is not None and zero >= 2:
        sharded = _shardings(chunk, replica, layers, exchange)
    return ChunkTime(
        name=f"chunk {number}",
        forward_seconds=sum(x.forward_seconds for x in own),
        backward_seconds=sum(x.recompute_seconds + x.backward_seconds for x in own),
        forward_exchange_seconds=sum(x.forward_exchange_seconds for x in own),
        backward_exchange_seconds=sum(x.backward_exchange_seconds for x in own),
        send_seconds=hop_seconds(replica, chunk.sent_bytes),
        send_bytes=chunk.sent_bytes,
        segments=last_backward_segments(own, exchange, zero),
        forward_sharding=sharded[0],
        backward_sharding=sharded[1],
    )


def _shardings(
    chunk: Chunk,
    replica: Replica,
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
) -> tuple[Sharding | None, Sharding | None]:
    """What its blocks exchange in every pass: gradients, with stage 3 weights before them."""
    parts = [
        range(part.first, part.last)
        for part in blocks(replica.workload.graph)
        if chunk.first <= part.first < chunk.last
    ]
    forward, backward, gathered, scattered = [], [], 0.0, 0.0
    for part in parts:
        weights = sum(replica.weight_bytes[i] for i in part) if replica.plan.zero == 3 else 0.0
        gradients = sum(layers[i].gradient_bytes for i in part)
        gather = float(exchange.gather(weights)) if weights > 0 else 0.0
        scatter = float(exchange.scatter(gradients)) if gradients > 0 else 0.0
        gathered += weights
        scattered += gradients
        forward.append(GatheredUnit(sum(layers[i].whole_forward_seconds for i in part), gather))
        backward.append(
            GatheredUnit(sum(layers[i].whole_backward_seconds for i in part), gather, scatter)
        )
    return _sharding(forward, gathered), _sharding(backward[::-1], gathered + scattered)


def _sharding(units: Sequence[GatheredUnit], size_bytes: float) -> Sharding | None:
    work = float(sum(unit.work for unit in units))
    link = float(sum(unit.gather + unit.scatter for unit in units))
    if link == 0:
        return None
    exposed = float(gathered_pass_seconds(units)) - work
    return Sharding(exposed, max(0.0, link - exposed), size_bytes)


def hop_seconds(replica: Replica, sent_bytes: float) -> float:
    """Seconds until the next chunk has what ``sent_bytes`` of each device make up."""
    plan, layout = replica.plan, replica.layout
    seconds = float(replica.cost("point_to_point", layout.neighbours).seconds(sent_bytes))
    if plan.tp > 1 and not plan.sequence_parallel:
        gather = replica.cost("all_gather", layout.tensor)
        seconds += float(gather.seconds(plan.tp * sent_bytes))
    return seconds


def last_backward_segments(
    layers: Sequence[LayerTime], exchange: GradientExchange | None, zero: int
) -> tuple[Segment, ...]:
    """The last backward cut where gradient messages leave; all at its end unless they overlap."""
    if exchange is None or zero >= 2:
        return ()
    seconds = exchange.scatter if zero >= 1 else exchange.round_trip
    groups = gradient_messages(layers, exchange.synchronisation, seconds)
    total = sum(layer.whole_backward_seconds for layer in layers)
    if leaves_after_backward(exchange.synchronisation) or total == 0:
        sizes = [group.size_bytes for group in groups]
        whole = [Segment(1.0, float(seconds(sizes[0])), sizes[0])] if sizes else []
        return (*whole, *(Segment(0.0, float(seconds(size)), size) for size in sizes[1:]))
    cut: list[Segment] = []
    done = len(layers)
    for group in groups:
        first = group.layers[-1]
        share = sum(layer.whole_backward_seconds for layer in layers[first:done]) / total
        cut.append(Segment(share, float(seconds(group.size_bytes)), group.size_bytes))
        done = first
    rest = sum(layer.whole_backward_seconds for layer in layers[:done]) / total
    return (*cut, Segment(rest, 0.0, 0.0)) if rest > 0 else tuple(cut)


def _with_input(tasks: list[Task], costs: StepCosts) -> list[Task]:
    """The tasks, with the input of the next step beside them."""
    listed = list(tasks)
    for name, phase, seconds in (
        ("input", Phase.INPUT, costs.input_seconds),
        ("copy", Phase.COPY, costs.copy_seconds),
    ):
        if seconds > 0:
            listed.append(Task(name, phase, str(phase), seconds))
    if costs.overhead_seconds > 0:
        listed.append(Task("framework", Phase.OTHER, COMPUTE, costs.overhead_seconds))
    return listed


def _finish(
    tasks: list[Task],
    listed: PipelineTasks,
    replica: Replica,
    exchange: GradientExchange | None,
    update_seconds: Sequence[float],
    chunks: Sequence[Chunk],
    tied: float,
) -> None:
    """Sum tied weights, update each stage, gather weights whose update was shared out."""
    pp = replica.plan.pp
    waits = [list(finished) for finished in listed.finished]
    if tied > 0:
        pair = replica.layout.neighbours
        seconds = float(replica.cost("all_reduce", Group(2, pair.ranks_per_node)).seconds(tied))
        ends = (*waits[0], *waits[-1])
        for stage in (0, pp - 1):
            name = "all-reduce tied weights"
            tasks.append(
                Task(name, Phase.COMMUNICATE, NETWORK, seconds, ends, stage, size_bytes=tied)
            )
            waits[stage].append(len(tasks) - 1)
    gathers = exchange is not None and replica.plan.zero in (1, 2)
    for stage in range(pp):
        tasks.append(
            Task("update", Phase.UPDATE, COMPUTE, update_seconds[stage], tuple(waits[stage]), stage)
        )
        if gathers:
            assert exchange is not None
            size = sum(replica.weight_bytes[i] for c in chunks[stage::pp] for i in c.positions)
            after = (len(tasks) - 1,)
            seconds = float(exchange.gather(size))
            name = "all-gather weights"
            tasks.append(
                Task(name, Phase.COMMUNICATE, NETWORK, seconds, after, stage, size_bytes=size)
            )
