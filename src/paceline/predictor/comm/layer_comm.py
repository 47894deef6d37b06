"""Communication of a layer within a replica, and the part that computing hides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.hardware import Device
from paceline.predictor.comm.collective_cost import CollectiveCost
from paceline.predictor.partition.sharding import ContextTensors
from paceline.predictor.plan.plan_choices import ContextForm

Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class ReplicaMessages:
    """Messages of each kind of layer within its replica, in seconds of one micro-batch.

    Arrays have the axes pass (0 forward, 1 backward) and kind. ``hidden_share`` of the
    tensor-parallel messages may overlap the GEMMs of the layer. ``context`` is the cost of context
    parallelism by kind, None for layers without attention. ``hidden_experts`` of the all-to-all of
    experts may overlap the computing of another micro-batch; ``counts`` is the number of layers of
    each kind.
    """

    tensor: Array
    experts: Array
    hidden_share: float = 0.0
    context: Mapping[int, ContextCost] = field(default_factory=dict)
    hidden_experts: float = 0.0
    counts: Array = field(default_factory=lambda: np.zeros(0))

    def computing(self, seconds: Array, way: int) -> Array:
        """Computing time by kind, with attention in parts if there is context parallelism."""
        if not self.context:
            return seconds
        result = seconds.copy()
        for kind, cost in self.context.items():
            result[kind] = cost.computing(float(seconds[kind]), way)
        return result

    def exposed(self, computing: Array, bandwidth: float, way: int) -> Array:
        """Exposed communication by kind, with ``bandwidth`` as a factor on its speed."""
        tensor = self.tensor[way]
        exposed = (tensor + self._exposed_experts(computing, bandwidth, way)) / bandwidth
        if self.hidden_share > 0:
            exposed = exposed - np.minimum(self.hidden_share * tensor / bandwidth, computing)
        for kind, cost in self.context.items():
            exposed[kind] += cost.waiting(float(computing[kind]), bandwidth, way)
        return np.asarray(exposed)

    def _exposed_experts(self, computing: Array, bandwidth: float, way: int) -> Array:
        """All-to-all messages by kind, without what the computing of other layers hides."""
        experts = self.experts[way]
        if self.hidden_experts == 0:
            return np.asarray(experts)
        total = float(self.counts @ experts) / bandwidth
        hidden = min(self.hidden_experts * total, float(self.counts @ computing))
        return np.asarray(experts * (1.0 - hidden / total if total else 1.0))


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


def attention_in_parts(degree: int) -> float:
    """Time of attention in as many parts as there are context-parallel devices, over one piece."""
    many = degree >= number("parallelism.context.many_parts")
    return number(f"parallelism.context.{'in_many_parts' if many else 'in_parts'}")


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
    steps, in_parts = links.degree, attention_in_parts(links.degree)
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
