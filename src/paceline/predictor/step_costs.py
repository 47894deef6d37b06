"""What a step is made of: times of layers, of gradient messages, and of everything else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.plan.messages import Message, messages
from paceline.plan.synchronisation import Synchronisation

Seconds = Any
"""Seconds: a number, or an array of them where many configurations are worked on at once."""

CollectiveSeconds = Callable[[Any], Any]
"""Seconds of one collective operation on so many bytes (a number, where it can an array)."""


def takes_time(seconds: Seconds) -> bool:
    """Whether a number, or any of an array, is above zero."""
    return bool(np.any(seconds > 0)) if isinstance(seconds, np.ndarray) else bool(seconds > 0)


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one layer on one device for one micro-batch, and the bytes of its gradient.

    ``recompute_seconds`` is forward work done again before backward.
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
        """Forward with its exchanges."""
        return self.forward_seconds + self.forward_exchange_seconds

    @property
    def whole_backward_seconds(self) -> Seconds:
        """Backward with its exchanges and with what is computed again."""
        return self.recompute_seconds + self.backward_seconds + self.backward_exchange_seconds


@dataclass(frozen=True)
class GradientExchange:
    """How replicas agree on gradients: a policy, and what its messages take.

    ``all_reduce`` is the message of most policies; with ``pull`` it is the push to parameter
    servers and ``pull`` the way back, at the same time as later pushes unless
    ``one_way_at_a_time``. Sharded data parallelism and ``split`` use ``reduce_scatter`` and
    ``all_gather``, each half of an all-reduce unless given. With ``copies_sum`` what was
    scattered is then summed among the copies of a shard, beside other messages if
    ``sums_beside``; a shard is one of ``shards``. Everything is divided by ``bandwidth_factor``.
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
    sums_beside: bool = False

    @property
    def share(self) -> float:
        """Steps that exchange, of all steps (below 1 for local SGD)."""
        return 1.0 / self.synchronisation.every_steps

    def message(self, size: Any) -> Any:
        """Seconds of an all-reduce or a push."""
        return self._factor * self.all_reduce(size)

    def answer(self, size: Any) -> Any:
        """Seconds of the pull that follows a push; none where nothing is pulled."""
        return 0.0 if self.pull is None else self._factor * self.pull(size)

    def round_trip(self, size: Any) -> Any:
        """Seconds of an all-reduce, or of a push and the pull that follows it."""
        return self.message(size) + self.answer(size)

    def scatter(self, size: Any) -> Any:
        """Seconds until gradients are scattered and summed among the copies of each shard."""
        inside = self.scatter_inside(size)
        return inside if self.copies_sum is None else inside + self.sum_copies(size / self.shards)

    def sum_copies(self, size: Any) -> Any:
        """Seconds of summing a shard of ``size`` bytes among its copies; none where it has none."""
        return 0.0 if self.copies_sum is None else self._factor * self.copies_sum(size)

    def scatter_inside(self, size: Any) -> Any:
        """Seconds of a reduce-scatter among the devices of one group of shards."""
        if self.reduce_scatter is None:
            return 0.5 * self.message(size)
        return self._factor * self.reduce_scatter(size)

    def gather(self, size: Any) -> Any:
        """Seconds of an all-gather."""
        if self.all_gather is None:
            return 0.5 * self.message(size)
        return self._factor * self.all_gather(size)

    def with_all_reduce(self, measured: CollectiveSeconds) -> "GradientExchange":
        """All-reduces as measured; a reduce-scatter and an all-gather keep their share of one.

        That share is the library's: half for rings, all of it for a scatter that sums the whole.
        """

        def part(modelled: CollectiveSeconds | None) -> CollectiveSeconds | None:
            if modelled is None:
                return None
            return lambda size: measured(size) * modelled(size) / self.all_reduce(size)

        return GradientExchange(
            self.synchronisation,
            measured,
            part(self.reduce_scatter),
            part(self.all_gather),
            copies_sum=part(self.copies_sum),
            shards=self.shards,
            sums_beside=self.sums_beside,
        )

    @property
    def _factor(self) -> float:
        return self.share / self.bandwidth_factor


@dataclass(frozen=True)
class StepCosts:
    """What a step costs beside its layers and messages, in seconds.

    ``input_seconds`` (read and prepare) and ``copy_seconds`` (to the device) run beside the
    step when ``input_overlapped``, since the next batch is prefetched, else before it.
    ``message_overhead_seconds`` is what each message takes from the device that computes
    (launch, negotiation, packing): no overlap hides it. ``interference`` is the fraction by
    which computing slows down while a message is in flight. ``overhead_seconds`` is the
    framework's own time per step.
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
    """Messages of one backward through ``layers``, in the order in which they get ready.

    ``seconds`` is what a message takes, ``overhead_seconds`` what it takes from the device.
    """
    ready = [0.0] * len(layers)
    if synchronisation.groups_by_times:
        clock = 0.0
        for index in reversed(range(len(layers))):
            clock += layers[index].whole_backward_seconds
            ready[index] = clock
    sizes = [layer.gradient_bytes for layer in layers]
    return messages(synchronisation, sizes, ready, seconds, overhead_seconds)
