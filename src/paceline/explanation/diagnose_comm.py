"""Causes of exposed communication: latency, bandwidth, buckets, overlap or volume.

The gain of a remedy is a step scheduled by the predictor from the measured backward pass and from
the time at which each message was submitted and how long it took.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from paceline.constants import number
from paceline.hardware.machine_profile import MachineProfile
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.plan.sync_policy import MIB, Policy, Synchronisation
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.step.step_profile import BUCKET, GRADIENTS, MessageProfile, StepProfile
from paceline.store import Launch

BUCKETS = tuple(size * MIB for size in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 25))
"""Bucket sizes to try, bytes; 25 MiB is the default of DDP (``bucket_cap_mb``)."""
_PIECES, _MANY = 32, 8


@dataclass(frozen=True)
class MessageCost:
    """Latency ``start_seconds`` and inverse bandwidth ``seconds_per_byte`` of a message.

    ``separable`` is whether sizes differ enough to estimate both.
    """

    start_seconds: float
    seconds_per_byte: float
    separable: bool = True

    def seconds(self, size_bytes: float) -> float:
        return self.start_seconds + self.seconds_per_byte * size_bytes


@dataclass(frozen=True)
class MeasuredExchange:
    """The messages of a measured step, and the backward pass that overlaps them (seconds).

    ``backward_end_seconds`` and the times of messages count from the beginning of the step.
    ``handling_seconds`` is the slowdown of the backward pass by messages; ``copied_share`` of it is
    proportional to their bytes, the rest to their number. ``expected`` is the expected cost on
    such a link with ``crowding`` runnable programs per core. ``unpaid_copying_seconds`` is the
    slowdown of the backward pass if messages were sent during it, where memory was probed.
    ``tensors`` are the bytes of the gradients in the order in which DDP sends them; empty if
    unknown. ``blocking`` is whether the training thread sends them and waits for each.
    """

    backward_seconds: float
    backward_end_seconds: float
    messages: tuple[MessageProfile, ...]
    cost: MessageCost
    expected: MessageCost
    handling_seconds: float = 0.0
    copied_share: float = 0.0
    crowding: float = 1.0
    unpaid_copying_seconds: float = 0.0
    tensors: tuple[float, ...] = ()
    blocking: bool = False

    @property
    def largest_share(self) -> float:
        """The largest tensor as a share of the gradient; 0 if sizes are unknown."""
        return max(self.tensors, default=0.0) / max(self.size_bytes, 1.0)

    @property
    def size_bytes(self) -> float:
        """Bytes per rank and step."""
        return math.fsum(message.size_bytes for message in self.messages)

    @property
    def after_backward(self) -> bool:
        """Whether no message is sent before the backward pass has nearly ended."""
        share = number("explain.message.after")
        return self.blocking or min(self._handed) > share * self.backward_seconds

    @property
    def fewest(self) -> int:
        """Messages in buckets of the default size of DDP."""
        return math.ceil(self.size_bytes / BUCKETS[-1])

    @property
    def too_many(self) -> bool:
        """Whether there are several times as many messages as the default of DDP sends."""
        return len(self.messages) >= max(_MANY, 4 * self.fewest)

    @property
    def by_number(self) -> float:
        """Share of the time of messages that is due to their number.

        Bytes take no longer than in the fastest message, whatever delays the others.
        """
        most = seconds_per_byte_at_most(self.messages)
        travelling = self.size_bytes * min(self.cost.seconds_per_byte, most)
        taken = math.fsum(message.seconds for message in self.messages)
        share = 1.0 - self.fewest / len(self.messages)
        return share * max(0.0, 1.0 - travelling / max(taken, 1e-12))

    @property
    def exposed_seconds(self) -> float:
        """Exposed communication in the predictor's schedule of the measured messages."""
        return self.added_seconds(self.cost) - self.handling_seconds

    def added_seconds(self, cost: MessageCost) -> float:
        """Time that the exchange adds to the backward pass with messages of another cost."""
        ends = [0.0, *sorted(self._handed)]
        layers = [
            LayerTime(str(index), 0.0, end - begin, message.size_bytes)
            for index, (message, begin, end) in enumerate(
                zip(self.messages, ends, ends[1:], strict=False)
            )
        ]
        layers.append(LayerTime("rest", 0.0, max(0.0, self.backward_seconds - ends[-1])))
        return self._scheduled(layers, Synchronisation(Policy.PER_TENSOR), cost)

    def added_with_buckets(
        self, bucket_bytes: float, cost: MessageCost, volume: float = 1.0
    ) -> float:
        """Time that the exchange adds in buckets of this size; ``volume`` is the share sent.

        Gradients become ready at an even rate: the known tensors, none of which is divided, or
        small pieces if their sizes are unknown.
        """
        if self.tensors:
            share = volume * self.size_bytes / math.fsum(self.tensors)
            each = self.backward_seconds / len(self.tensors)
            known = [
                LayerTime(str(index), 0.0, each, share * size)
                for index, size in enumerate(self.tensors)
            ]
            return self._scheduled(known, Synchronisation().with_bucket(bucket_bytes), cost)
        size = volume * self.size_bytes
        count = max(_PIECES, min(4096, math.ceil(2 * size / bucket_bytes)))
        layers = [
            LayerTime(str(index), 0.0, self.backward_seconds / count, size / count)
            for index in range(count)
        ]
        return self._scheduled(layers, Synchronisation().with_bucket(bucket_bytes), cost)

    def best_buckets(self, cost: MessageCost) -> tuple[float, float]:
        """The bucket size (bytes) that adds least to the step, and the seconds that it adds.

        Messages of other sizes have at least the usual latency of submitting one, even if the
        measured messages are too few to show it.
        """
        least = number("explain.usual.message_handling")
        start = max(cost.start_seconds, least - self.handling_seconds / len(self.messages))
        able = replace(cost, start_seconds=start)
        tried = {size: self.added_with_buckets(size, able) for size in BUCKETS}
        # Among equal times the largest bucket: fewer messages are more robust.
        best = min(tried, key=lambda size: (tried[size], -size))
        unpaid = self.unpaid_copying_seconds if self.after_backward else 0.0
        return best, tried[best] + unpaid

    @property
    def _handed(self) -> list[float]:
        """Submission time of each message since the beginning of the backward pass."""
        if self.blocking:
            return [self.backward_seconds] * len(self.messages)
        seen = self.backward_seconds + self.handling_seconds
        begin = self.backward_end_seconds - seen
        shares = [(message.ready_seconds - begin) / seen for message in self.messages]
        return [min(1.0, max(0.0, share)) * self.backward_seconds for share in shares]

    def _scheduled(
        self, layers: Sequence[LayerTime], policy: Synchronisation, cost: MessageCost
    ) -> float:
        copying = self.copied_share * self.handling_seconds / self.size_bytes
        handled = [
            replace(one, backward_seconds=one.backward_seconds + copying * one.gradient_bytes)
            for one in layers
        ]
        exchange = GradientExchange(policy, cost.seconds)
        each = (1.0 - self.copied_share) * self.handling_seconds / len(self.messages)
        step = DeviceStep(handled[::-1], exchange, StepCosts(message_overhead_seconds=each))
        return step.seconds() - self.backward_seconds


