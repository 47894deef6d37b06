"""Components of a step: layer times, gradient messages and other costs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.predictor.comm.buckets import Message, messages
from paceline.predictor.plan.sync_policy import Synchronisation

Seconds = Any
"""Seconds: a number, or an array over configurations."""

CollectiveSeconds = Callable[[Any], Any]
"""Seconds of one collective by its size in bytes (a number, or an array if supported)."""


def takes_time(seconds: Seconds) -> bool:
    """Whether a number, or any of an array, is above zero."""
    return bool(np.any(seconds > 0)) if isinstance(seconds, np.ndarray) else bool(seconds > 0)


@dataclass(frozen=True)
class MeasuredShare:
    """Seconds of an operation: the measured all-reduce times the modelled share of it."""

    measured: CollectiveSeconds
    modelled: CollectiveSeconds
    all_reduce: CollectiveSeconds

    def __call__(self, size: Any) -> Any:
        return self.measured(size) * self.modelled(size) / self.all_reduce(size)


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one layer on one device for one micro-batch, and the bytes of its gradient.

    ``recompute_seconds`` is forward work repeated before backward.
    ``forward_exchange_seconds`` and ``backward_exchange_seconds`` are messages with devices of
    the same replica (tensor, context, expert parallel) that the next layer waits for.
    """

    name: str
    forward_seconds: Seconds
    backward_seconds: Seconds
    gradient_bytes: float = 0.0
    recompute_seconds: Seconds = 0.0
    forward_exchange_seconds: Seconds = 0.0
    backward_exchange_seconds: Seconds = 0.0

    @property
    def whole_forward_seconds(self) -> Seconds:
        """Forward including exchanges."""
        return self.forward_seconds + self.forward_exchange_seconds

    @property
    def whole_backward_seconds(self) -> Seconds:
        """Backward including exchanges and recomputation."""
        return self.recompute_seconds + self.backward_seconds + self.backward_exchange_seconds


@dataclass(frozen=True)
class GradientExchange:
    """Gradient synchronisation among replicas: a policy and the cost of its messages.

    ``all_reduce`` is the message of most policies; with ``pull`` it is the push to parameter
    servers, and pulls overlap later pushes unless ``one_way_at_a_time``. Sharded data parallelism
    and ``split`` use ``reduce_scatter`` and ``all_gather``, each half of an all-reduce by default.
    ``copies_sum`` sums a scattered shard (one of ``shards``) among its copies, overlapping other
    messages if ``sums_overlap``. All times are divided by ``bandwidth_factor``. Gathered weights of
    two units together take at most ``most_gathered_bytes``, else the second is not prefetched;
    those of a unit are gathered ``backward_gathers`` times in backward.
    """

    synchronisation: Synchronisation
    all_reduce: CollectiveSeconds
    reduce_scatter: CollectiveSeconds | None = None
    all_gather: CollectiveSeconds | None = None
    pull: CollectiveSeconds | None = None
    one_way_at_a_time: bool = False
    bandwidth_factor: float = 1.0
    copies_sum: CollectiveSeconds | None = None
    shards: int = 1
    sums_overlap: bool = False
    most_gathered_bytes: float = math.inf
    backward_gathers: float = 1.0

    @property
    def share(self) -> float:
        """Share of steps that exchange gradients (below 1 for local SGD)."""
        return 1.0 / self.synchronisation.every_steps

    def message(self, size: Any) -> Any:
        """Seconds of an all-reduce or a push."""
        return self._factor * self.all_reduce(size)

    def answer(self, size: Any) -> Any:
        """Seconds of the pull after a push; 0 without parameter servers."""
        return 0.0 if self.pull is None else self._factor * self.pull(size)

    def round_trip(self, size: Any) -> Any:
        """Seconds of an all-reduce, or of a push and the pull that follows it."""
        return self.message(size) + self.answer(size)

    def scatter(self, size: Any) -> Any:
        """Seconds until gradients are scattered and summed among the copies of each shard."""
        inside = self.scatter_inside(size)
        return inside if self.copies_sum is None else inside + self.sum_copies(size / self.shards)

    def sum_copies(self, size: Any) -> Any:
        """Seconds to sum a shard of ``size`` bytes among its copies; 0 without copies."""
        return 0.0 if self.copies_sum is None else self._factor * self.copies_sum(size)

    def scatter_inside(self, size: Any) -> Any:
        """Seconds of a reduce-scatter within one shard group."""
        if self.reduce_scatter is None:
            return 0.5 * self.message(size)
        return self._factor * self.reduce_scatter(size)

    def gather(self, size: Any) -> Any:
        """Seconds of an all-gather."""
        if self.all_gather is None:
            return 0.5 * self.message(size)
        return self._factor * self.all_gather(size)

    def with_all_reduce(self, measured: CollectiveSeconds) -> "GradientExchange":
        """Measured all-reduces; reduce-scatter and all-gather keep their modelled share of one.

        The share depends on the library: half for rings, all for a scatter that sums everything.
        """

        def part(modelled: CollectiveSeconds | None) -> CollectiveSeconds | None:
            return modelled and MeasuredShare(measured, modelled, self.all_reduce)

        return GradientExchange(
            self.synchronisation,
            measured,
            part(self.reduce_scatter),
            part(self.all_gather),
            copies_sum=part(self.copies_sum),
            shards=self.shards,
            sums_overlap=self.sums_overlap,
        )

    @property
    def _factor(self) -> float:
        return self.share / self.bandwidth_factor


@dataclass(frozen=True)
class StepCosts:
    """Costs of a step besides layers and messages, in seconds.

    ``input_seconds`` (read and prepare) and ``copy_seconds`` (to the device) overlap the step if
    ``input_overlapped`` (prefetching), else precede it. ``message_overhead_seconds`` is the cost of
    each message on the computing device (launch, negotiation, packing), which overlap does not
    hide. ``interference`` is the relative slowdown of computing while a message is in flight.
    ``overhead_seconds`` is framework overhead per step.
    """

    input_seconds: float = 0.0
    copy_seconds: Seconds = 0.0
    input_overlapped: bool = True
    update_seconds: Seconds = 0.0
    message_overhead_seconds: float = 0.0
    overhead_seconds: Seconds = 0.0
    interference: float = 0.0


def gradient_messages(
    layers: Sequence[LayerTime],
    synchronisation: Synchronisation,
    seconds: CollectiveSeconds,
    overhead_seconds: float = 0.0,
) -> list[Message]:
    """Messages of one backward through ``layers``, in the order of readiness.

    ``seconds`` is the cost of a message, ``overhead_seconds`` its cost on the device.
    """
    ready = [0.0] * len(layers)
    if synchronisation.groups_by_times:
        clock = 0.0
        for index in reversed(range(len(layers))):
            clock += layers[index].whole_backward_seconds
            ready[index] = clock
    sizes = [layer.gradient_bytes for layer in layers]
    return messages(synchronisation, sizes, ready, seconds, overhead_seconds)
