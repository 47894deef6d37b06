"""Seconds of each layer on a device: a roofline whose roofs depend on kind and size."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import InputError
from paceline.hardware import Device
from paceline.predictor.efficiency import Efficiency, load_efficiency
from paceline.predictor.products import BACKWARD, FORWARD, Array, Places, Products, rows
from paceline.predictor.step_costs import LayerTime
from paceline.workload.cost import Affine, GraphCost, GraphProfile, Number
from paceline.workload.precision import Precision, precision

CONVOLUTIONS = ("implicit", "im2col")
"""How convolutions become matrix products: on the fly, or unfolded in memory."""

POINTWISE = frozenset(
    {
        *("activation", "add", "add_per_channel", "fused_sum", "multiply", "prelu"),
        *("dropout", "rotary", "frozen_batch_norm"),
        *("batch_norm", "group_norm", "layer_norm", "rms_norm", "local_response_norm"),
    }
)
"""Kinds of layer that a compiler can join with their neighbours to save memory traffic."""


@dataclass(frozen=True)
class LayerWork:
    """Work of every layer in each pass, with the losses of its kind and size already in it.

    Arrays have the axes pass (`FORWARD`, `BACKWARD`), layer, then those of the batch. ``flops``
    is what a device at its attainable rate does in the same time, ``bytes`` what it moves at
    full memory bandwidth, ``operations`` how many operations are started. ``converted_bytes`` it
    moves before and after to convert operands; None where nothing is converted. Where some
    convolutions can multiply less, ``spared_flops`` and ``spared_bytes`` are what they would do
    instead of ``flops``, one after the other; None where none can.
    """

    names: tuple[str, ...]
    flops: Array
    bytes: Array
    operations: Array
    gradient_bytes: Array
    converted_bytes: Array | None = None
    spared_flops: Array | None = None
    spared_bytes: Array | None = None

    @property
    def parts(self) -> dict[str, Array]:
        """The arrays with an entry for each pass and layer, by name, those that there are."""
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
        """Roofline time by pass and layer; rates may be arrays that go with the batch.

        A layer is never quicker than issuing its operations, ``dispatch_seconds`` each.
        """
        roof = np.asarray(self.flops / flops_per_second)
        if self.spared_flops is not None and self.spared_bytes is not None:
            spared = self.spared_flops / flops_per_second + self.spared_bytes / bytes_per_second
            roof = np.minimum(roof, spared)
        roof = np.maximum(roof, self.bytes / bytes_per_second)
        if self.converted_bytes is not None:
            roof += self.converted_bytes / bytes_per_second
        roof += self.operations * launch_seconds
        return np.maximum(roof, self.operations * dispatch_seconds, out=roof)


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
    to memory: K x P further elements for each of the three products, all of them multiplied.
    ``pointwise_traffic`` is the fraction of the memory traffic of `POINTWISE` layers that is left
    after fusion.
    """
    if convolution not in CONVOLUTIONS:
        raise InputError(f"no convolution '{convolution}'", f"one of {', '.join(CONVOLUTIONS)}")
    constants = efficiency or load_efficiency()
    numbers = precision(training_precision)
    batches = np.asarray(batch, dtype=np.float64)
    products = Products(profile, batches)
    moved = np.stack(
        [
            _affine_rows([layer.forward_bytes for layer in profile.layers], batches),
            _affine_rows([layer.backward_bytes for layer in profile.layers], batches),
        ]
    )
    place = (products.stage, products.layer)
    operations = np.zeros_like(moved)
    np.add.at(operations, place, 1.0)
    operations += (operations == 0) & (moved > 0)
    if convolution == "im2col":
        np.add.at(moved, place, products.unfolded_elements() * numbers.activation_bytes)
    fraction = products.fraction_of_attainable(device, numbers, constants)
    unlisted, nothing = _unlisted_flops(profile, moved, batches, constants), np.zeros_like(moved)
    converted = None
    if numbers.other_compute:
        converted = _added(nothing, place, products.converted_bytes(numbers))
        converted /= constants.memory_ceiling("cast")
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
        flops=_added(unlisted, place, direct),
        bytes=moved / reached,
        operations=operations,
        gradient_bytes=_affine_rows([layer.gradient_bytes for layer in profile.layers], batches),
        converted_bytes=converted,
        spared_flops=None if spared is None else _added(unlisted, place, spared[0]),
        spared_bytes=None if spared is None else _added(nothing, place, spared[1]),
    )


