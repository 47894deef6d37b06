"""The step of a replica without a pipeline, as tasks of one representative device."""

import heapq
import math
from collections.abc import Sequence

from paceline.predictor.comm.buckets import Message
from paceline.predictor.plan.sync_policy import Policy
from paceline.predictor.schedule.device_tasks import DeviceTasks
from paceline.predictor.schedule.step_costs import (
    CollectiveSeconds,
    GradientExchange,
    LayerTime,
    Seconds,
    StepCosts,
    gradient_messages,
    takes_time,
)
from paceline.predictor.schedule.task_schedule import NETWORK, ScheduleBackend
from paceline.step import Phase

PULL = "network down"
"""Lane of pulls from parameter servers."""


def schedule_ddp(
    builder: ScheduleBackend,
    layers: Sequence[LayerTime],
    exchange: GradientExchange | None,
    costs: StepCosts,
    *,
    micro_batches: Seconds = 1,
) -> None:
    """Schedule the steady-state step of one device.

    ``exchange`` is None for a single replica. All but the last of ``micro_batches`` run first,
    without gradient messages. Policies whose messages depend on times, and ``split``, need
    numbers; others accept arrays.
    """
    share = 1.0 if exchange is None else exchange.share
    device = DeviceTasks(builder, layers, costs, costs.message_overhead_seconds * share)
    if exchange is None:
        _forward(device, device.input(), micro_batches)
        for index in reversed(range(len(layers))):
            device.backward(index)
        device.update(())
    elif exchange.synchronisation.policy is Policy.SPLIT:
        split_tasks(device, exchange, micro_batches)
    elif exchange.synchronisation.policy is Policy.PRIORITY:
        _priority(device, exchange, micro_batches)
    else:
        _forward(device, device.input(), micro_batches)
        device.update(exchange_gradients(device, exchange, "all-reduce", exchange.message))


def split_tasks(device: DeviceTasks, exchange: GradientExchange, micro_batches: Seconds) -> None:
    """All-gathers during forward, then reduce-scatters during backward, then update."""
    groups = _groups(device, exchange, exchange.scatter)
    batch = device.input()
    arrival: dict[int, int] = {}
    for group in reversed(groups):
        task = device.send("all-gather", group, exchange.gather)
        arrival.update(dict.fromkeys(group.layers, task))
    _forward(device, batch, micro_batches, arrival)
    device.update(exchange_gradients(device, exchange, "reduce-scatter", exchange.scatter))


def exchange_gradients(
    device: DeviceTasks, exchange: GradientExchange, name: str, seconds: CollectiveSeconds
) -> tuple[int, ...]:
    """Backward with its messages, during or after it; returns what the update awaits."""
    groups = _groups(device, exchange, seconds)
    closing = {group.layers[-1]: group for group in groups}
    after_backward = exchange.synchronisation.leaves_after_backward
    sent: list[int] = []
    ready: tuple[int, ...] = ()
    for index in reversed(range(len(device.layers))):
        group = closing.get(index)
        ready = (device.backward(index, launches=0 if group is None else 1),)
        if group is not None and not after_backward:
            sent.append(_message(device, exchange, name, group, seconds, ready))
    if after_backward:
        sent = [_message(device, exchange, name, group, seconds, ready) for group in groups]
    return tuple(sent)


def _forward(
    device: DeviceTasks,
    batch: tuple[int, ...],
    micro_batches: Seconds,
    arrival: dict[int, int] | None = None,
    *,
    update: bool = False,
) -> None:
    """Earlier micro-batches, then forward of the last one, each layer after its weights."""
    device.framework(batch)
    arrived = arrival or {}
    everything = tuple(set(arrived.values()))
    has_earlier = takes_time(micro_batches - 1)
    if has_earlier and everything:
        batch = batch + everything
        arrived = {}
    if batch and has_earlier:
        device.builder.compute("wait", Phase.WAIT, 0.0, batch)
    device.earlier_micro_batches(micro_batches - 1)
    for index in range(len(device.layers)):
        needed = (*batch, arrived[index]) if index in arrived else batch
        if update:
            device.update_layer(index, needed)
        device.forward(index, needed)


def _priority(device: DeviceTasks, exchange: GradientExchange, micro_batches: Seconds) -> None:
    """Backward, pieces in the order of the next forward, each layer's update, forward."""
    queue = _PriorityQueue(device, exchange)
    last = -1
    for index in reversed(range(len(device.layers))):
        pieces = _pieces(index, device.layers[index].gradient_bytes, exchange)
        last = device.backward(index, launches=len(pieces))
        queue.put(pieces, last)
    arrival = queue.finish()
    after = () if device.costs.input_overlapped else (max((last, *arrival.values())),)
    _forward(device, device.input(after), micro_batches, arrival, update=True)


def _groups(
    device: DeviceTasks, exchange: GradientExchange, seconds: CollectiveSeconds
) -> list[Message]:
    overhead = device.message_overhead_seconds
    return gradient_messages(device.layers, exchange.synchronisation, seconds, overhead)


def _pieces(index: int, size_bytes: float, exchange: GradientExchange) -> list[Message]:
    count = math.ceil(size_bytes / exchange.synchronisation.piece_bytes)
    return [Message((index,), size_bytes / count) for _ in range(count)]


def _message(
    device: DeviceTasks,
    exchange: GradientExchange,
    name: str,
    group: Message,
    seconds: CollectiveSeconds,
    after: tuple[int, ...],
) -> int:
    """A message, or a push followed by its pull."""
    if exchange.pull is None:
        return device.send(name, group, seconds, after)
    pushed = device.send("push", group, seconds, after)
    lane = NETWORK if exchange.one_way_at_a_time else PULL
    return device.send("pull", group, exchange.answer, (pushed,), lane)


class _PriorityQueue:
    """Priority queue of the network: the ready piece nearest the input is sent first."""

    def __init__(self, device: DeviceTasks, exchange: GradientExchange) -> None:
        self._device = device
        self._exchange = exchange
        self._waiting: list[tuple[int, int, Message, int]] = []
        self._arrival: dict[int, int] = {}
        self._count = 0

    def put(self, pieces: Sequence[Message], ready: int) -> None:
        """Add pieces that task ``ready`` makes available; first send those that start before."""
        builder = self._device.builder
        while self._waiting and builder.free_at(NETWORK) < builder.end_of(ready):
            self._serve()
        for piece in pieces:
            self._count += 1
            heapq.heappush(self._waiting, (piece.layers[0], self._count, piece, ready))
            builder.enqueue(self._exchange.message(piece.size_bytes))

    def finish(self) -> dict[int, int]:
        """Send the rest; returns the last message of each layer."""
        while self._waiting:
            self._serve()
        return self._arrival

    def _serve(self) -> None:
        layer, _, piece, ready = heapq.heappop(self._waiting)
        seconds = self._exchange.message
        self._arrival[layer] = _message(
            self._device, self._exchange, "all-reduce", piece, seconds, (ready,)
        )
        self._device.builder.dequeue(seconds(piece.size_bytes))
