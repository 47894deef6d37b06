"""How much of a device's peak rates operations of each kind and size reach.

A handful of constants, kept in ``data/constants/kernels.toml`` with their origin. Every curve is
smooth, rises with size and stays below one, so time still falls when a peak rises.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paceline.constants import built_from_constants, numbers_of
from paceline.hardware import Device
from paceline.located_toml import TomlTable
from paceline.naming import unknown_name
from paceline.workload.cost import Number

_POWER_LIMITED_SINCE = 2022
_ROWS_OF_SCORES = 128
_TABLES = ("matrix", "vector", "processor", "products", "memory", "half_bytes", "devices")


@dataclass(frozen=True)
class UnitEfficiency:
    """A matrix product (m x k)(k x n) on one kind of arithmetic unit.

    Alone and for a moment it reaches ``ceiling`` x fill(min(m, n)) x fill(k) x fill(waves) of the
    attainable rate, where fill(x) = x / (x + half): half of the rate is lost when the smaller
    output dimension is ``half_small``, when the inner one is ``half_depth``, and when the output
    makes ``half_waves`` rounds of ``tile`` x ``tile`` tiles on the device's units. Products
    deeper than ``split_depth`` are split into so many more tiles. Besides, tiles read again
    ``reread`` operands for every FLOP. The products of attention lose half when a head is
    ``half_head`` wide, when a token sees ``half_seen`` others, and when blocks of rows of the
    scores make ``half_rounds`` rounds on the device's units. ``sustained`` is what training,
    which goes on for hours, keeps of all that. ``attainable`` is the fraction of peak that the
    best product reaches where no measured figure is known, ``attainable_since_2022`` that of
    newer devices, whose peak their power limits sooner.
    """

    ceiling: float
    sustained: float
    half_small: float
    half_depth: float
    half_waves: float
    tile: float
    split_depth: float
    reread: float
    half_head: float
    half_seen: float
    half_rounds: float
    attainable: float
    attainable_since_2022: float

    def attainable_of(self, device: Device) -> float:
        """Fraction of peak that the best product of an unmeasured device reaches."""
        new = device.year is not None and device.year >= _POWER_LIMITED_SINCE
        return self.attainable_since_2022 if new else self.attainable

    def of_product(self, m: Number, n: Number, k: Number, count: Number, units: float) -> Number:
        """Fraction of the attainable rate, the bytes read again aside."""
        return (
            self.sustained
            * self.ceiling
            * _fill(np.minimum(m, n), self.half_small)
            * _fill(k, self.half_depth)
            * _fill(self._waves(m, n, k, count, units), self.half_waves)
        )

    def of_attention(
        self, m: Number, n: Number, k: Number, count: Number, seen: Number, units: float
    ) -> Number:
        """Fraction of the attainable rate of the many small products of attention.

        Their narrow side is the width of a head, which kernels for attention are made for:
        their depth loses nothing. Each block of rows of the scores runs through on one unit,
        over the share ``seen`` of the others that its mask leaves.
        """
        width = np.minimum(np.minimum(m, n), k)
        sequence = m + n + k - width - np.maximum(np.maximum(m, n), k)
        rounds = count * sequence / (_ROWS_OF_SCORES * units)
        return (
            self.sustained
            * self.ceiling
            * _fill(width, self.half_head)
            * _fill(sequence * seen, self.half_seen)
            * _fill(rounds, self.half_rounds)
        )

    def _waves(self, m: Number, n: Number, k: Number, count: Number, units: float) -> Number:
        tiles = np.maximum(m / self.tile, 1.0) * np.maximum(n / self.tile, 1.0) * count
        return tiles * np.maximum(k / self.split_depth, 1.0) / units


@dataclass(frozen=True)
class Efficiency:
    """Constants of the layer cost model; override them with `with_constants`.

    ``matrix`` is a tensor core or its like, ``vector`` the plain units of an accelerator,
    ``processor`` a CPU. ``products`` are factors on matrix products of some kinds of layer
    (``stem`` is the convolution that is fed by data), further ones on their weight and input
    gradients (KIND_weight_gradient), those of plain units with plain_ before, and what a sliding
    window gains (window_SIDE), half of it with ``window_half_channels``. ``memory`` is the
    fraction of memory bandwidth that kinds of layer reach with large tensors, in backward that
    of KIND_backward where there is one. An operation that moves ``half_bytes`` reaches half of it.
    ``launch_seconds`` is paid by each operation on the device, by kind of device. ``devices``
    are factors for single devices, called NAME.products and NAME.memory.
    """

    matrix: UnitEfficiency
    vector: UnitEfficiency
    processor: UnitEfficiency
    products: Mapping[str, float]
    memory: Mapping[str, float]
    half_bytes: Mapping[str, float]
    launch_seconds: Mapping[str, float]
    devices: Mapping[str, float] = field(default_factory=dict)

    def unit(self, device: Device, arithmetic: str) -> UnitEfficiency:
        """The constants for products in this arithmetic on this device."""
        if device.is_processor:
            return self.processor
        return self.matrix if device.uses_matrix_unit(arithmetic) else self.vector

    def attainable_flops(self, device: Device, arithmetic: str) -> float:
        """FLOP/s of the best product: measured for the device, else a fraction of peak.

        The fraction that one format of a matrix unit was measured to reach holds for its
        other formats too.
        """
        peak = device.peak(arithmetic)
        own = self.devices.get(f"{device.name}.products", 1.0)
        if arithmetic in device.attainable_flops:
            return own * device.attainable_flops[arithmetic]
        if device.uses_matrix_unit(arithmetic):
            for known, rate in device.attainable_flops.items():
                if device.uses_matrix_unit(known):
                    return own * peak * rate / device.peak(known)
        return own * peak * self.unit(device, arithmetic).attainable_of(device)

    def launch(self, device: Device) -> float:
        """Seconds that each operation costs besides its work."""
        if device.launch_overhead_seconds is not None:
            return device.launch_overhead_seconds
        return self.launch_seconds[_side(device)]

    def memory_ceiling(self, kind: str, backward: bool = False) -> float:
        """Fraction of memory bandwidth that a kind of layer reaches with large tensors."""
        forward = self.memory.get(kind, self.memory["other"])
        return self.memory.get(f"{kind}_backward", forward) if backward else forward

    def memory_fill(self, size_bytes: Number, device: Device) -> Number:
        """What is left of that fraction for an operation that moves so many bytes."""
        own = self.devices.get(f"{device.name}.memory", 1.0)
        return own * _fill(size_bytes, self.half_bytes[_side(device)])

    def product_factor(self, kind: str, unit: UnitEfficiency | None = None) -> float:
        """Factor on the efficiency of matrix products of a kind of layer on a unit."""
        if unit is not None and unit is not self.matrix:
            kind = f"plain_{kind}"
        return self.products.get(kind, 1.0)

    def window_gain(self, window: int, channels: Number, unit: UnitEfficiency) -> Number:
        """Multiplications that plain units of an accelerator are spared for a sliding window.

        Transforms before and after take time by position, products by position and channel:
        of few ``channels`` (the harmonic mean of those read and written) little is left.
        """
        most = self.products.get(f"window_{window}")
        if most is None or unit is not self.vector:
            return 1.0
        return np.maximum(1.0, most * _fill(channels, self.products["window_half_channels"]))

    def constants(self) -> dict[str, float]:
        """Every constant by dotted name (``matrix.ceiling``, ``memory.batch_norm``)."""
        flat: dict[str, float] = {}
        for part in dataclasses.fields(self):
            value = getattr(self, part.name)
            if isinstance(value, UnitEfficiency):
                value = dataclasses.asdict(value)
            if isinstance(value, Mapping):
                flat |= {f"{part.name}.{key}": number for key, number in value.items()}
        return flat

    def with_constants(self, changes: Mapping[str, float]) -> "Efficiency":
        """A copy in which the named constants have other values."""
        known = self.constants()
        groups: dict[str, Any] = {}
        for name, number in changes.items():
            if name not in known and not name.startswith("devices."):
                raise unknown_name(
                    "efficiency constant", name, known, "'paceline constants kernels' lists them"
                )
            group, key = name.split(".", 1)
            current = groups.get(group, getattr(self, group))
            if isinstance(current, UnitEfficiency):
                groups[group] = dataclasses.replace(current, **{key: number})
            else:
                groups[group] = {**current, key: number}
        return dataclasses.replace(self, **groups)


def _fill(size: Number, half: float) -> Number:
    return size / (size + half)


def _side(device: Device) -> str:
    return "processor" if device.is_processor else "accelerator"


@built_from_constants
def load_efficiency() -> Efficiency:
    """The constants that come with the package (see `paceline.constants`)."""
    kernels = numbers_of("kernels")
    kernels.check_keys(_TABLES, needed=_TABLES)
    return Efficiency(
        matrix=_unit_efficiency(kernels.table("matrix")),
        vector=_unit_efficiency(kernels.table("vector")),
        processor=_unit_efficiency(kernels.table("processor")),
        products=kernels.table("products").quantities(float),
        memory=kernels.table("memory").quantities(float),
        half_bytes=kernels.table("half_bytes").quantities(float),
        launch_seconds=numbers_of("overheads").table("launch_seconds").quantities(float),
        devices={
            f"{device}.{rate}": factor
            for device, own in kernels.table("devices").tables().items()
            for rate, factor in own.quantities(float).items()
        },
    )


def _unit_efficiency(table: TomlTable) -> UnitEfficiency:
    names = tuple(part.name for part in dataclasses.fields(UnitEfficiency))
    table.check_keys(names, needed=names)
    return UnitEfficiency(**table.quantities(float, may_be_zero=True))
