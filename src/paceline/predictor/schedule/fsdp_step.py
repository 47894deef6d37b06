"""Sharded data parallelism (ZeRO, FSDP) as tasks of one representative device."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from paceline.predictor.comm.buckets import Message
from paceline.predictor.plan.sync_policy import Policy
from paceline.predictor.schedule.ddp_step import exchange_gradients, split_tasks
from paceline.predictor.schedule.device_tasks import DeviceTasks
from paceline.predictor.schedule.step_costs import (
    GradientExchange,
    LayerTime,
    Seconds,
    StepCosts,
    takes_time,
)
from paceline.predictor.schedule.task_schedule import HSDP_REPLICATE_LINK, NETWORK, ScheduleBackend

COPIES_SUM = "all-reduce shards"
"""Name of messages that sum a shard among its copies (HSDP)."""
_PREFETCHED = 2
"""Units held at a time: the one in use and the prefetched one."""


def schedule_zero12(
    builder: ScheduleBackend,
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
    costs: StepCosts,
    weight_bytes: Sequence[float],
    *,
    scatters_each: bool,
    micro_batches: Seconds = 1,
) -> None:
    """ZeRO stages 1 and 2: reduce-scatter gradients, update a shard, gather weights.

    ``weight_bytes`` is by layer. ``scatters_each``: gradients are sharded (stage 2), so every
    micro-batch scatters its gradients.
    """
    device = DeviceTasks(builder, layers, costs, costs.message_overhead_seconds * exchange.share)
    if exchange.synchronisation.policy is Policy.SPLIT:
        split_tasks(device, exchange, micro_batches)
        return
    batch = device.input()
    device.framework(batch)
    each = exchange.scatter(device.gradient_bytes) if scatters_each else 0.0
    device.earlier_micro_batches(micro_batches - 1, each)
    for index in range(len(layers)):
        device.forward(index, batch)
    sent = exchange_gradients(device, exchange, "reduce-scatter", exchange.scatter)
    everything = Message(tuple(range(len(layers))), math.fsum(weight_bytes))
    device.send("all-gather", everything, exchange.gather, device.update(sent))


def schedule_fsdp(
    builder: ScheduleBackend,
    layers: Sequence[LayerTime],
    exchange: GradientExchange,
    costs: StepCosts,
    weight_bytes: Sequence[float],
    units: Sequence[Sequence[int]],
    *,
    micro_batches: Seconds = 1,
) -> None:
    """Stage 3: gather the weights of each unit before its forward and its backward.

    ``units`` are runs of layers that are gathered together (the wrapped blocks of FSDP); the next
    unit is prefetched while one computes. Gradients are reduce-scattered during backward, in every
    micro-batch.
    """
    device = DeviceTasks(builder, layers, costs, costs.message_overhead_seconds * exchange.share)
    device.framework(device.input())
    begun: tuple[int, ...] = ()
    if takes_time(micro_batches - 1):
        bare = StepCosts(
            message_overhead_seconds=costs.message_overhead_seconds,
            interference=costs.interference,
        )
        one = partial(
            schedule_fsdp,
            layers=layers,
            exchange=exchange,
            costs=bare,
            weight_bytes=weight_bytes,
            units=units,
        )
        begun = builder.accumulate(one, micro_batches - 1)
    weights = [_message(unit, weight_bytes) for unit in units]
    sizes = [layer.gradient_bytes for layer in layers]
    gradients = [_message(unit, sizes) for unit in units]
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

    def gathered_in_backward(size: Any) -> Any:
        return exchange.backward_gathers * exchange.gather(size)

    gathers = partial(_with_weights, device, exchange, weights)
    gathers(range(len(units)), forward, begun, exchange.gather)
    gathers(reversed(range(len(units))), backward, begun, gathered_in_backward)
    device.update(tuple(scattered))


def _scatter(
    device: DeviceTasks, exchange: GradientExchange, gradients: Message, ready: int
) -> int:
    """Scatter the gradients of a unit, then sum the shards among their copies."""
    inside = device.send("reduce-scatter", gradients, exchange.scatter_inside, (ready,))
    if exchange.copies_sum is None:
        return inside
    lane = HSDP_REPLICATE_LINK if exchange.sums_overlap else NETWORK
    shard = Message(gradients.layers, gradients.size_bytes / exchange.shards)
    return device.send(COPIES_SUM, shard, exchange.sum_copies, (inside,), lane)


def _with_weights(
    device: DeviceTasks,
    exchange: GradientExchange,
    weights: Sequence[Message],
    order: Iterable[int],
    run: Callable[[int, tuple[int, ...]], int],
    begun: tuple[int, ...],
    gather: Callable[[Any], Any],
) -> None:
    """Run units in order, each after its gather; a gather waits for the unit two before it.

    It waits for the unit before it if both units exceed what the program holds gathered. No gather
    starts before ``begun``.
    """
    waiting = list(order)
    gathers: list[tuple[int, ...]] = []
    done: list[int] = []
    for position, number in enumerate(waiting):
        while len(gathers) < min(position + _PREFETCHED, len(waiting)):
            ahead = weights[waiting[len(gathers)]]
            both = ahead.size_bytes + weights[number].size_bytes
            if len(gathers) > position and both > exchange.most_gathered_bytes:
                break
            # Of an exceeding pair, the second is gathered when the first is done.
            held = max(len(gathers) - _PREFETCHED, len(done) - 1)
            after = (done[held],) if held >= 0 else begun
            sends = ahead.size_bytes > 0
            gathers.append((device.send("all-gather", ahead, gather, after),) if sends else ())
        done.append(run(number, gathers[position]))


def _message(unit: Sequence[int], sizes: Sequence[float]) -> Message:
    return Message(tuple(unit), math.fsum(sizes[index] for index in unit))
