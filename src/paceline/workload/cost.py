"""Training costs of layers as functions of the batch.

All costs are affine in the batch: a part per step (weights, their gradients) and a part per
sample. A sweep over batch sizes evaluates ``fixed + per_sample * batch`` and rebuilds nothing;
with a NumPy array of batches all costs are arrays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = int | float | NDArray[np.float64]
"""A count: an exact int, or a float array when the batch or the sequence is an array."""

Shape: TypeAlias = tuple[Number, ...]
"""Dimensions of one sample, without the batch."""


@dataclass(frozen=True, slots=True)
class Affine:
    """``fixed + per_sample * batch``."""

    fixed: Number = 0
    per_sample: Number = 0

    def at(self, batch: Number) -> Number:
        grown = self.per_sample * batch
        if isinstance(self.fixed, int) and self.fixed == 0:
            return grown
        return self.fixed + grown

    def __add__(self, other: "Affine") -> "Affine":
        return Affine(self.fixed + other.fixed, self.per_sample + other.per_sample)


NOTHING = Affine()


def total(parts: Iterable[Affine]) -> Affine:
    fixed: Number = 0
    per_sample: Number = 0
    for part in parts:
        fixed = fixed + part.fixed
        per_sample = per_sample + part.per_sample
    return Affine(fixed, per_sample)


@dataclass(frozen=True, slots=True)
class Gemm:
    """``count`` GEMMs (m x k) (k x n) of one sample.

    ``grows`` is the dimension that is multiplied by the batch: the pixels or tokens of a layer
    with weights, the number of GEMMs in attention, or none. ``window`` is the side of a square
    convolution window of stride 1, for which libraries may use fewer multiplications (Winograd,
    FFT); 0 for every other GEMM. ``executed`` is executed over counted FLOP: below 1 if kernels
    skip masked tiles, above 1 if they recompute.
    """

    m: Number
    n: Number
    k: Number
    count: Number = 1
    grows: Literal["m", "n", "k", "count", "nothing"] = "n"
    window: int = 0
    executed: Number = 1.0

    @property
    def flops(self) -> Affine:
        """FLOP as a function of the batch, two per multiply-add."""
        count = 2 * self.m * self.n * self.k * self.count
        return Affine(count, 0) if self.grows == "nothing" else Affine(0, count)

    def at(self, batch: Number) -> "Gemm":
        sizes: dict[str, Any] = {"m": self.m, "n": self.n, "k": self.k, "count": self.count}
        if self.grows != "nothing":
            sizes[self.grows] = sizes[self.grows] * batch
        return Gemm(**sizes, grows=self.grows, window=self.window, executed=self.executed)


GROWING_QUANTITIES = (
    "forward_flops",
    "weight_gradient_flops",
    "input_gradient_flops",
    "forward_bytes",
    "backward_bytes",
    "activation_bytes",
    "gradient_bytes",
)
"""Names of a layer's costs that grow with the batch."""


@dataclass(frozen=True, slots=True)
class LayerProfile:
    """Costs of one layer as functions of the batch, at a given sequence and precision.

    ``tensors`` and ``frozen_tensors`` are names and sizes (elements) of the trained and frozen
    tensors that this layer owns. ``gradient_bytes`` is the gradient that workers exchange per
    step: that of the trained tensors, or of the rows looked up in a sparse table.
    ``activation_bytes`` counts a tensor that several layers keep once, at the first of them;
    ``kept_tensors`` are all tensors between layers that this layer keeps, by the node that made
    them, with bytes per sample.
    """

    name: str
    kind: str
    tensors: tuple[tuple[str, int], ...]
    frozen_tensors: tuple[tuple[str, int], ...]
    gradient_bytes: Affine
    output_shape: Shape
    forward_flops: Affine
    weight_gradient_flops: Affine
    input_gradient_flops: Affine
    forward_bytes: Affine
    backward_bytes: Affine
    activation_bytes: Affine
    forward_gemms: tuple[Gemm, ...]
    weight_gradient_gemms: tuple[Gemm, ...]
    input_gradient_gemms: tuple[Gemm, ...]
    kept_tensors: tuple[tuple[str, Number], ...] = field(default=(), compare=False)

    @property
    def trainable_parameters(self) -> int:
        """Trained parameters of this layer; 0 if it shares another layer's."""
        return sum(size for _, size in self.tensors)

    @property
    def parameters(self) -> int:
        """Trained and frozen parameters of this layer; 0 if it shares another layer's."""
        return self.trainable_parameters + sum(size for _, size in self.frozen_tensors)

    def quantity(self, name: str) -> Affine:
        growing: Affine = getattr(self, name)
        return growing


