"""All GEMMs of a graph as arrays, for vectorised evaluation."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.hardware import Device
from paceline.predictor.kernels.efficiency import Efficiency, UnitEfficiency
from paceline.predictor.kernels.winograd import WINDOWS, TransformedProducts
from paceline.workload.cost import Gemm, GraphProfile, LayerProfile, Number
from paceline.workload.precision import Precision

Array = NDArray[np.float64]
Places = NDArray[np.intp]
FORWARD, BACKWARD = 0, 1

_CONVOLUTIONS = ("conv", "stem")
_BY_ELEMENT = ("causal_conv", "selective_scan")
"""Kinds of layer whose GEMMs are so thin that kernels compute them element by element."""
_PLAIN_BYTES = 2
_CONVERTED = frozenset({"linear", "moe"})
"""Kinds of layer with fp8 or fp4 operands, except the output layer."""


class GemmArrays:
    """Every GEMM of a graph for ``batch`` samples (a number or an array).

    ``stage`` and ``layer`` are the pass and layer of each GEMM; ``m``, ``n``, ``k``, ``count``
    have one row per GEMM and the axes of the batch.
    """

    def __init__(self, profile: GraphProfile, batch: Array) -> None:
        entries = list(_entries(profile))
        self.stage = np.array([stage for stage, _, _, _ in entries], dtype=np.intp)
        self.layer = np.array([index for _, index, _, _ in entries], dtype=np.intp)
        self._roles = [role for _, _, role, _ in entries]
        self._kinds = [_product_kind(profile.layers[index]) for index in self.layer]
        gemms = [gemm for _, _, _, gemm in entries]
        self.m = _dimension(gemms, "m", batch)
        self.n = _dimension(gemms, "n", batch)
        self.k = _dimension(gemms, "k", batch)
        self.count = _dimension(gemms, "count", batch)
        self._executed = rows([gemm.executed for gemm in gemms], batch)
        self._windows = [gemm.window for gemm in gemms]
        self._profile, self._gemms = profile, gemms

    @cached_property
    def _converted(self) -> NDArray[np.bool_]:
        """GEMMs with operands in the short format: not adapters nor the output layer."""
        heads = _heads(self._profile)
        narrow = number("kernels.limits.fp8_width")
        wide = [min(float(np.min(own.m)), float(np.min(own.k))) >= narrow for own in self._gemms]
        kinds = [self._profile.layers[i].kind in _CONVERTED and i not in heads for i in self.layer]
        return np.logical_and(kinds, wide)

    @property
    def flops(self) -> Array:
        """FLOP that kernels execute for each GEMM."""
        return self._executed * 2.0 * self.m * self.n * self.k * self.count

    def fraction_of_attainable(
        self, device: Device, numbers: Precision, efficiency: Efficiency
    ) -> Array:
        """Fraction of the attainable rate in ``numbers.compute`` that each GEMM reaches."""
        fraction = self._fraction(device, numbers.compute, numbers.operand_bytes, efficiency)
        if not numbers.other_compute:
            return fraction
        other = self._fraction(device, numbers.other_compute, numbers.activation_bytes, efficiency)
        other *= efficiency.attainable_flops(device, numbers.other_compute)
        other /= efficiency.attainable_flops(device, numbers.compute)
        share = numbers.other_share
        mixed = 1.0 / ((1.0 - share) / fraction + share / other) if share else fraction
        return np.where(self._by_row(self._converted), mixed, other)

    def transformed(
        self, direct: Array, device: Device, numbers: Precision, efficiency: Efficiency
    ) -> tuple[Array, Array] | None:
        """Effective FLOP and bytes of each GEMM if convolutions use Winograd kernels.

        Other GEMMs keep their ``direct`` FLOP. None without eligible convolutions or on matrix
        units.
        """
        unit = efficiency.unit(device, numbers.compute)
        if unit is not efficiency.vector or not any(own in WINDOWS for own in self._windows):
            return None
        smaller = TransformedProducts(
            (self.m, self.n, self.k, self.count), self._roles, self._windows
        )
        sizes = (smaller.m, smaller.n, smaller.k, smaller.count)
        reached = unit.of_product(*sizes, float(device.compute_units or 1))
        reached = reached * self._factors(unit, efficiency)
        moved = smaller.elements * numbers.operand_bytes
        moved /= efficiency.memory_ceiling("conv") * efficiency.memory_fill(moved, device)
        return (
            np.where(smaller.applies, smaller.flops / reached, direct),
            np.where(smaller.applies, moved, 0.0),
        )

    @property
    def saved_flops(self) -> Array:
        """FLOP of each GEMM that Winograd convolutions save."""
        smaller = TransformedProducts(
            (self.m, self.n, self.k, self.count), self._roles, self._windows
        )
        return np.where(smaller.applies, self.flops - smaller.flops, 0.0)

    def beside_bytes(self, numbers: Precision) -> Array:
        """Memory traffic of kernels beside each GEMM: conversion of operands, routing of tokens."""
        routed = self._routing_bytes(numbers)
        return routed + self._converted_bytes(numbers) if numbers.other_compute else routed

    def _converted_bytes(self, numbers: Precision) -> Array:
        """Memory traffic of converting operands of each GEMM to the short format.

        Inputs in forward and output gradients in backward are read once and written twice, plain
        and transposed. Weights are converted once per step. Programs that save operands have norms
        and activations that write the short format (Transformer Engine's LayerNormLinear); others
        read a tensor once more for its largest element (torchao's dynamic scaling).
        """
        forward = self._of_role("forward")
        is_fused = numbers.saved_operand_bytes is not None
        if is_fused:
            forward &= np.array([kind != "linear" for kind in self._kinds], dtype=bool)
        operand = np.where(
            self._by_row(forward),
            self.n * self.k,
            np.where(self._by_row(self._of_role("weight_gradient")), self.m * self.k, 0.0),
        )
        reads = 1.0 if is_fused else 2.0
        width = reads * numbers.activation_bytes + 2.0 * numbers.operand_bytes
        return np.asarray(operand * self.count * width * self._by_row(self._converted))

    def _routing_bytes(self, numbers: Precision) -> Array:
        """Memory traffic of kernels between the GEMMs of experts.

        Tokens are permuted before and after their experts (two reads and two writes of the
        model's width each way); the gated activation reads two tensors of the inner width and
        writes one, backward reads three and writes two.
        """
        size = np.zeros(np.broadcast(self.m, self.n).shape)
        for role, width, inner in (("forward", self.m, self.k), ("input_gradient", self.k, self.m)):
            passes = 3.0 if role == "forward" else 5.0
            last = self._by_row(self._of_role(role) & self._is_last_of_experts())
            size = np.where(last, self.n * self.count * (4.0 * width + passes * inner), size)
        return np.asarray(size * numbers.activation_bytes)

    def _is_last_of_experts(self) -> NDArray[np.bool_]:
        """GEMMs out of experts, which follow those of the router and into experts."""
        experts = np.array([kind == "moe" for kind in self._kinds], dtype=bool)
        ends = [
            (i + 1 == len(self.layer))
            or (self.layer[i + 1] != self.layer[i] or self._roles[i + 1] != self._roles[i])
            for i in range(len(self.layer))
        ]
        return np.asarray(experts & np.array(ends, dtype=bool))

    def _of_role(self, role: str) -> NDArray[np.bool_]:
        return np.array([own == role for own in self._roles], dtype=bool)

    def _by_row(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return values.reshape(self._one_per_row)

    @property
    def _one_per_row(self) -> tuple[int, ...]:
        """Shape of one value per GEMM that broadcasts against the batch."""
        return (-1, *[1] * (self.m.ndim - 1))

    def _factors(self, unit: UnitEfficiency, efficiency: Efficiency) -> Array:
        """Fitted factors on the efficiency by kind of layer and pass."""
        factors = [
            efficiency.product_factor(kind, unit)
            * efficiency.product_factor(f"{kind}_{role}", unit)
            for kind, role in zip(self._kinds, self._roles, strict=True)
        ]
        return np.array(factors).reshape(self._one_per_row)

    def _fraction(
        self, device: Device, arithmetic: str, operand_bytes: float, efficiency: Efficiency
    ) -> Array:
        unit = efficiency.unit(device, arithmetic)
        if operand_bytes < _PLAIN_BYTES:
            # Filling a pipeline and writing 16-bit results take as long as in 16-bit kernels.
            unit = unit.faster(device.peak(arithmetic) / device.peak_flops.get("bf16", np.inf))
        attainable = efficiency.attainable_flops(device, arithmetic)
        plain_share = efficiency.plain_share(device, arithmetic)
        reached = self._alone(
            unit,
            float(device.compute_units or 1),
            (plain_share or unit.plain_share) * device.exponential_rate,
        )
        reached *= self._factors(unit, efficiency)
        read_again = unit.reread * operand_bytes * attainable / device.known_memory_bandwidth
        reached = np.where(
            self._of_kinds("attention"), reached, reached / (1 + read_again * reached)
        )
        # Convolutions with few filters per group run as direct kernels on plain units.
        few = number("kernels.limits.depthwise_filters")
        small = (np.minimum(self.m, self.k) <= few) & (self.count > 1)
        by_element = (self._of_kinds(*_CONVOLUTIONS) & small) | self._of_kinds(*_BY_ELEMENT)
        depthwise = efficiency.product_factor("depthwise") * (plain_share or 1.0)
        return np.where(by_element, depthwise, reached)

    def _alone(self, unit: UnitEfficiency, units: float, plain_share: float) -> Array:
        """Efficiency by size."""
        sizes = (self.m, self.n, self.k, self.count)
        return np.where(
            self._of_kinds("attention"),
            unit.of_attention(*sizes, self._executed, units, plain_share),
            unit.of_product(*sizes, units),
        )

    def _of_kinds(self, *kinds: str) -> NDArray[np.bool_]:
        return self._by_row(np.array([kind in kinds for kind in self._kinds], dtype=bool))

    def unfolded_elements(self) -> Array:
        """K x P elements that im2col or col2im moves for each GEMM of a convolution."""
        columns = self._by_row(self._of_role("input_gradient"))
        unfolded = np.where(columns, self.m * self.n, self.n * self.k)
        return np.asarray(unfolded * self.count * self._of_kinds(*_CONVOLUTIONS))


def _entries(profile: GraphProfile) -> Iterator[tuple[int, int, str, Gemm]]:
    for index, layer in enumerate(profile.layers):
        for stage, role, gemms in _passes(layer):
            for gemm in gemms:
                yield stage, index, role, gemm


def _passes(layer: LayerProfile) -> tuple[tuple[int, str, Sequence[Gemm]], ...]:
    return (
        (FORWARD, "forward", layer.forward_gemms),
        (BACKWARD, "weight_gradient", layer.weight_gradient_gemms),
        (BACKWARD, "input_gradient", layer.input_gradient_gemms),
    )


def _heads(profile: GraphProfile) -> set[int]:
    """The output layer, and the one whose weights it shares (multi-token prediction)."""
    linear = [i for i, layer in enumerate(profile.layers) if layer.kind == "linear"]
    if not linear:
        return set()
    last = profile.layers[linear[-1]]
    if last.parameters:
        return {linear[-1]}
    width = last.output_shape[-1]
    return {i for i in linear if profile.layers[i].output_shape[-1] == width}


def _product_kind(layer: LayerProfile) -> str:
    """Kind of a layer's GEMMs; the first convolution (stem) has few input channels."""
    return "stem" if layer.kind == "conv" and not layer.input_gradient_gemms else layer.kind


def _dimension(gemms: Sequence[Gemm], name: str, batch: Array) -> Array:
    sizes = rows([getattr(gemm, name) for gemm in gemms], batch)
    grows = rows([1.0 if gemm.grows == name else 0.0 for gemm in gemms], batch)
    return np.asarray(sizes * (1.0 + grows * (batch - 1.0)))


def rows(values: Sequence[Number], batch: Array) -> Array:
    """``values`` as rows that broadcast against ``batch``; a value may be an array too."""
    try:
        plain = np.array(values, dtype=np.float64)
    except ValueError:
        return np.stack(np.broadcast_arrays(*values, batch)[:-1]).astype(np.float64)
    return plain.reshape(-1, *[1] * batch.ndim) if plain.ndim == 1 else plain
