"""Communication of a layer within a replica, and the part that computing hides."""

from collections.abc import Callable
from dataclasses import dataclass

from paceline.constants import number
from paceline.hardware import Device
from paceline.predictor.comm.collective_cost import CollectiveCost
from paceline.predictor.partition.sharding import ContextTensors
from paceline.predictor.plan.plan_choices import ContextForm

_WIDE_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class ContextCost:
    """Cost of context parallelism in one attention layer, in seconds of one micro-batch.

    Attention computes in ``steps`` parts and takes ``slowdown`` times as long as in one piece;
    ``merging`` (forward, backward) combines the parts. ``hidden`` messages of ``each`` seconds
    overlap one part each; ``exposed`` seconds overlap nothing.
    """

    steps: int = 1
    slowdown: float = 1.0
    merging: tuple[float, float] = (0.0, 0.0)
    hidden: int = 0
    each: tuple[float, float] = (0.0, 0.0)
    exposed: tuple[float, float] = (0.0, 0.0)

    def computing(self, seconds: float, way: int) -> float:
        """Attention forward (0) or backward (1) that takes ``seconds`` in one piece."""
        return self.slowdown * seconds + self.merging[way]

    def waiting(self, computing: float, bandwidth: float, way: int) -> float:
        """Exposed messages, with ``bandwidth`` as a factor on their speed."""
        under = max(0.0, self.each[way] / bandwidth - computing / self.steps)
        return self.exposed[way] / bandwidth + self.hidden * under


@dataclass(frozen=True, slots=True)
class LayerExchange:
    """Seconds of one layer's messages within its replica, forward and backward.

    ``hidden_share`` of the tensor-parallel messages may overlap the GEMMs of the layer.
    """

    tensor: tuple[float, float]
    experts: tuple[float, float] = (0.0, 0.0)
    context: ContextCost | None = None
    hidden_share: float = 0.0

    def waiting(self, computing: float, bandwidth: float, way: int) -> float:
        """Exposed communication, forward (0) or backward (1)."""
        tensor, experts = self.tensor[way], self.experts[way]
        waiting = (tensor + experts) / bandwidth
        if self.hidden_share > 0:
            waiting -= min(self.hidden_share * tensor / bandwidth, computing)
        if self.context is not None:
            waiting += self.context.waiting(computing, bandwidth, way)
        return waiting


@dataclass(frozen=True)
class ContextLinks:
    """Messages among the ``degree`` context-parallel devices.

    ``hops`` are messages to the next device, inside a node and between nodes; the slowest one
    limits the ring. ``cost_of`` gives the cost of collectives by name.
    """

    degree: int
    hops: tuple[CollectiveCost, ...]
    cost_of: Callable[[str], CollectiveCost]

    def hop(self, size: float) -> float:
        """Seconds of a message to the next device."""
        return max(float(cost.seconds(size)) for cost in self.hops)

    def seconds(self, operation: str, size: float) -> float:
        """Seconds of a collective among all of them."""
        return float(self.cost_of(operation).seconds(size))


def context_cost(
    tensors: ContextTensors,
    form: ContextForm,
    links: ContextLinks,
    samples: float,
    element_bytes: float,
    device: Device,
) -> ContextCost:
    """Cost of one attention layer; ``samples`` is a device's share of the micro-batch."""
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
    """Seconds to accumulate results, and gradients of queries, in fp32 in memory."""
    passes = number("parallelism.context.merge_passes") * _WIDE_BYTES / element_bytes
    rate = device.known_memory_bandwidth
    forward, backward = (
        (steps - 1) * passes * float(size.at(samples)) / rate
        for size in (tensors.result, tensors.queries)
    )
    return forward, backward
