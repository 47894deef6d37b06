"""A pipeline of stages as tasks: one representative rank per stage."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_orders import PlacedPass, listed_passes
from paceline.predictor.schedule.task_schedule import REPLICA_LINK, TaskSchedule
from paceline.predictor.schedule.zero_bubble_orders import SplitPass
from paceline.step import Phase

PIPELINE = "pipeline"
"""Lane of messages from stage to stage."""


@dataclass(frozen=True)
class PipelineSegment:
    """A part of a chunk's last backward, followed by a gradient message.

    The message costs ``launch_seconds`` on the computing device.
    """

    fraction: float
    message_seconds: float
    size_bytes: float
    launch_seconds: float = 0.0


@dataclass(frozen=True)
class PipelineSharding:
    """Weights (and gradients) that sharded replicas exchange in every pass through a chunk.

    ``exposed_seconds`` precede computing, ``hidden_seconds`` overlap it.
    """

    exposed_seconds: float
    hidden_seconds: float
    size_bytes: float

    @property
    def seconds(self) -> float:
        """Seconds on the link."""
        return self.exposed_seconds + self.hidden_seconds


@dataclass(frozen=True)
class ChunkTime:
    """Seconds of one micro-batch through one chunk of the network.

    ``backward_seconds`` includes recomputation but not messages within a stage. ``send_bytes``
    go to the next chunk and, as gradients, back; ``send_seconds`` each direction. ``segments``
    divide the last backward by the gradient messages that overlap it. Sharded gradients are
    scattered in every backward, sharded weights gathered before every pass; ``launch_seconds`` of
    each backward start these messages. ``weight_seconds`` of backward are weight gradients.
    """

    name: str
    forward_seconds: float
    backward_seconds: float
    forward_exchange_seconds: float = 0.0
    backward_exchange_seconds: float = 0.0
    send_seconds: float = 0.0
    send_bytes: float = 0.0
    segments: tuple[PipelineSegment, ...] = ()
    forward_sharding: PipelineSharding | None = None
    backward_sharding: PipelineSharding | None = None
    launch_seconds: float = 0.0
    weight_seconds: float = 0.0


def send_on(
    builder: TaskSchedule,
    chunks: Sequence[ChunkTime],
    work: PlacedPass | SplitPass,
    target: int,
    done: int,
) -> int:
    """Send the result of a pass, once it is ``done``, to the adjacent chunk ``target``."""
    message = chunks[min(work.place, target)]
    return builder.send(
        f"send {work.micro_batch} to {chunks[target].name}",
        message.send_seconds,
        message.send_bytes,
        (done,),
        chunks[work.place].name,
        PIPELINE,
        work.stage,
    )


def pipeline_tasks(
    builder: TaskSchedule,
    chunks: Sequence[ChunkTime],
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
) -> list[tuple[int, ...]]:
    """Schedule all passes of a step; returns what the update of each stage awaits.

    ``chunks`` are in the order of the network; stage s (rank s) holds chunks s, s + pp, ...
    """
    return _Lister(builder, chunks, pp, micro_batches, schedule).run()


class _Lister:
    """Schedules passes in an order in which each comes after its dependencies."""

    def __init__(
        self,
        builder: TaskSchedule,
        chunks: Sequence[ChunkTime],
        pp: int,
        micro_batches: int,
        schedule: PipelineSchedule,
    ) -> None:
        self.builder = builder
        self.chunks = chunks
        self.pp = pp
        self.micro_batches = micro_batches
        self.listed = listed_passes(schedule, pp, micro_batches, len(chunks) // pp)
        self.arrived: list[tuple[int, ...]] = []
        self.exchanged: list[tuple[int, ...]] = [()] * pp
        self.last_pass: list[tuple[int, ...]] = [()] * pp
        self.finished: list[list[int]] = [[] for _ in range(pp)]

    def run(self) -> list[tuple[int, ...]]:
        for work in self.listed:
            stage = work.stage
            arrival = self.arrived[work.source] if work.source >= 0 else ()
            run = self._forward if work.is_forward else self._backward
            done = run(work, (*self.exchanged[stage], *arrival))
            self.last_pass[stage] = (done,)
            self.arrived.append(self._pass_on(work, done))
        return [tuple(tasks) for tasks in self.finished]

    def _forward(self, work: PlacedPass, waits: tuple[int, ...]) -> int:
        chunk, stage = self.chunks[work.place], work.stage
        waits = self._gather(chunk, stage, chunk.forward_sharding, waits)
        name = f"forward {work.micro_batch} {chunk.name}"
        done = self._compute(name, Phase.FORWARD, chunk, stage, chunk.forward_seconds, waits)
        return self._exchange(chunk, stage, chunk.forward_exchange_seconds, done)

    def _backward(self, work: PlacedPass, waits: tuple[int, ...]) -> int:
        chunk, stage = self.chunks[work.place], work.stage
        waits = self._gather(chunk, stage, chunk.backward_sharding, waits)
        is_last = work.micro_batch == self.micro_batches - 1
        segments = chunk.segments if is_last else ()
        name = f"backward {work.micro_batch} {chunk.name}"
        done = -1
        for segment in segments or (PipelineSegment(1.0, 0.0, 0.0, chunk.launch_seconds),):
            seconds = segment.fraction * chunk.backward_seconds
            done = self._compute(name, Phase.BACKWARD, chunk, stage, seconds, waits)
            if segment.launch_seconds > 0:
                launch, cost = f"launch {chunk.name}", segment.launch_seconds
                done = self._compute(launch, Phase.OTHER, chunk, stage, cost, ())
            if segment.size_bytes > 0:
                sent = f"gradients {chunk.name}"
                seconds, size = segment.message_seconds, segment.size_bytes
                self.finished[stage].append(
                    self.builder.send(sent, seconds, size, (done,), chunk.name, rank=stage)
                )
        done = self._exchange(chunk, stage, chunk.backward_exchange_seconds, done)
        if is_last:
            self.finished[stage].append(done)
        return done

    def _compute(
        self,
        name: str,
        phase: Phase,
        chunk: ChunkTime,
        stage: int,
        seconds: float,
        waits: tuple[int, ...],
    ) -> int:
        return self.builder.compute(name, phase, seconds, waits, chunk.name, stage)

    def _gather(
        self, chunk: ChunkTime, stage: int, sharded: PipelineSharding | None, waits: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Gather the weights of a chunk: an exposed part that the pass awaits, a hidden part."""
        if sharded is None:
            return waits
        name, rate = f"shards {chunk.name}", sharded.size_bytes / sharded.seconds
        exposed = -1
        after = (*waits, *self.last_pass[stage])
        for seconds in (sharded.exposed_seconds, sharded.hidden_seconds):
            sent = self.builder.send(name, seconds, rate * seconds, after, chunk.name, rank=stage)
            exposed = sent if exposed < 0 else exposed
            after = (exposed,)
        return after

    def _exchange(self, chunk: ChunkTime, stage: int, seconds: float, after: int) -> int:
        """Messages among the devices of a stage, which its next pass waits for."""
        if seconds <= 0:
            return after
        name = f"exchange {chunk.name}"
        done = self.builder.send(name, seconds, 0.0, (after,), chunk.name, REPLICA_LINK, rank=stage)
        self.exchanged[stage] = (done,)
        return done

    def _pass_on(self, work: PlacedPass, done: int) -> tuple[int, ...]:
        """Send to the next chunk, or turn from forward to backward at the end of the network."""
        place, last = work.place, len(self.chunks) - 1
        if work.is_forward and place == last:
            return (done,)
        target = place + 1 if work.is_forward else place - 1
        if target < 0:
            return ()
        return (send_on(self.builder, self.chunks, work, target, done),)
