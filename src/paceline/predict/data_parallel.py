"""One synchronous data-parallel step as tasks: layers, gradient messages, input, update."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.plan.messages import Message, messages
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predict.step_builder import NETWORK, StepBuilder
from paceline.step import Phase, Step, Task

CollectiveSeconds = Callable[[float], float]
"""Seconds of one collective operation on so many bytes, for the workers at hand."""

_AFTER_BACKWARD = (Policy.NONE, Policy.ONE_MESSAGE)


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one layer on one device, and the bytes of its gradient."""

    name: str
    forward_seconds: float
    backward_seconds: float
    gradient_bytes: float = 0.0


@dataclass(frozen=True)
class _Extras:
    input_seconds: float
    copy_seconds: float
    input_overlapped: bool
    update_seconds: float
    message_overhead_seconds: float
    overhead_seconds: float


def data_parallel_step(
    layers: Sequence[LayerTime],
    synchronisation: Synchronisation,
    all_reduce: CollectiveSeconds | None,
    *,
    reduce_scatter: CollectiveSeconds | None = None,
    all_gather: CollectiveSeconds | None = None,
    input_seconds: float = 0.0,
    copy_seconds: float = 0.0,
    input_overlapped: bool = True,
    update_seconds: float = 0.0,
    message_overhead_seconds: float = 0.0,
    overhead_seconds: float = 0.0,
    interference: float = 0.0,
    label: str = "",
) -> Step:
    """The steady-state step of one representative worker, scheduled.

    ``layers`` are in forward order. ``all_reduce`` gives the seconds of a message among all
    workers; None means one worker, which communicates nothing. ``split`` uses
    ``reduce_scatter`` and ``all_gather``, each half of an all-reduce unless given. In a steady
    state the all-gathers of ``split`` run under the forward that needs them, and a step with
    ``priority`` begins with backward and ends with the next forward.

    ``input_seconds`` (read and prepare) and ``copy_seconds`` (to the device) run beside the
    step when ``input_overlapped``, since the next batch is prefetched, else before it.
    ``message_overhead_seconds`` is what each message takes from the device that computes
    (launch, negotiation, packing): no overlap hides it. ``interference`` is the fraction by
    which computing slows down while a message is in flight. ``overhead_seconds`` is the
    framework's own time per step.
    """
    share = 1.0 / synchronisation.every_steps
    extras = _Extras(
        input_seconds,
        copy_seconds,
        input_overlapped,
        update_seconds,
        message_overhead_seconds * share,
        overhead_seconds,
    )
    worker = _Worker(layers, synchronisation, extras, interference)
    if all_reduce is None:
        worker.alone()
    else:
        message = _scaled(all_reduce, share)
        if synchronisation.policy is Policy.SPLIT:
            worker.split(
                _scaled(reduce_scatter, share) if reduce_scatter else _scaled(message, 0.5),
                _scaled(all_gather, share) if all_gather else _scaled(message, 0.5),
            )
        elif synchronisation.policy is Policy.PRIORITY:
            worker.priority(message)
        else:
            worker.wait_free(message)
    return worker.builder.build(label or str(synchronisation.policy))


def _scaled(seconds: CollectiveSeconds, factor: float) -> CollectiveSeconds:
    return seconds if factor == 1.0 else lambda size: factor * seconds(size)


