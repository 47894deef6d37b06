"""A pipeline of stages as tasks: one representative rank per stage."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_orders import Part, Pass, listed_passes
from paceline.predictor.schedule.task_schedule import NETWORK, REPLICA_LINK, TaskSchedule
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


def pipeline_tasks(
    builder: TaskSchedule,
    chunks: Sequence[ChunkTime],
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
) -> list[tuple[int, ...]]:
    """Schedule all passes of a step; returns what the update of each stage awaits.

    ``chunks`` are in the order of the network; stage s (rank s) holds chunks s, s + pp, ... With
    dualpipe, messages within a stage delay only the passes that need their result, not the stage.
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
        self.final = micro_batches - 1
        self.schedule = schedule
        self.listed = listed_passes(schedule, pp, micro_batches, len(chunks) // pp)
        self.arrived: list[tuple[int, ...]] = []
        self.exchanged: list[tuple[int, ...]] = [()] * pp
        self.last_pass: list[tuple[int, ...]] = [()] * pp
        self.finished: list[list[int]] = [[] for _ in range(pp)]

    def run(self) -> list[tuple[int, ...]]:
        for work in self.listed:
            waits = self.exchanged[work.stage]
            if work.part is Part.WEIGHTS:
                self._gradients(work, self.chunks[work.place].weight_seconds, waits)
                self.arrived.append(())
                continue
            arrival = self.arrived[work.source] if work.source >= 0 else ()
            done = self._pass(work, self.chunks[work.place], (*waits, *arrival))
            self.last_pass[work.stage] = (done,)
            self.arrived.append(self._pass_on(work, done))
        return [tuple(tasks) for tasks in self.finished]

    def _pass(self, work: Pass, chunk: ChunkTime, waits: tuple[int, ...]) -> int:
        """Forward or backward with its exchange within the stage."""
        sharded = chunk.forward_sharding if work.is_forward else chunk.backward_sharding
        waits = self._gather(work, sharded, waits)
        if work.is_forward:
            done = self._compute(work, chunk.forward_seconds, waits)
        elif work.part is Part.INPUTS:
            done = self._compute(work, chunk.backward_seconds - chunk.weight_seconds, waits)
        else:
            done = self._gradients(work, chunk.backward_seconds, waits)
        return self._exchange(work, done)

    def _gradients(self, work: Pass, seconds: float, waits: tuple[int, ...]) -> int:
        """Weight gradients; those of the last micro-batch are sent as they become ready."""
        chunk, finished = self.chunks[work.place], self.finished[work.stage]
        is_last = work.micro_batch == self.final
        whole = PipelineSegment(1.0, 0.0, 0.0, chunk.launch_seconds)
        done = -1
        for segment in (chunk.segments if is_last else ()) or (whole,):
            done = self._compute(work, segment.fraction * seconds, waits)
            if segment.launch_seconds > 0:
                done = self.builder.compute(
                    f"launch {chunk.name}",
                    Phase.OTHER,
                    segment.launch_seconds,
                    (),
                    chunk.name,
                    work.stage,
                )
            if segment.size_bytes > 0:
                name, size = f"gradients {chunk.name}", segment.size_bytes
                finished.append(
                    self._send(work, name, segment.message_seconds, size, (done,), NETWORK)
                )
        if is_last and work.part is Part.WEIGHTS:
            finished.append(done)
        return done

    def _compute(self, work: Pass, seconds: float, waits: tuple[int, ...]) -> int:
        phase = Phase.FORWARD if work.is_forward else Phase.BACKWARD
        chunk = self.chunks[work.place].name
        name = f"{'weights' if work.part is Part.WEIGHTS else phase} {work.micro_batch} {chunk}"
        return self.builder.compute(name, phase, seconds, waits, chunk, work.stage)

    def _send(
        self,
        work: Pass,
        name: str,
        seconds: float,
        size_bytes: float,
        after: tuple[int, ...],
        lane: str,
    ) -> int:
        chunk = self.chunks[work.place].name
        return self.builder.send(name, seconds, size_bytes, after, chunk, lane, work.stage)

    def _gather(
        self, work: Pass, sharded: PipelineSharding | None, waits: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Gather the weights of a chunk: an exposed part that the pass awaits, a hidden part."""
        if sharded is None:
            return waits
        name = f"shards {self.chunks[work.place].name}"
        rate, exposed = sharded.size_bytes / sharded.seconds, -1
        after = (*waits, *self.last_pass[work.stage])
        for seconds in (sharded.exposed_seconds, sharded.hidden_seconds):
            sent = self._send(work, name, seconds, rate * seconds, after, NETWORK)
            exposed = sent if exposed < 0 else exposed
            after = (exposed,)
        return after

    def _exchange(self, work: Pass, done: int) -> int:
        """Messages among the devices of a stage, which its next pass waits for."""
        chunk = self.chunks[work.place]
        seconds = chunk.forward_exchange_seconds
        if not work.is_forward:
            seconds = chunk.backward_exchange_seconds
        if seconds > 0:
            name = f"exchange {chunk.name}"
            done = self._send(work, name, seconds, 0.0, (done,), REPLICA_LINK)
            if self.schedule is not PipelineSchedule.DUALPIPE:
                self.exchanged[work.stage] = (done,)
        if work.part is Part.BACKWARD and work.micro_batch == self.final:
            self.finished[work.stage].append(done)
        return done

    def _pass_on(self, work: Pass, done: int) -> tuple[int, ...]:
        """Send to the next chunk, unless the same stage holds it or there is none."""
        place, chunks = work.place, self.chunks
        target = place + 1 if work.is_forward else place - 1
        half = len(chunks) // 2
        turns = self.schedule.is_v and {place, target} == {half - 1, half}
        if not 0 <= target < len(chunks) or turns:
            return (done,)
        message, name = chunks[min(place, target)], f"send {work.micro_batch} to "
        return (
            self._send(
                work,
                name + chunks[target].name,
                message.send_seconds,
                message.send_bytes,
                (done,),
                PIPELINE,
            ),
        )
