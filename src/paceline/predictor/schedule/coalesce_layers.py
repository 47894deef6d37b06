"""Coalesced runs of layers without messages between them: the same step with fewer layers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from paceline.predictor.comm.buckets import Message, messages
from paceline.predictor.partition.partition import Partition
from paceline.predictor.plan.sync_policy import Policy, Synchronisation
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.device_times import DeviceTimes
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.workload.blocks import blocks


def coalesced_step(
    parts: Partition, times: DeviceTimes, exchange: GradientExchange | None, costs: StepCosts
) -> DeviceStep:
    """The step of a partition with runs of layers between messages as one layer each.

    Its duration is exactly that of the step layer by layer: messages leave at the same points, and
    where messages in flight slow down computing, runs also end at exchanges within the replica,
    during which nothing is computed.
    """
    of_layer, sizes = parts.classes.of_layer, times.gradient_bytes
    zero = 0 if exchange is None else parts.plan.zero
    sent = np.zeros(len(of_layer))
    starts, units = {0}, [0]
    if exchange is not None and zero == 3:
        units = [unit.first for unit in blocks(parts.workload.graph)]
        starts, sent = set(units), sizes[of_layer]
    elif exchange is not None and exchange.synchronisation.policy is Policy.PRIORITY:
        starts, sent = set(range(len(of_layer))), sizes[of_layer]
    elif exchange is not None:
        for message in _messages(parts, times, exchange, costs, zero):
            starts.add(message.layers[-1])
            sent[message.layers[-1]] = message.size_bytes
        exchange = replace(exchange, synchronisation=one_message_each(exchange.synchronisation))
    if exchange is not None and costs.interference > 0:
        starts.update((np.flatnonzero(times.forward_exchange[of_layer] > 0) + 1).tolist())
        starts.update(np.flatnonzero(times.backward_exchange[of_layer] > 0).tolist())
        starts.discard(len(of_layer))
    first = sorted(starts)
    by_kind = [times.forward, times.backward, times.recompute]
    by_kind += [times.forward_exchange, times.backward_exchange, parts.weight_bytes]
    columns = np.vstack([np.stack(by_kind)[:, of_layer], sent])
    sums = np.add.reduceat(columns, first, axis=1).T.tolist()
    run_of = {start: run for run, start in enumerate(first)}
    ends = [*(run_of[unit] for unit in units[1:]), len(first)]
    return DeviceStep(
        [
            LayerTime("", f, b, size, again, there, back)
            for f, b, again, there, back, _, size in sums
        ],
        exchange,
        costs,
        zero,
        [row[5] for row in sums],
        [range(run_of[unit], end) for unit, end in zip(units, ends, strict=True)],
        parts.micro_batches,
    )


def _messages(
    parts: Partition, times: DeviceTimes, exchange: GradientExchange, costs: StepCosts, zero: int
) -> list[Message]:
    """Gradient messages of one backward, in the order of readiness."""
    of_layer, policy = parts.classes.of_layer, exchange.synchronisation
    sizes = times.gradient_bytes[of_layer].tolist()
    ready = [0.0] * len(sizes)
    if policy.groups_by_times:
        ready = np.cumsum(times.whole_backward[of_layer][::-1])[::-1].tolist()
    scatters = zero >= 1 or policy.policy is Policy.SPLIT
    seconds = exchange.scatter if scatters else exchange.message
    return messages(policy, sizes, ready, seconds, costs.message_overhead_seconds * exchange.share)


def runs_between(messages: Sequence[Message], first: int, last: int) -> list[range]:
    """Layers ``first`` up to ``last`` cut at messages, in the order of the network.

    ``messages`` are in the order of backward and count layers from ``first``. A message follows
    the backward of its run; the run before all of them, if any, sends nothing.
    """
    starts = [first + message.layers[-1] for message in reversed(messages)]
    rest = range(first, starts[0] if starts else last)
    runs = [range(*pair) for pair in pairwise([*starts, last])]
    return [rest, *runs] if rest else runs


def one_message_each(synchronisation: Synchronisation) -> Synchronisation:
    """The equivalent policy for coalesced runs with one message each."""
    if synchronisation.policy is Policy.SPLIT:
        return replace(synchronisation, first_bytes=1.0, bucket_bytes=1.0)
    after = synchronisation.leaves_after_backward
    return replace(synchronisation, policy=Policy.NONE if after else Policy.PER_TENSOR)
