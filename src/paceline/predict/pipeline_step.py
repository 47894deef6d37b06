"""The step of a replica with a pipeline, as tasks of one representative rank per stage."""

from collections.abc import Sequence

from paceline.predict.collectives import Group
from paceline.predict.gradient_messages import gradient_messages, leaves_after_backward
from paceline.predict.pipeline import ChunkTime, PipelineTasks, Segment, pipeline_tasks
from paceline.predict.replica import Replica
from paceline.predict.stages import Chunk, tied_bytes
from paceline.predict.step_builder import COMPUTE, NETWORK
from paceline.predict.step_costs import GradientExchange, LayerTime, StepCosts
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
    forward = sum(x.forward_seconds for x in own)
    backward = sum(x.recompute_seconds + x.backward_seconds for x in own)
    if exchange is not None and replica.plan.zero >= 3:
        weights = sum(replica.weight_bytes[i] for i in chunk.positions)
        gradients = sum(x.gradient_bytes for x in own)
        gather = float(exchange.gather(weights))
        forward = max(forward, gather)
        backward = max(backward, gather + float(exchange.scatter(gradients)))
    return ChunkTime(
        name=f"chunk {number}",
        forward_seconds=forward,
        backward_seconds=backward,
        forward_exchange_seconds=sum(x.forward_exchange_seconds for x in own),
        backward_exchange_seconds=sum(x.backward_exchange_seconds for x in own),
        send_seconds=hop_seconds(replica, chunk.sent_bytes),
        send_bytes=chunk.sent_bytes,
        segments=_segments(own, exchange, replica.plan.zero),
    )


def hop_seconds(replica: Replica, sent_bytes: float) -> float:
    """Seconds until the next chunk has what ``sent_bytes`` of each device make up."""
    plan, layout = replica.plan, replica.layout
    seconds = float(replica.cost("point_to_point", layout.neighbours).seconds(sent_bytes))
    if plan.tp > 1 and not plan.sequence_parallel:
        gather = replica.cost("all_gather", layout.tensor)
        seconds += float(gather.seconds(plan.tp * sent_bytes))
    return seconds


def _segments(
    layers: Sequence[LayerTime], exchange: GradientExchange | None, zero: int
) -> tuple[Segment, ...]:
    """The last backward cut where gradient messages leave; all at its end unless they overlap."""
    if exchange is None or zero >= 3:
        return ()
    seconds = exchange.scatter if zero >= 1 else exchange.message
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
