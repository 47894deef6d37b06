"""A pipeline whose backward is two passes, as tasks: one representative rank per stage."""

from collections.abc import Sequence

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_tasks import ChunkTime, PipelineSegment, send_on
from paceline.predictor.schedule.task_schedule import REPLICA_LINK, TaskSchedule
from paceline.predictor.schedule.zero_bubble_orders import Part, SplitPass, split_passes
from paceline.step import Phase

_PHASES = {Part.FORWARD: Phase.FORWARD, Part.INPUTS: Phase.BACKWARD, Part.WEIGHTS: Phase.BACKWARD}
_NAMES = {Part.FORWARD: "forward", Part.INPUTS: "backward", Part.WEIGHTS: "weights"}


def split_pipeline_tasks(
    builder: TaskSchedule,
    chunks: Sequence[ChunkTime],
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
) -> list[tuple[int, ...]]:
    """Schedule all passes of a step; returns what the update of each stage awaits.

    ``chunks`` are in the order of the network. With dualpipe, messages within a stage delay only
    the passes that need their result, not the stage.
    """
    lister = _SplitLister(builder, chunks, micro_batches, schedule)
    for work in split_passes(schedule, pp, micro_batches):
        lister.add(work)
    return [tuple(lister.finished.get(stage, ())) for stage in range(pp)]


class _SplitLister:
    """Schedules passes in an order in which each comes after its dependencies."""

    def __init__(
        self,
        builder: TaskSchedule,
        chunks: Sequence[ChunkTime],
        micro_batches: int,
        schedule: PipelineSchedule,
    ) -> None:
        self.builder = builder
        self.chunks = chunks
        self.final = micro_batches - 1
        self.schedule = schedule
        self.arrived: list[tuple[int, ...]] = []
        self.exchanged: dict[int, tuple[int, ...]] = {}
        self.finished: dict[int, list[int]] = {}

    def add(self, work: SplitPass) -> None:
        """One pass, its exchange within the stage, and its message to the next one."""
        waits = self.exchanged.get(work.stage, ())
        if work.part is Part.WEIGHTS:
            self.arrived.append(())
            self._weights(work, waits)
            return
        if work.source >= 0:
            waits = (*waits, *self.arrived[work.source])
        chunk = self.chunks[work.place]
        forward = work.part is Part.FORWARD
        seconds = (
            chunk.forward_seconds if forward else chunk.backward_seconds - chunk.weight_seconds
        )
        done = self._compute(work, seconds, waits)
        exchange = chunk.forward_exchange_seconds if forward else chunk.backward_exchange_seconds
        done = self._exchange(work, exchange, done)
        self.arrived.append(self._passed_on(work, done))

    def _weights(self, work: SplitPass, waits: tuple[int, ...]) -> None:
        """Weight gradients; those of the last micro-batch are sent as they become ready."""
        chunk = self.chunks[work.place]
        last = work.micro_batch == self.final
        for segment in (chunk.segments if last else ()) or (PipelineSegment(1.0, 0.0, 0.0),):
            done = self._compute(work, segment.fraction * chunk.weight_seconds, waits)
            if segment.launch_seconds > 0:
                done = self.builder.compute(
                    f"launch {chunk.name}",
                    Phase.OTHER,
                    segment.launch_seconds,
                    (),
                    chunk.name,
                    work.stage,
                )
            ended = self.finished.setdefault(work.stage, [])
            if segment.size_bytes > 0:
                seconds, size = segment.message_seconds, segment.size_bytes
                name = f"gradients {chunk.name}"
                sent = self.builder.send(name, seconds, size, (done,), chunk.name, rank=work.stage)
                ended.append(sent)
            if last:
                ended.append(done)

    def _compute(self, work: SplitPass, seconds: float, waits: tuple[int, ...]) -> int:
        name = self.chunks[work.place].name
        label = f"{_NAMES[work.part]} {work.micro_batch} {name}"
        return self.builder.compute(label, _PHASES[work.part], seconds, waits, name, work.stage)

    def _exchange(self, work: SplitPass, seconds: float, after: int) -> int:
        if seconds <= 0:
            return after
        name, stage = self.chunks[work.place].name, work.stage
        sent = self.builder.send(
            f"exchange {name}", seconds, 0.0, (after,), name, REPLICA_LINK, rank=stage
        )
        if self.schedule is not PipelineSchedule.DUALPIPE:
            self.exchanged[stage] = (sent,)
        return sent

    def _passed_on(self, work: SplitPass, done: int) -> tuple[int, ...]:
        """What the next chunk's pass waits for."""
        forward, place = work.part is Part.FORWARD, work.place
        target = place + 1 if forward else place - 1
        turns = self.schedule.is_v and {place, target} == {
            len(self.chunks) // 2 - 1,
            len(self.chunks) // 2,
        }
        if not 0 <= target < len(self.chunks) or turns:
            return (done,)
        return (send_on(self.builder, self.chunks, work, target, done),)
