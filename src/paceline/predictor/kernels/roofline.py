"""Layer times by a roofline model whose ceilings depend on kind and size of the operation."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import Device
from paceline.predictor.kernels.efficiency import Efficiency, load_efficiency
from paceline.predictor.kernels.gemm_arrays import (
    BACKWARD,
    FORWARD,
    Array,
    GemmArrays,
    Places,
    rows,
)
from paceline.predictor.kernels.winograd import WINDOWS
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload.cost import Affine, GraphCost, GraphProfile, LayerProfile, Number
from paceline.workload.precision import Precision, precision

CONVOLUTIONS = ("implicit", "im2col")
"""How convolutions become GEMMs: implicitly, or unfolded in memory."""

POINTWISE = frozenset(
    {
        *("activation", "add", "add_per_channel", "fused_sum", "multiply", "prelu"),
        *("dropout", "rotary", "frozen_batch_norm"),
        *("batch_norm", "group_norm", "layer_norm", "rms_norm", "local_response_norm"),
    }
)
"""Kinds of layer that a compiler can fuse with neighbours to save memory traffic."""


@dataclass(frozen=True)
class LayerWork:
    """Effective work of every layer in each pass: efficiencies are already applied.

    Arrays have the axes pass (`FORWARD`, `BACKWARD`), layer, then those of the batch. ``flops``
    is the work that takes as long at the attainable rate, ``bytes`` the traffic that takes as
    long at full memory bandwidth, ``operations`` the number of kernels. ``beside_bytes`` is traffic
    of kernels beside the GEMMs (operand conversion, permutation of tokens); None without.
    ``spared_flops`` and ``spared_bytes`` replace ``flops`` if convolutions use Winograd kernels
    (GEMMs, then transforms); None without eligible convolutions. ``host_seconds`` are times in
    which the device waits for the host; None without.
    """

    names: tuple[str, ...]
    flops: Array
    bytes: Array
    operations: Array
    gradient_bytes: Array
    beside_bytes: Array | None = None
    spared_flops: Array | None = None
    spared_bytes: Array | None = None
    host_seconds: Array | None = None

    @property
    def parts(self) -> dict[str, Array]:
        """The arrays by pass and layer, by name; absent ones omitted."""
        every = {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}
        named = {name: part for name, part in every.items() if part is not None}
        return {name: named[name] for name in named if name not in ("names", "gradient_bytes")}

    def seconds(
        self,
        flops_per_second: Number,
        bytes_per_second: Number,
        launch_seconds: Number,
        dispatch_seconds: float = 0.0,
    ) -> Array:
        """Roofline time by pass and layer; rates may be arrays that broadcast against the batch.

        A layer takes at least ``dispatch_seconds`` per operation (host-bound).
        """
        roof = np.asarray(self.flops / flops_per_second)
        spared = self.spared_seconds(flops_per_second, bytes_per_second)
        if spared is not None:
            roof = np.minimum(roof, spared)
        roof = np.maximum(roof, self.bytes / bytes_per_second)
        if self.beside_bytes is not None:
            roof += self.beside_bytes / bytes_per_second
        roof += self.operations * launch_seconds
        if self.host_seconds is not None:
            roof += self.host_seconds
        return np.maximum(roof, self.operations * dispatch_seconds, out=roof)

    def spared_seconds(self, flops_per_second: Number, bytes_per_second: Number) -> Array | None:
        """Seconds by pass and layer with Winograd convolutions; None without eligible ones."""
        if self.spared_flops is None or self.spared_bytes is None:
            return None
        spared = self.spared_flops / flops_per_second + self.spared_bytes / bytes_per_second
        return np.asarray(spared)


def layer_work(
    profile: GraphProfile,
    batch: Number,
    device: Device,
    training_precision: str | Precision,
    efficiency: Efficiency | None = None,
    convolution: str = "implicit",
    pointwise_traffic: float = 1.0,
) -> LayerWork:
    """Work of every layer for ``batch`` samples (a number or an array) on a kind of device.

    ``convolution`` is ``implicit``, or ``im2col`` where the library writes the unfolded input
    to memory: K x P further elements for each of the three GEMMs, without Winograd kernels.
    ``pointwise_traffic`` is the fraction of the memory traffic of `POINTWISE` layers that is left
    after fusion.
    """
    if convolution not in CONVOLUTIONS:
        raise InputError(
            f"unknown convolution '{convolution}'", f"use one of {', '.join(CONVOLUTIONS)}"
        )
    constants = efficiency or load_efficiency()
    numbers = precision(training_precision)
    batches = np.asarray(batch, dtype=np.float64)
    products = GemmArrays(profile, batches)
    moved = np.stack(
        [
            _affine_rows([layer.forward_bytes for layer in profile.layers], batches),
            _affine_rows([layer.backward_bytes for layer in profile.layers], batches),
        ]
    )
    index = (products.stage, products.layer)
    operations = np.zeros_like(moved)
    np.add.at(operations, index, 1.0)
    operations += (operations == 0) & (moved > 0)
    if convolution == "im2col":
        np.add.at(moved, index, products.unfolded_elements() * numbers.activation_bytes)
    fraction = products.fraction_of_attainable(device, numbers, constants)
    unlisted, nothing = _unlisted_flops(profile, moved, batches, constants), np.zeros_like(moved)
    beside = None
    has_experts = any(layer.kind == "moe" for layer in profile.layers)
    if numbers.other_compute or has_experts:
        beside = _added(nothing, index, products.beside_bytes(numbers))
        beside /= constants.memory_ceiling("cast")
    waits = has_experts and not device.is_processor
    direct = products.flops / fraction
    spared = None
    if convolution == "implicit":
        spared = products.transformed(direct, device, numbers, constants)
    left = [pointwise_traffic if layer.kind in POINTWISE else 1.0 for layer in profile.layers]
    moved *= rows(left, batches)
    ceilings = np.array(
        [
            [constants.memory_ceiling(layer.kind, backward) for layer in profile.layers]
            for backward in (False, True)
        ]
    )
    reached = ceilings.reshape(*ceilings.shape, *[1] * batches.ndim) * constants.memory_fill(
        np.maximum(moved, 1.0), device
    )
    return LayerWork(
        names=tuple(layer.name for layer in profile.layers),
        flops=_added(unlisted, index, direct),
        bytes=moved / reached,
        operations=operations,
        gradient_bytes=_affine_rows([layer.gradient_bytes for layer in profile.layers], batches),
        beside_bytes=beside,
        host_seconds=_host_seconds(profile, moved) if waits else None,
        spared_flops=None if spared is None else _added(unlisted, index, spared[0]),
        spared_bytes=None if spared is None else _added(nothing, index, spared[1]),
    )


def executed_share(
    cost: GraphCost,
    device: Device,
    training_precision: str | Precision,
    efficiency: Efficiency | None = None,
    convolution: str = "implicit",
    counts: Array | float = 1.0,
) -> float:
    """Executed FLOP over FLOP of a model that has ``counts`` of each layer of ``cost``, at most 1.

    Below 1 with Winograd convolutions (`paceline.predictor.kernels.winograd`).
    """
    constants, numbers = efficiency or load_efficiency(), precision(training_precision)
    profile, batch = cost.profile, cost.batch
    convolved = any(gemm.window in WINDOWS for x in profile.layers for gemm in x.forward_gemms)
    if not convolved or constants.unit(device, numbers.compute) is not constants.vector:
        return 1.0
    work = layer_work(profile, batch, device, numbers, constants, convolution)
    rate = constants.attainable_flops(device, numbers.compute)
    spared = work.spared_seconds(rate, device.known_memory_bandwidth)
    if spared is None:
        return 1.0
    products = GemmArrays(profile, np.asarray(batch, dtype=np.float64))
    saved = _added(
        np.zeros_like(work.flops), (products.stage, products.layer), products.saved_flops
    )
    is_faster = spared < work.flops / rate
    flops = [
        float(x.forward_flops.at(batch) + x.weight_gradient_flops.at(batch))
        + float(x.input_gradient_flops.at(batch))
        for x in profile.layers
    ]
    return 1.0 - float((saved * is_faster * counts).sum() / np.sum(counts * np.array(flops)))


def check_measured(names: Sequence[str], measured: Sequence[LayerTime]) -> None:
    """Reject measured times of layers that the graph does not have."""
    missing = {layer.name for layer in measured} - set(names)
    if missing:
        raise InputError(
            f"the graph has no layer '{sorted(missing)[0]}' of the trace",
            "use the layer names that 'paceline inspect' prints",
        )


def update_seconds(
    parameters: Number,
    bytes_per_parameter: float,
    device: Device,
    efficiency: Efficiency | None = None,
    *,
    operations: int = 1,
    bytes_per_second: Number | None = None,
) -> Number:
    """Seconds of the optimizer's update of ``parameters`` numbers.

    ``bytes_per_parameter`` is memory traffic (weights, gradient, state); ``bytes_per_second``
    overrides the memory bandwidth of the device.
    """
    constants = efficiency or load_efficiency()
    moved = np.maximum(parameters * bytes_per_parameter, 1.0)
    reached = constants.memory_ceiling("update") * constants.memory_fill(moved, device)
    bandwidth = device.known_memory_bandwidth if bytes_per_second is None else bytes_per_second
    return moved / (reached * bandwidth) + operations * constants.launch(device)


def _added(to: Array, index: tuple[Places, Places], values: Array) -> Array:
    """A copy of ``to`` with ``values`` added at ``index``."""
    result = to.copy()
    np.add.at(result, index, values)
    return result


def _affine_rows(parts: Sequence[Affine], batches: Array) -> Array:
    fixed = rows([part.fixed for part in parts], batches)
    per_sample = rows([part.per_sample for part in parts], batches)
    return np.asarray(fixed + per_sample * batches)


def _host_seconds(profile: GraphProfile, like: Array) -> Array:
    """Waits for the host, in the shape of ``like``: pass, layer, then the axes of the batch.

    Dropless routing: the host reads how many tokens each expert gets, so the kernels of experts are
    not issued ahead. It issues them for each expert of the device.
    """
    experts = np.array([_experts(layer) for layer in profile.layers])
    forward = number("overheads.host.experts.forward")
    layer = number("overheads.host.experts.layer")
    each = number("overheads.host.experts.expert")
    waits = np.outer([forward, 1.0 - forward], np.where(experts > 0, layer + each * experts, 0.0))
    return np.asarray(like * 0.0 + waits.reshape(*waits.shape, *[1] * (like.ndim - 2)))


def _experts(layer: LayerProfile) -> float:
    """Experts of a layer on the device: GEMMs out of experts, the last of the layer."""
    return float(layer.forward_gemms[-1].count) if layer.kind == "moe" else 0.0


def _unlisted_flops(
    profile: GraphProfile, moved: Array, batches: Array, constants: Efficiency
) -> Array:
    """Effective FLOP of layers that have counts but no GEMMs (captured models)."""
    flops = np.zeros_like(moved)
    for index, layer in enumerate(profile.layers):
        if not layer.forward_gemms and _counts(layer.forward_flops):
            backward = layer.weight_gradient_flops + layer.input_gradient_flops
            flops[FORWARD, index] = layer.forward_flops.at(batches)
            flops[BACKWARD, index] = backward.at(batches)
    return flops / constants.product_factor("recorded")


def _counts(flops: Affine) -> bool:
    return any(
        bool(part.any()) if isinstance(part, np.ndarray) else part != 0
        for part in (flops.fixed, flops.per_sample)
    )