class _Worker:
    """The tasks of one worker under each policy."""

    def __init__(
        self,
        layers: Sequence[LayerTime],
        synchronisation: Synchronisation,
        extras: _Extras,
        interference: float,
    ) -> None:
        self.layers = layers
        self.synchronisation = synchronisation
        self.extras = extras
        self.builder = StepBuilder(interference)

    def alone(self) -> None:
        """One worker: nothing to send."""
        self._forward(self._input(), {})
        for index in reversed(range(len(self.layers))):
            self._backward(index)
        self._update(())

    def wait_free(self, message: CollectiveSeconds) -> None:
        """Forward, backward with messages as gradients get ready (or after all), update."""
        self._forward(self._input(), {})
        self._update(self._exchange(self._messages(message), message, "all-reduce"))

    def split(self, scatter: CollectiveSeconds, gather: CollectiveSeconds) -> None:
        """All-gathers under forward, then backward with reduce-scatters under it, then update."""
        groups = self._messages(scatter)
        batch = self._input()
        arrival: dict[int, int] = {}
        for group in reversed(groups):
            task = self._send("all-gather", group, gather, ())
            arrival.update(dict.fromkeys(group.layers, task))
        self._forward(batch, arrival)
        self._update(self._exchange(groups, scatter, "reduce-scatter"))

    def priority(self, message: CollectiveSeconds) -> None:
        """Backward, pieces in the order of the next forward, each layer's update, forward."""
        queue = _PriorityQueue(self, message)
        for index in reversed(range(len(self.layers))):
            pieces = self._pieces(index)
            ready = self._backward(index, launches=len(pieces))
            queue.put(pieces, ready)
        arrival = queue.finish()
        last = len(self.builder.tasks) - 1
        self._forward(self._input(() if self.extras.input_overlapped else (last,)), arrival, True)

    def _messages(self, message: CollectiveSeconds) -> list[Message]:
        ready = [0.0] * len(self.layers)
        clock = 0.0
        for index in reversed(range(len(self.layers))):
            clock += self.layers[index].backward_seconds
            ready[index] = clock
        return messages(
            self.synchronisation,
            [layer.gradient_bytes for layer in self.layers],
            ready,
            message,
            self.extras.message_overhead_seconds,
        )

    def _pieces(self, index: int) -> list[Message]:
        size = self.layers[index].gradient_bytes
        count = math.ceil(size / self.synchronisation.piece_bytes)
        return [Message((index,), size / count) for _ in range(count)]

    def _input(self, after: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Input and copy; what forward must wait for, which is nothing when prefetched."""
        last = after
        for name, phase, seconds in (
            ("input", Phase.INPUT, self.extras.input_seconds),
            ("copy", Phase.COPY, self.extras.copy_seconds),
        ):
            if seconds > 0:
                last = (self.builder.add(Task(name, phase, str(phase), seconds, last)),)
        return () if self.extras.input_overlapped else last

    def _forward(
        self, batch: tuple[int, ...], arrival: dict[int, int], update: bool = False
    ) -> None:
        total_bytes = sum(layer.gradient_bytes for layer in self.layers)
        compute = self.builder.compute
        if self.extras.overhead_seconds > 0:
            compute("framework", Phase.OTHER, self.extras.overhead_seconds, batch)
        for index, layer in enumerate(self.layers):
            needed = (*batch, arrival[index]) if index in arrival else batch
            if update and layer.gradient_bytes > 0 and self.extras.update_seconds > 0:
                share = self.extras.update_seconds * layer.gradient_bytes / total_bytes
                compute(f"update {layer.name}", Phase.UPDATE, share, needed, layer.name)
            compute(
                f"forward {layer.name}", Phase.FORWARD, layer.forward_seconds, needed, layer.name
            )

    def _backward(self, index: int, launches: int = 0) -> int:
        """One layer's backward and the launch of the messages that leave after it."""
        layer = self.layers[index]
        ready = self.builder.compute(
            f"backward {layer.name}", Phase.BACKWARD, layer.backward_seconds, (), layer.name
        )
        overhead = launches * self.extras.message_overhead_seconds
        if overhead > 0:
            ready = self.builder.compute(
                f"launch {layer.name}", Phase.OTHER, overhead, (), layer.name
            )
        return ready

    def _exchange(
        self, groups: Sequence[Message], message: CollectiveSeconds, name: str
    ) -> tuple[int, ...]:
        """Backward with its messages; the tasks that the update waits for."""
        closing = {group.layers[-1]: group for group in groups}
        after_backward = self.synchronisation.policy in _AFTER_BACKWARD
        sent: list[int] = []
        ready: tuple[int, ...] = ()
        for index in reversed(range(len(self.layers))):
            group = closing.get(index)
            ready = (self._backward(index, launches=0 if group is None else 1),)
            if group is not None and not after_backward:
                sent.append(self._send(name, group, message, ready))
        if after_backward:
            sent = [self._send(name, group, message, ready) for group in groups]
        return tuple(sent)

    def _send(
        self, name: str, group: Message, message: CollectiveSeconds, after: tuple[int, ...]
    ) -> int:
        first, last = self.layers[group.layers[0]].name, self.layers[group.layers[-1]].name
        span = first if first == last else f"{first}..{last}"
        seconds = float(message(group.size_bytes))
        return self.builder.send(f"{name} {span}", seconds, group.size_bytes, after, span)

    def _update(self, after: tuple[int, ...]) -> None:
        if self.extras.update_seconds > 0:
            self.builder.compute("update", Phase.UPDATE, self.extras.update_seconds, after)


class _PriorityQueue:
    """Serves pieces on the network: of those ready, the one nearest the input first."""

    def __init__(self, worker: _Worker, message: CollectiveSeconds) -> None:
        self._worker = worker
        self._message = message
        self._waiting: list[tuple[int, int, Message, int]] = []
        self._arrival: dict[int, int] = {}
        self._count = 0

    def put(self, pieces: Sequence[Message], ready: int) -> None:
        """Pieces that may leave after the task ``ready``; serves what left before it ended."""
        builder = self._worker.builder
        while self._waiting and builder.free_at(NETWORK) < builder.end_of(ready):
            self._serve()
        for piece in pieces:
            self._count += 1
            heapq.heappush(self._waiting, (piece.layers[0], self._count, piece, ready))
            builder.waiting_seconds += float(self._message(piece.size_bytes))

    def finish(self) -> dict[int, int]:
        """Serves the rest; the last message of each layer."""
        while self._waiting:
            self._serve()
        return self._arrival

    def _serve(self) -> None:
        layer, _, piece, ready = heapq.heappop(self._waiting)
        self._arrival[layer] = self._worker._send("all-reduce", piece, self._message, (ready,))
        self._worker.builder.waiting_seconds -= float(self._message(piece.size_bytes))
