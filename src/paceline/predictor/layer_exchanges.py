"""What devices of one replica exchange for a layer, and how much of it computing hides."""

from collections.abc import Callable
from dataclasses import dataclass

from paceline.constants import number
from paceline.hardware import Device
from paceline.plan.choices import ContextForm
from paceline.plan.sharding import ContextTensors
from paceline.predictor.collectives import CollectiveCost

_WIDE_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class ContextCost:
    """What sharing out the tokens of a sample adds to attention, in seconds of one micro-batch.

    Attention computes in ``steps`` parts, ``slowdown`` times as long as in one piece and balanced;
    ``merging`` (forward, backward) puts the parts together. Of the messages, ``hidden`` many of
    ``each`` seconds run under a part of the computing each; ``exposed`` ones under nothing.
    """

    steps: int = 1
    slowdown: float = 1.0
    merging: tuple[float, float] = (0.0, 0.0)
    hidden: int = 0
    each: tuple[float, float] = (0.0, 0.0)
    exposed: tuple[float, float] = (0.0, 0.0)

    def computing(self, seconds: float, way: int) -> float:
        """Attention forward (0) or backward (1) that would take ``seconds`` in one piece."""
        return self.slowdown * seconds + self.merging[way]

    def waiting(self, computing: float, bandwidth: float, way: int) -> float:
        """Messages that ``computing`` does not hide; they are so many times as fast."""
        under = max(0.0, self.each[way] / bandwidth - computing / self.steps)
        return self.exposed[way] / bandwidth + self.hidden * under


@dataclass(frozen=True, slots=True)
class LayerExchange:
    """Seconds of one layer's messages within its replica, forward and backward.

    ``hidden_share`` of those among tensor-parallel devices may run under the layer's products.
    """

    tensor: tuple[float, float]
    experts: tuple[float, float] = (0.0, 0.0)
    context: ContextCost | None = None
    hidden_share: float = 0.0

    def waiting(self, computing: float, bandwidth: float, way: int) -> float:
        """What the next layer waits for, forward (0) or backward (1)."""
        tensor, experts = self.tensor[way], self.experts[way]
        waiting = (tensor + experts) / bandwidth
        if self.hidden_share > 0:
            waiting -= min(self.hidden_share * tensor / bandwidth, computing)
        if self.context is not None:
            waiting += self.context.waiting(computing, bandwidth, way)
        return waiting


@dataclass(frozen=True)
class ContextLinks:
    """Messages among the ``degree`` devices that share a sample's tokens.

    ``hops`` are those to the next device, inside a node and between nodes: the ring is as slow
    as the slowest. ``cost_of`` gives collective operations of all of them by name.
    """

    degree: int
    hops: tuple[CollectiveCost, ...]
    cost_of: Callable[[str], CollectiveCost]

    def hop(self, size: float) -> float:
        """To the next device."""
        return max(float(cost.seconds(size)) for cost in self.hops)

    def seconds(self, operation: str, size: float) -> float:
        """A collective operation of all of them."""
        return float(self.cost_of(operation).seconds(size))


def context_cost(
    tensors: ContextTensors,
    form: ContextForm,
    links: ContextLinks,
    samples: float,
    element_bytes: float,
    device: Device,
) -> ContextCost:
    """What one attention layer adds; ``samples`` is a device's share of the micro-batch."""
    passed = float(tensors.keys_values.at(samples))
    if form is ContextForm.ULYSSES:
        copies = max(1.0, float(tensors.tp) * links.degree / tensors.kv_heads)
        there = float(tensors.queries.at(samples)) + copies * passed
        back = float(tensors.result.at(samples))
        seconds = links.seconds("all_to_all", there) + links.seconds("all_to_all", back)
        return ContextCost(exposed=(seconds, seconds))
    steps, in_parts = links.degree, number("parallelism.context.in_parts")
    merging = _merging_seconds(tensors, samples, element_bytes, device, steps)
    if form is ContextForm.GATHER:
        whole = steps * passed
        gathered = links.seconds("all_gather", whole)
        scattered = links.seconds("reduce_scatter", whole)
        return ContextCost(
            steps, in_parts, merging, hidden=1, each=(gathered, gathered), exposed=(0.0, scattered)
        )
    # Backward passes gradients of keys and values with them, and these home at the end.
    in_order = form is ContextForm.RING_IN_ORDER and tensors.causal
    return ContextCost(
        steps,
        in_parts * ((2.0 * steps - 1.0) / steps if in_order else 1.0),
        merging,
        hidden=steps - 1,
        each=(links.hop(passed), links.hop(2.0 * passed)),
        exposed=(0.0, links.hop(passed)),
    )


def _merging_seconds(
    tensors: ContextTensors, samples: float, element_bytes: float, device: Device, steps: int
) -> tuple[float, float]:
    """Results of the parts, and gradients of queries, are summed in 32 bits in memory."""
    passes = number("parallelism.context.merge_passes") * _WIDE_BYTES / element_bytes
    rate = device.known_memory_bandwidth
    forward, backward = (
        (steps - 1) * passes * float(size.at(samples)) / rate
        for size in (tensors.result, tensors.queries)
    )
    return forward, backward
