"""A layer-wise trace: times of the layers of a network, from a file or log."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TracedLayer:
    """Times of one layer, seconds, and the bytes of its gradient.

    ``communication_seconds`` is the time of its gradient exchange by number of workers;
    the key 0 stands for an unknown number. Empty without communication.
    """

    name: str
    forward_seconds: float
    backward_seconds: float
    gradient_bytes: float = 0.0
    communication_seconds: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerTrace:
    """Layers from the input on, with the costs of the step outside of layers, seconds.

    A replay keeps the compute times of the trace and predicts its communication for another
    number of workers or another network.
    """

    layers: tuple[TracedLayer, ...]
    label: str = ""
    input_seconds: float = 0.0
    update_seconds: float = 0.0
    batch_per_worker: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def forward_seconds(self) -> float:
        return math.fsum(layer.forward_seconds for layer in self.layers)

    @property
    def backward_seconds(self) -> float:
        return math.fsum(layer.backward_seconds for layer in self.layers)

    @property
    def gradient_bytes(self) -> float:
        """Bytes that every worker contributes to the exchange."""
        return math.fsum(layer.gradient_bytes for layer in self.layers)

    def communication_seconds(self, workers: int) -> float:
        """Recorded communication time of all layers among ``workers``."""
        return math.fsum(layer.communication_seconds.get(workers, 0.0) for layer in self.layers)