def measured_exchange(
    profile: StepProfile,
    backward_seconds: float,
    handling_seconds: float,
    ranks: int,
    nodes: int,
    machine: MachineProfile | None,
    crowding: float = 1.0,
    tensors: Sequence[float] = (),
    blocking: bool = False,
    named: bool = False,
) -> MeasuredExchange | None:
    """The gradient exchange; None if no message was recorded or no size is known.

    Where operations are unknown, messages that arrived before the backward pass (buffers, for
    example) carry no gradients.
    """
    begin = profile.backward_end_seconds - backward_seconds - handling_seconds
    sized = [message for message in profile.messages if message.size_bytes > 0]
    messages = tuple(one for one in sized if one.operation in (BUCKET, GRADIENTS))
    if not messages and not named:
        messages = tuple(dropwhile(lambda one: one.ready_seconds + one.seconds <= begin, sized))
    if not messages or ranks < 2 or backward_seconds <= 0:
        return None
    usual = expected_cost(messages, ranks, machine, crowding) if nodes == 1 else None
    cost = fitted_cost(messages, usual)
    each = len(messages) * number("explain.usual.message_handling")
    copying = copying_seconds(math.fsum(one.size_bytes for one in messages), machine)
    return MeasuredExchange(
        backward_seconds,
        profile.backward_end_seconds,
        messages,
        cost,
        usual or cost,
        handling_seconds,
        copying / (copying + each),
        crowding,
        copying if nodes == 1 and machine is not None else 0.0,
        tuple(tensors),
        blocking,
    )


