"""A pipeline of stages as tasks: one representative rank per stage."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.plan.pipeline import Pass, stage_order
from paceline.plan.plan import PipelineSchedule
from paceline.step import Phase, Task

COMPUTE = "compute"
PIPELINE = "pipeline"


@dataclass(frozen=True)
class ChunkTime:
    """Seconds of one micro-batch through one chunk of the network.

    ``forward_seconds`` and ``backward_seconds`` contain what the devices of a stage exchange
    with each other and, in backward, what is computed again. ``send_bytes`` go to the next
    chunk and, as gradient, back from it; ``send_seconds`` each way.
    """

    name: str
    forward_seconds: float
    backward_seconds: float
    send_seconds: float = 0.0
    send_bytes: float = 0.0


@dataclass(frozen=True)
class PipelineTasks:
    """Tasks of all stages, and the last backward of each chunk (by position in the network)."""

    tasks: list[Task]
    last_backward: list[int]


def pipeline_tasks(
    chunks: Sequence[ChunkTime], pp: int, micro_batches: int, schedule: PipelineSchedule
) -> PipelineTasks:
    """Tasks of one step of a pipeline, ready for `paceline.step.schedule`.

    ``chunks`` are in the order of the network; stage s (rank s) holds chunks s, s + pp, ...
    """
    return _Lister(chunks, pp, micro_batches, schedule).run()


class _Lister:
    """Lists passes in an order in which each comes after what it waits for."""

    def __init__(
        self,
        chunks: Sequence[ChunkTime],
        pp: int,
        micro_batches: int,
        schedule: PipelineSchedule,
    ) -> None:
        self.chunks = chunks
        self.pp = pp
        interleave = len(chunks) // pp
        self.orders = [
            stage_order(schedule, stage, pp, micro_batches, interleave) for stage in range(pp)
        ]
        self.tasks: list[Task] = []
        self.arrived: dict[tuple[bool, int, int], int] = {}
        self.forwards: dict[tuple[int, int], int] = {}
        self.last_backward = [0] * len(chunks)

    def run(self) -> PipelineTasks:
        position = [0] * self.pp
        listed = True
        while listed:
            listed = False
            for stage in range(self.pp):
                order = self.orders[stage]
                while position[stage] < len(order) and self._list(stage, order[position[stage]]):
                    position[stage] += 1
                    listed = True
        assert all(position[s] == len(self.orders[s]) for s in range(self.pp))
        return PipelineTasks(self.tasks, self.last_backward)

    def _list(self, stage: int, work: Pass) -> bool:
        """Append a pass with its message if what it waits for is there."""
        place = work.chunk * self.pp + stage
        last = len(self.chunks) - 1
        waits: tuple[int, ...] = ()
        if work.is_forward and place > 0:
            arrival = self.arrived.get((True, work.micro_batch, place))
            if arrival is None:
                return False
            waits = (arrival,)
        if not work.is_forward:
            source = (
                self.forwards.get((work.micro_batch, place))
                if place == last
                else self.arrived.get((False, work.micro_batch, place))
            )
            if source is None:
                return False
            waits = (source,)
        chunk = self.chunks[place]
        phase = Phase.FORWARD if work.is_forward else Phase.BACKWARD
        seconds = chunk.forward_seconds if work.is_forward else chunk.backward_seconds
        name = f"{phase} {work.micro_batch} {chunk.name}"
        index = self._add(Task(name, phase, COMPUTE, seconds, waits, stage, chunk.name))
        if work.is_forward:
            self.forwards[work.micro_batch, place] = index
        else:
            self.last_backward[place] = index
        target = place + 1 if work.is_forward else place - 1
        if 0 <= target <= last:
            message = self.chunks[min(place, target)]
            self.arrived[work.is_forward, work.micro_batch, target] = self._add(
                Task(
                    f"send {work.micro_batch} to {self.chunks[target].name}",
                    Phase.COMMUNICATE,
                    PIPELINE,
                    message.send_seconds,
                    (index,),
                    stage,
                    chunk.name,
                    message.send_bytes,
                )
            )
        return True

    def _add(self, task: Task) -> int:
        self.tasks.append(task)
        return len(self.tasks) - 1
