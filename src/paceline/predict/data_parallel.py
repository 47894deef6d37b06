"""One synchronous data-parallel step as tasks: layers, gradient messages, input, update."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.plan.messages import Message, messages
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predict.priority import priority_order
from paceline.step import Phase, Step, Task, schedule

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
    (launch, negotiation, packing): no overlap hides it. ``overhead_seconds`` is the framework's
    own time per step.
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
    builder = _Builder(layers, synchronisation, extras)
    if all_reduce is None:
        builder.alone()
    else:
        message = _scaled(all_reduce, share)
        if synchronisation.policy is Policy.SPLIT:
            builder.split(
                _scaled(reduce_scatter, share) if reduce_scatter else _scaled(message, 0.5),
                _scaled(all_gather, share) if all_gather else _scaled(message, 0.5),
            )
        elif synchronisation.policy is Policy.PRIORITY:
            builder.priority(message)
        else:
            builder.wait_free(message)
    return schedule(builder.tasks, label or str(synchronisation.policy))


def _scaled(seconds: CollectiveSeconds, factor: float) -> CollectiveSeconds:
    return seconds if factor == 1.0 else lambda size: factor * seconds(size)


class _Builder:
    """Lists the tasks of one worker's step; indices into ``tasks`` are the dependencies."""

    def __init__(
        self, layers: Sequence[LayerTime], synchronisation: Synchronisation, extras: _Extras
    ) -> None:
        self.layers = layers
        self.synchronisation = synchronisation
        self.extras = extras
        self.tasks: list[Task] = []

    def alone(self) -> None:
        """One worker: nothing to send."""
        self._forward_pass(self._input(()), {})
        self._backward_pass([])
        self._update()

    def wait_free(self, message: CollectiveSeconds) -> None:
        """Forward, backward with messages as gradients get ready (or after all), update."""
        self._forward_pass(self._input(()), {})
        self._update(*self._exchange(self._messages(message), message, "all-reduce"))

    def split(self, scatter: CollectiveSeconds, gather: CollectiveSeconds) -> None:
        """All-gathers under forward, then backward with reduce-scatters under it, then update."""
        groups = self._messages(scatter)
        batch = self._input(())
        arrival: dict[int, int] = {}
        for group in reversed(groups):
            task = self._send("all-gather", group, gather, ())
            arrival.update(dict.fromkeys(group.layers, task))
        self._forward_pass(batch, arrival)
        self._update(*self._exchange(groups, scatter, "reduce-scatter"))

    def priority(self, message: CollectiveSeconds) -> None:
        """Backward, pieces in the order of the next forward, each layer's update, forward."""
        pieces = self._pieces()
        launched = self._backward_pass(pieces)
        ready: list[float] = []
        clock = 0.0
        for task in self.tasks:
            clock += task.seconds
            ready.append(clock)
        order = priority_order(
            [piece.layers[0] for piece in pieces],
            [ready[launched[piece.layers[0]]] for piece in pieces],
            [message(piece.size_bytes) for piece in pieces],
        )
        batch = self._input(() if self.extras.input_overlapped else (len(self.tasks) - 1,))
        arrival: dict[int, int] = {}
        for position in order:
            layer = pieces[position].layers[0]
            arrival[layer] = self._send("all-reduce", pieces[position], message, (launched[layer],))
        self._forward_pass(batch, arrival, update=True)

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

    def _pieces(self) -> list[Message]:
        pieces = []
        for index in reversed(range(len(self.layers))):
            size = self.layers[index].gradient_bytes
            if size > 0:
                count = math.ceil(size / self.synchronisation.piece_bytes)
                pieces += [Message((index,), size / count)] * count
        return pieces

    def _input(self, after: tuple[int, ...]) -> tuple[int, ...]:
        """Input and copy; what forward must wait for, which is nothing when prefetched."""
        last = after
        for name, phase, seconds in (
            ("input", Phase.INPUT, self.extras.input_seconds),
            ("copy", Phase.COPY, self.extras.copy_seconds),
        ):
            if seconds > 0:
                last = (self._add(Task(name, phase, str(phase), seconds, last)),)
        return () if self.extras.input_overlapped else last

    def _forward_pass(
        self, batch: tuple[int, ...], arrival: dict[int, int], *, update: bool = False
    ) -> None:
        total_bytes = sum(layer.gradient_bytes for layer in self.layers)
        if self.extras.overhead_seconds > 0:
            self._compute("framework", Phase.OTHER, self.extras.overhead_seconds, batch)
        for index, layer in enumerate(self.layers):
            needed = batch + ((arrival[index],) if index in arrival else ())
            if update and total_bytes > 0 and layer.gradient_bytes > 0:
                share = self.extras.update_seconds * layer.gradient_bytes / total_bytes
                self._compute(f"update {layer.name}", Phase.UPDATE, share, needed, layer.name)
            self._compute(
                f"forward {layer.name}", Phase.FORWARD, layer.forward_seconds, needed, layer.name
            )

    def _backward_pass(self, groups: Sequence[Message]) -> dict[int, int]:
        """Backward with the launch of each message; the task after which a layer's may leave."""
        overhead = self.extras.message_overhead_seconds
        closing: dict[int, int] = {}
        for group in groups:
            closing[group.layers[-1]] = closing.get(group.layers[-1], 0) + 1
        ready: dict[int, int] = {}
        for index in reversed(range(len(self.layers))):
            layer = self.layers[index]
            ready[index] = self._compute(
                f"backward {layer.name}", Phase.BACKWARD, layer.backward_seconds, (), layer.name
            )
            if index in closing and overhead > 0:
                ready[index] = self._compute(
                    f"launch {layer.name}", Phase.OTHER, overhead * closing[index], (), layer.name
                )
        return ready

    def _exchange(
        self, groups: Sequence[Message], message: CollectiveSeconds, name: str
    ) -> list[int]:
        """Backward with its messages; the tasks that the update waits for."""
        ready = self._backward_pass(groups)
        waits = self.synchronisation.policy in _AFTER_BACKWARD
        return [
            self._send(name, group, message, (ready[0 if waits else group.layers[-1]],))
            for group in groups
        ]

    def _send(
        self, name: str, group: Message, message: CollectiveSeconds, after: tuple[int, ...]
    ) -> int:
        first, last = self.layers[group.layers[0]].name, self.layers[group.layers[-1]].name
        span = first if first == last else f"{first}..{last}"
        return self._add(
            Task(
                f"{name} {span}",
                Phase.COMMUNICATE,
                "network",
                float(message(group.size_bytes)),
                after,
                layer=span,
                size_bytes=group.size_bytes,
            )
        )

    def _update(self, *after: int) -> None:
        if self.extras.update_seconds > 0:
            self._compute("update", Phase.UPDATE, self.extras.update_seconds, after)

    def _compute(
        self,
        name: str,
        phase: Phase,
        seconds: float,
        after: tuple[int, ...],
        layer: str = "",
    ) -> int:
        return self._add(Task(name, phase, "compute", seconds, after, layer=layer))

    def _add(self, task: Task) -> int:
        self.tasks.append(task)
        return len(self.tasks) - 1