def sends_gradients_itself(launch: Launch) -> bool:
    """Whether the script sends its gradients by collectives of its own, not in buckets of DDP."""
    return GRADIENTS in (launch.outcome.facts.get("collectives") or {})


def other_collectives(launch: Launch) -> dict[str, list[float]]:
    """Collectives that carry no gradients: number, mean bytes and seconds per step of each."""
    sent = launch.outcome.facts.get("collectives") or {}
    return {name: own for name, own in sent.items() if name not in (BUCKET, GRADIENTS)}


def gradient_share(launch: Launch) -> float:
    """Share of the time in blocking collectives that is due to gradients."""
    own = (launch.outcome.facts.get("collectives") or {}).get(GRADIENTS)
    if own is None:
        return 0.0
    others = math.fsum(one[2] for one in other_collectives(launch).values())
    return float(own[2] / max(own[2] + others, 1e-12))


def copying_seconds(size_bytes: float, machine: MachineProfile | None) -> float:
    """Approximate time of a host to copy gradients into messages and back."""
    bandwidth = machine.memory_bandwidth if machine else number("explain.usual.memory")
    return number("explain.usual.copy_passes") * size_bytes / bandwidth


def fitted_cost(messages: Sequence[MessageProfile], usual: MessageCost | None) -> MessageCost:
    """Non-negative latency and inverse bandwidth by least squares on the times of messages.

    Messages of one size, or in flight at the same time, cannot separate latency from bandwidth:
    then the latency is the usual one. It is never above that of the fastest messages. Small
    messages carry no information about the bandwidth, which is then the usual one.
    """
    sizes = [message.size_bytes for message in messages]
    times = [message.seconds for message in messages]
    larger = number("explain.message.larger")
    if statistics.fmean(sizes) < number("explain.message.small") and usual is not None:
        per_byte = min(usual.seconds_per_byte, seconds_per_byte_at_most(messages))
        start = max(0.0, statistics.fmean(times) - per_byte * statistics.fmean(sizes))
        return MessageCost(start, per_byte, separable=False)
    quickest = sorted(times)[len(times) // 8]
    similar = max(times) < larger * quickest
    if max(sizes) >= larger * min(sizes):
        slope, intercept = statistics.linear_regression(sizes, times)
        if slope > 0 or similar:
            start = min(max(0.0, intercept), quickest)
            return MessageCost(start, _rate(sizes, times, start))
    start = min(quickest, usual.start_seconds if usual is not None else 0.0)
    return MessageCost(start, _rate(sizes, times, start), separable=False)


def seconds_per_byte_at_most(messages: Sequence[MessageProfile]) -> float:
    """Inverse bandwidth of the fastest message, without latency."""
    return min(message.seconds / message.size_bytes for message in messages)


def _rate(sizes: Sequence[float], times: Sequence[float], start: float) -> float:
    """Seconds per byte without latency."""
    return max(0.0, math.fsum(times) - start * len(times)) / math.fsum(sizes)


def expected_cost(
    messages: Sequence[MessageProfile],
    ranks: int,
    machine: MachineProfile | None,
    crowding: float = 1.0,
) -> MessageCost:
    """Expected cost of messages of these sizes between ranks of one machine.

    Processors copy messages between processes of one machine: with ``crowding`` runnable programs
    per core they take ``crowding`` times as long.
    """
    points = machine.all_reduce.get(ranks) if machine is not None else None
    if not points:
        per_byte = 2.0 * (ranks - 1) / ranks / number("explain.usual.link")
        return MessageCost(crowding * number("explain.usual.start"), crowding * per_byte)
    curve = MeasuredCurve.through([(point.size_bytes, point.seconds) for point in points])
    start = float(curve(points[0].size_bytes))
    largest = max(message.size_bytes for message in messages)
    rate = max(0.0, float(curve(max(largest, MIB))) - start) / max(largest, MIB)
    abnormal = crowding * number("explain.usual.abnormal")
    return MessageCost(abnormal * start, abnormal * rate)


def with_usual_start(cost: MessageCost, expected: MessageCost) -> MessageCost:
    """The same bandwidth with a latency no longer than expected."""
    return replace(cost, start_seconds=min(cost.start_seconds, expected.start_seconds))


def with_usual_rate(cost: MessageCost, expected: MessageCost) -> MessageCost:
    """The same latency with a bandwidth no lower than expected."""
    per_byte = min(cost.seconds_per_byte, expected.seconds_per_byte)
    return replace(cost, seconds_per_byte=per_byte)