def layer_times(
    cost: GraphCost,
    device: Device,
    training_precision: str | Precision,
    efficiency: Efficiency | None = None,
    *,
    convolution: str = "implicit",
    pointwise_traffic: float = 1.0,
    dispatch_seconds: float = 0.0,
) -> list[LayerTime]:
    """Forward and backward seconds of every layer for one batch, in the order of the graph.

    ``dispatch_seconds`` is what the framework's host thread takes to issue one operation: a
    layer is never quicker than issuing its operations.
    """
    if np.ndim(cost.batch) != 0:
        raise InputError("one batch at a time", "layer_work takes arrays")
    constants = efficiency or load_efficiency()
    work = layer_work(
        cost.profile,
        cost.batch,
        device,
        training_precision,
        constants,
        convolution,
        pointwise_traffic,
    )
    seconds = work.seconds(
        constants.attainable_flops(device, precision(training_precision).compute),
        device.known_memory_bandwidth,
        constants.launch(device),
        dispatch_seconds,
    )
    return [
        LayerTime(name, float(seconds[FORWARD, i]), float(seconds[BACKWARD, i]), size)
        for i, (name, size) in enumerate(zip(work.names, work.gradient_bytes.tolist(), strict=True))
    ]


def with_measured(predicted: Sequence[LayerTime], measured: Sequence[LayerTime]) -> list[LayerTime]:
    """``predicted`` with the times of the layers that were measured or read from a trace.

    Layers go by name; a name that the graph does not have is an error.
    """
    known = {layer.name: layer for layer in measured}
    missing = known.keys() - {layer.name for layer in predicted}
    if missing:
        raise InputError(
            f"the trace has a layer '{sorted(missing)[0]}' that the graph does not have",
            "name layers as 'paceline inspect' prints them",
        )
    return [
        dataclasses.replace(
            layer,
            forward_seconds=known[layer.name].forward_seconds,
            backward_seconds=known[layer.name].backward_seconds,
        )
        if layer.name in known
        else layer
        for layer in predicted
    ]


def update_seconds(
    parameters: Number,
    bytes_per_parameter: float,
    device: Device,
    efficiency: Efficiency | None = None,
    *,
    operations: int = 1,
    bytes_per_second: Number | None = None,
) -> Number:
    """Seconds of the optimiser's update of ``parameters`` numbers.

    ``bytes_per_parameter`` is what it reads and writes for each (weights, gradient, state);
    ``bytes_per_second`` goes before the device's memory bandwidth.
    """
    constants = efficiency or load_efficiency()
    moved = np.maximum(parameters * bytes_per_parameter, 1.0)
    reached = constants.memory_ceiling("update") * constants.memory_fill(moved, device)
    bandwidth = device.known_memory_bandwidth if bytes_per_second is None else bytes_per_second
    return moved / (reached * bandwidth) + operations * constants.launch(device)


def _added(to: Array, place: tuple[Places, Places], values: Array) -> Array:
    """A copy of ``to`` with values added in their places."""
    result = to.copy()
    np.add.at(result, place, values)
    return result


def _affine_rows(parts: Sequence[Affine], batches: Array) -> Array:
    fixed = rows([part.fixed for part in parts], batches)
    per_sample = rows([part.per_sample for part in parts], batches)
    return np.asarray(fixed + per_sample * batches)


def _unlisted_flops(
    profile: GraphProfile, moved: Array, batches: Array, constants: Efficiency
) -> Array:
    """FLOP of layers that give counts without products (captured ones), losses included."""
    flops = np.zeros_like(moved)
    for index, layer in enumerate(profile.layers):
        if not layer.forward_gemms and _counts(layer.forward_flops):
            backward = layer.weight_gradient_flops + layer.input_gradient_flops
            flops[FORWARD, index] = layer.forward_flops.at(batches)
            flops[BACKWARD, index] = backward.at(batches)
    return flops / constants.product_factor("recorded")


def _counts(flops: Affine) -> bool:
    return bool(np.any(flops.fixed) or np.any(flops.per_sample))