@dataclass(frozen=True)
class GraphProfile:
    """Costs of every layer of a graph as functions of the batch."""

    layers: tuple[LayerProfile, ...]

    @cached_property
    def parameters(self) -> int:
        """Trained and frozen parameters, shared ones counted once."""
        return sum(layer.parameters for layer in self.layers)

    @cached_property
    def trainable_parameters(self) -> int:
        """Trained parameters, shared ones counted once."""
        return sum(layer.trainable_parameters for layer in self.layers)

    @property
    def has_sparse_gradients(self) -> bool:
        """Whether a gradient grows with the batch: rows looked up in a sparse table."""
        return bool(np.any(self.totals["gradient_bytes"].per_sample))

    @cached_property
    def totals(self) -> dict[str, Affine]:
        """Sum over the layers of each quantity that grows with the batch, by its name."""
        return {
            name: total(getattr(layer, name) for layer in self.layers)
            for name in GROWING_QUANTITIES
        }

    def quantity(self, name: str) -> Affine:
        return self.totals[name]


AnyProfile = TypeVar("AnyProfile", LayerProfile, GraphProfile)


@dataclass(frozen=True)
class CostAtBatch(Generic[AnyProfile]):
    """Costs of one training step of ``batch`` samples, of a layer or of a whole graph.

    FLOP are those of GEMMs, two per multiply-add; bias and pointwise operations count as bytes
    only.
    """

    profile: AnyProfile
    batch: Number

    @property
    def parameters(self) -> int:
        """Trained and frozen parameters, shared ones counted once."""
        return self.profile.parameters

    @property
    def trainable_parameters(self) -> int:
        """Trained parameters, shared ones counted once."""
        return self.profile.trainable_parameters

    @cached_property
    def gradient_bytes(self) -> Number:
        return self._at_batch("gradient_bytes")

    @cached_property
    def forward_flops(self) -> Number:
        return self._at_batch("forward_flops")

    @cached_property
    def weight_gradient_flops(self) -> Number:
        return self._at_batch("weight_gradient_flops")

    @cached_property
    def input_gradient_flops(self) -> Number:
        """FLOP of the gradient of the inputs; 0 for a layer that reads data."""
        return self._at_batch("input_gradient_flops")

    @property
    def backward_flops(self) -> Number:
        return self.weight_gradient_flops + self.input_gradient_flops

    @property
    def training_flops(self) -> Number:
        return self.forward_flops + self.backward_flops

    @cached_property
    def forward_bytes(self) -> Number:
        """Bytes read and written in the forward pass without cache reuse."""
        return self._at_batch("forward_bytes")

    @cached_property
    def backward_bytes(self) -> Number:
        """Bytes read and written in the backward pass without cache reuse."""
        return self._at_batch("backward_bytes")

    @cached_property
    def activation_bytes(self) -> Number:
        """Bytes kept from the forward to the backward pass, each tensor once."""
        return self._at_batch("activation_bytes")

    def _at_batch(self, name: str) -> Number:
        return self.profile.quantity(name).at(self.batch)


class LayerCost(CostAtBatch[LayerProfile]):
    """Costs of one layer; a tensor kept by several layers is charged to the first of them."""

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def kind(self) -> str:
        return self.profile.kind

    @property
    def tensors(self) -> tuple[tuple[str, int], ...]:
        """Name and number of elements of each trained tensor that this layer owns."""
        return self.profile.tensors

    @property
    def output_shape(self) -> Shape:
        return self.profile.output_shape

    @property
    def forward_gemms(self) -> tuple[Gemm, ...]:
        return self._gemms(self.profile.forward_gemms)

    @property
    def weight_gradient_gemms(self) -> tuple[Gemm, ...]:
        return self._gemms(self.profile.weight_gradient_gemms)

    @property
    def input_gradient_gemms(self) -> tuple[Gemm, ...]:
        return self._gemms(self.profile.input_gradient_gemms)

    def _gemms(self, of_one_sample: Sequence[Gemm]) -> tuple[Gemm, ...]:
        return tuple(gemm.at(self.batch) for gemm in of_one_sample)


class GraphCost(CostAtBatch[GraphProfile]):
    """Costs of a whole graph, and of each of its layers."""

    @cached_property
    def layers(self) -> tuple[LayerCost, ...]:
        return tuple(LayerCost(layer, self.batch) for layer in self.profile.layers)
