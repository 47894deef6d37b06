"""Sharded data parallelism (ZeRO, FSDP) as tasks of one representative device."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from paceline.plan.messages import Message
from paceline.plan.synchronisation import Policy
from paceline.predictor.device_tasks import DeviceTasks
from paceline.predictor.replica_step import exchange_gradients, split_tasks
from paceline.predictor.step_builder import COMPUTE, COPIES_LINK, NETWORK, REPLICA_LINK
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.step import Phase, Step, Task, breakdown

_PREFETCHED = 2
"""Units whose weights are held at a time: the one in use and the next."""


def sharded_update_step(
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
    costs: StepCosts,
    weight_bytes: Sequence[float],
    *,
    scatters_each: bool,
    micro_batches: int = 1,
    label: str = "",
) -> Step:
    """Stages 1 and 2: gradients reduce-scattered, a shard updated, weights gathered.

    ``weight_bytes`` are those of each layer. ``scatters_each``: gradients are sharded (stage
    2), so every micro-batch scatters its own.
    """
    device = DeviceTasks(layers, costs, costs.message_overhead_seconds * exchange.share)
    if exchange.synchronisation.policy is Policy.SPLIT:
        split_tasks(device, exchange, micro_batches)
        return device.builder.build(label)
    batch = device.input()
    device.framework(batch)
    each = exchange.scatter(device.gradient_bytes) if scatters_each else 0.0
    device.earlier_micro_batches(micro_batches - 1, each)
    for index in range(len(layers)):
        device.forward(index, batch)
    device.update(exchange_gradients(device, exchange, "reduce-scatter", exchange.scatter))
    everything = Message(tuple(range(len(layers))), math.fsum(weight_bytes))
    device.send("all-gather", everything, exchange.gather, device.last)
    return device.builder.build(label)


def fully_sharded_step(
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
    costs: StepCosts,
    weight_bytes: Sequence[float],
    units: Sequence[Sequence[int]],
    *,
    micro_batches: int = 1,
    label: str = "",
) -> Step:
    """Stage 3: weights of each unit gathered before its forward and before its backward.

    ``units`` are runs of layer positions, in order, that are gathered together (the wrapped
    blocks of FSDP); the next unit is fetched while one computes. Gradients are reduce-scattered
    under backward, in every micro-batch.
    """
    device = DeviceTasks(layers, costs, costs.message_overhead_seconds * exchange.share)
    device.framework(device.input())
    begun: tuple[int, ...] = ()
    if micro_batches > 1:
        bare = replace(costs, input_seconds=0.0, copy_seconds=0.0, update_seconds=0.0)
        one = fully_sharded_step(
            layers, exchange, replace(bare, overhead_seconds=0.0), weight_bytes, units
        )
        begun = _repeated(device, one, micro_batches - 1)
    weights = [_message(unit, weight_bytes) for unit in units]
    gradients = [_message(unit, [layer.gradient_bytes for layer in layers]) for unit in units]
    scattered: list[int] = []

    def forward(number: int, after: tuple[int, ...]) -> int:
        done = 0
        for index in units[number]:
            done = device.forward(index, after)
        return done

    def backward(number: int, after: tuple[int, ...]) -> int:
        done = 0
        for index in reversed(units[number]):
            done = device.backward(index, int(index == units[number][0]), after)
        if gradients[number].size_bytes > 0:
            scattered.append(_scatter(device, exchange, gradients[number], done))
        return done

    _with_weights(device, exchange, weights, range(len(units)), forward, begun)
    _with_weights(device, exchange, weights, reversed(range(len(units))), backward, begun)
    device.update(tuple(scattered))
    return device.builder.build(label)


def _scatter(
    device: DeviceTasks, exchange: GradientExchange, gradients: Message, ready: int
) -> int:
    """Scatter the gradients of a unit, then sum the shards among their copies."""
    inside = device.send("reduce-scatter", gradients, exchange.scatter_inside, (ready,))
    if exchange.copies_sum is None:
        return inside
    lane = COPIES_LINK if exchange.sums_beside else NETWORK
    shard = Message(gradients.layers, gradients.size_bytes / exchange.shards)
    return device.send("all-reduce shards", shard, exchange.sum_copies, (inside,), lane)


def _repeated(device: DeviceTasks, one: Step, times: int) -> tuple[int, ...]:
    """``one`` micro-batch so many times, by phase: what it exposes, and what runs beside it."""
    parts = breakdown(one)
    within = min(_busy(one, REPLICA_LINK)[0], parts.exposed_communication_seconds)
    busy, size = _busy(one, NETWORK, COPIES_LINK)
    busy = busy or 1.0
    exposed = parts.exposed_communication_seconds - within
    hidden = parts.hidden_communication_seconds
    name, add = f"{times} earlier micro-batches", device.builder.add
    done = add(Task(name, Phase.WAIT, COMPUTE, 0.0))
    for lane, seconds in ((REPLICA_LINK, within), (NETWORK, exposed)):
        sent = size * seconds / busy if lane == NETWORK else 0.0
        done = add(
            Task(name, Phase.COMMUNICATE, lane, times * seconds, (done,), size_bytes=times * sent)
        )
    sent = times * size * hidden / busy
    add(Task(name, Phase.COMMUNICATE, NETWORK, times * hidden, (done,), size_bytes=sent))
    for phase, seconds in parts.exposed.items():
        if phase is not Phase.COMMUNICATE:
            done = add(Task(name, phase, COMPUTE, times * seconds, (done,)))
    return (done,)


def _busy(step: Step, *lanes: str) -> tuple[float, float]:
    """Seconds and bytes of everything on some lanes."""
    tasks = [task for lane in lanes for task, _ in step.on(lane)]
    return sum(task.seconds for task in tasks), sum(task.size_bytes for task in tasks)


def _with_weights(
    device: DeviceTasks,
    exchange: GradientExchange,
    weights: Sequence[Message],
    order: Iterable[int],
    run: Callable[[int, tuple[int, ...]], int],
    begun: tuple[int, ...],
) -> None:
    """Run units in order, each after its gather; a gather waits for the unit two before.

    No gather starts before ``begun``.
    """
    waiting = list(order)
    gathers: list[tuple[int, ...]] = []
    done: list[int] = []
    for position, number in enumerate(waiting):
        while len(gathers) < min(position + _PREFETCHED, len(waiting)):
            ahead = weights[waiting[len(gathers)]]
            held = len(gathers) - _PREFETCHED
            after = (done[held],) if held >= 0 else begun
            sends = ahead.size_bytes > 0
            gathers.append(
                (device.send("all-gather", ahead, exchange.gather, after),) if sends else ()
            )
        done.append(run(number, gathers[position]))


def _message(unit: Sequence[int], sizes: Sequence[float]) -> Message:
    return Message(tuple(unit), math.fsum(sizes[index] for index in unit))
