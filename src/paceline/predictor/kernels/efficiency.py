"""Efficiency of operations relative to a device's peak rates, by kind and size.

Constants and their origin are in ``data/constants/kernels.toml``; docs/explanation/constants.md
describes the fit and its errors. Every curve is smooth, increases with size and stays below one,
so a higher peak always gives a shorter time.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from paceline.constants import built_from_constants, number, numbers_of
from paceline.file_keys import NOT_IN_FILE, Key, quantity
from paceline.hardware import Device
from paceline.naming import unknown_name
from paceline.typed_toml import read_file
from paceline.workload.cost import Number

FLASH_2 = "flash-2"
"""FlashAttention-2, the attention kernel of PyTorch (`scaled_dot_product_attention`)."""

_FLOP_PER_SCORE_AND_NUMBER = 4.0


Positive = Annotated[float, quantity(float)]
Factor = Annotated[float, quantity(float, may_be_zero=True)]


def _by_device(tables: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Factors by ``DEVICE.RATE``."""
    return {f"{name}.{rate}": one for name, own in tables.items() for rate, one in own.items()}


@dataclass(frozen=True)
class UnitEfficiency:
    """Efficiency of a GEMM (m x k)(k x n) on one kind of arithmetic unit.

    A short burst reaches ``ceiling`` x fill(min(m, n)) x fill(k) x fill(waves) of the attainable
    rate, where fill(x) = x / (x + half): half of the rate is lost if the smaller output dimension
    is ``half_small``, if the inner dimension is ``half_depth``, and if the output makes
    ``half_waves`` waves of ``tile`` x ``tile`` tiles on the device. GEMMs deeper than
    ``split_depth`` are split along k into more tiles (split-K). Tiles re-read ``reread`` operands
    per FLOP from memory.

    The two GEMMs of attention reach ``attention_ceiling``, while vector units spend
    ``score_work`` FLOP on the softmax of each score; together they take the norm of order
    ``overlap`` of both times: the sum for 1, the longer one for large orders. Half of the rate is
    lost if a token attends to ``half_seen`` others, and if blocks of rows make ``half_rounds``
    waves on the device.

    ``sustained`` is the fraction that hours of training keep of a burst (clock and power limits).
    ``attainable`` is the fraction of peak of the best GEMM for devices without a measured rate,
    ``attainable_since_2022`` that of newer devices, which are power-limited. ``plain_share`` is the
    rate of vector units over the attainable rate if unknown.
    """

    ceiling: Factor
    sustained: Factor
    half_small: Factor
    half_depth: Factor
    half_waves: Factor
    tile: Factor
    split_depth: Factor
    reread: Factor
    attention_ceiling: Factor
    score_work: Factor
    overlap: Factor
    half_seen: Factor
    half_rounds: Factor
    attainable: Factor
    attainable_since_2022: Factor
    plain_share: Factor

    def attainable_of(self, device: Device) -> float:
        """Fraction of peak that the best GEMM of an unmeasured device reaches."""
        new = device.year is not None and device.year >= number("kernels.limits.newer_since")
        return self.attainable_since_2022 if new else self.attainable

    def faster(self, factor: float) -> "UnitEfficiency":
        """The constants of a shorter format: costs beside the products keep their time."""
        scale = max(1.0, number("kernels.limits.short_format") * factor)
        return dataclasses.replace(
            self,
            half_small=scale * self.half_small,
            half_depth=scale * self.half_depth,
            half_waves=scale * self.half_waves,
        )

    def of_product(self, m: Number, n: Number, k: Number, count: Number, units: float) -> Number:
        """Fraction of the attainable rate, without re-reads of operands."""
        return (
            self.sustained
            * self.ceiling
            * _fill(np.minimum(m, n), self.half_small)
            * _fill(k, self.half_depth)
            * _fill(self._waves(m, n, k, count, units), self.half_waves)
        )

    def of_attention(
        self,
        m: Number,
        n: Number,
        k: Number,
        count: Number,
        seen: Number,
        units: float,
        plain_share: float,
    ) -> Number:
        """Fraction of the attainable rate of the batched GEMMs of attention.

        The smallest dimension is the head width, which attention kernels are tuned for, so depth
        costs nothing. Each block of rows of the scores runs on one compute unit, over the share
        ``seen`` of the columns that the mask leaves. ``plain_share`` is the rate of vector units
        over the attainable rate.
        """
        # In both GEMMs of attention the smallest dimension is the head width; the median of the
        # three is the (shorter) sequence.
        width = np.minimum(np.minimum(m, n), k)
        sequence = m + n + k - width - np.maximum(np.maximum(m, n), k)
        rounds = count * sequence / (number("kernels.limits.attention_rows") * units)
        softmax = self.score_work / (_FLOP_PER_SCORE_AND_NUMBER * width * plain_share)
        # Softmax runs on vector units beside the GEMMs. On B200 both take equally long for heads
        # of 128, on L40S the softmax is hidden: hence a norm between sum and maximum.
        slowed = self.attention_ceiling**-self.overlap + softmax**self.overlap
        reached: Number = slowed ** (-1.0 / self.overlap)
        return (
            self.sustained
            * reached
            * _fill(sequence * seen, self.half_seen)
            * _fill(rounds, self.half_rounds)
        )

    def _waves(self, m: Number, n: Number, k: Number, count: Number, units: float) -> Number:
        tiles = np.maximum(m / self.tile, 1.0) * np.maximum(n / self.tile, 1.0) * count
        return tiles * np.maximum(k / self.split_depth, 1.0) / units


@dataclass(frozen=True)
class Efficiency:
    """Constants of the layer cost model; override them with `with_constants`.

    ``matrix`` is for tensor cores, ``vector`` for the vector units of an accelerator,
    ``processor`` for a CPU. ``products`` are factors on GEMMs of some kinds of layer (``stem`` is
    the first convolution) and on their gradients (KIND_weight_gradient, KIND_input_gradient);
    those of vector units start with plain_. ``memory`` is the fraction of memory bandwidth that
    large tensors reach by kind of layer, KIND_backward in backward if present. An operation that
    moves ``half_bytes`` reaches half of it. ``launch_seconds`` is the cost of one kernel launch by
    kind of device. ``devices`` are factors of single devices, NAME.products and NAME.memory.
    """

    matrix: UnitEfficiency
    vector: UnitEfficiency
    processor: UnitEfficiency
    products: Mapping[str, Positive]
    memory: Mapping[str, Positive]
    half_bytes: Mapping[str, Positive]
    launch_seconds: Annotated[Mapping[str, float], NOT_IN_FILE]
    devices: Annotated[Mapping[str, float], Key(parse=_by_device)] = field(default_factory=dict)

    def unit(self, device: Device, arithmetic: str) -> UnitEfficiency:
        """The constants for GEMMs in this arithmetic on this device."""
        if device.is_processor:
            return self.processor
        return self.matrix if device.uses_matrix_unit(arithmetic) else self.vector

    def attainable_flops(self, device: Device, arithmetic: str) -> float:
        """FLOP/s of the best GEMM: measured on the device, else a fraction of peak.

        A fraction measured in one format of a matrix unit is used for its other formats.
        """
        peak = device.peak(arithmetic)
        own = self.devices.get(f"{device.name}.products", 1.0)
        if arithmetic in device.attainable_flops:
            return own * device.attainable_flops[arithmetic]
        # Formats of one matrix unit share its power and bandwidth limits.
        if device.uses_matrix_unit(arithmetic):
            for known, rate in device.attainable_flops.items():
                if device.uses_matrix_unit(known):
                    return own * peak * rate / device.peak(known)
        return own * peak * self.unit(device, arithmetic).attainable_of(device)

    def plain_share(self, device: Device, arithmetic: str) -> float | None:
        """Rate of the vector units over the attainable rate of ``arithmetic``, if known."""
        plain = device.peak_flops.get("fp32")
        if plain is None:
            return None
        return min(1.0, plain / self.attainable_flops(device, arithmetic))

    def launch(self, device: Device) -> float:
        """Seconds of one kernel launch."""
        if device.launch_overhead_seconds is not None:
            return device.launch_overhead_seconds
        return self.launch_seconds[_side(device)]

    def memory_ceiling(self, kind: str, backward: bool = False) -> float:
        """Fraction of memory bandwidth that large tensors of a kind of layer reach."""
        forward = self.memory.get(kind, self.memory["other"])
        return self.memory.get(f"{kind}_backward", forward) if backward else forward

    def memory_fill(self, size_bytes: Number, device: Device) -> Number:
        """Factor on that fraction for an operation that moves ``size_bytes``."""
        own = self.devices.get(f"{device.name}.memory", 1.0)
        return own * _fill(size_bytes, self.half_bytes[_side(device)])

    def product_factor(self, kind: str, unit: UnitEfficiency | None = None) -> float:
        """Factor on the efficiency of GEMMs of a kind of layer on a unit."""
        if unit is not None and unit is not self.matrix:
            kind = f"plain_{kind}"
        return self.products.get(kind, 1.0)

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

    def of_program(self, device: Device, attention_kernel: str) -> "Efficiency":
        """The constants of programs with this attention kernel (`FLASH_2`, "" for the vendor's).

        FlashAttention-2 issues the matrix instructions of Ampere, which later units execute at the
        rate of Ampere per clock; programs for Blackwell use the vendor's kernels. The vendor's
        kernels for Hopper and later have a backward of their own rate.
        """
        year = device.year or 0
        since, until = number("kernels.limits.newer_since"), number("kernels.limits.flash_2_until")
        if device.is_processor or year < since:
            return self
        if attention_kernel != FLASH_2 or year >= until:
            vendors = number("kernels.limits.vendor_attention_gradient")
            return self.with_constants({"products.attention_input_gradient": vendors})
        clock = 1e6 * (device.clock_mhz or number("kernels.limits.usual_clock_mhz"))
        per_clock = device.peak_flops.get("bf16", 0.0) / (clock * (device.compute_units or 1))
        share = number("kernels.limits.flash_2_flops_per_clock") / max(per_clock, 1.0)
        if share >= 1.0:
            return self
        attention = share * self.product_factor("attention")
        return dataclasses.replace(self, products={**self.products, "attention": attention})

    def with_constants(self, changes: Mapping[str, float]) -> "Efficiency":
        """A copy with the named constants replaced."""
        known = self.constants()
        groups: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in known and not name.startswith("devices."):
                raise unknown_name(
                    "efficiency constant",
                    name,
                    known,
                    "'paceline catalog constants kernels' lists them",
                )
            group, key = name.split(".", 1)
            current = groups.get(group, getattr(self, group))
            if isinstance(current, UnitEfficiency):
                groups[group] = dataclasses.replace(current, **{key: value})
            else:
                groups[group] = {**current, key: value}
        return dataclasses.replace(self, **groups)


def _fill(size: Number, half: float) -> Number:
    return size / (size + half)


def _side(device: Device) -> str:
    return "processor" if device.is_processor else "accelerator"


@built_from_constants
def load_efficiency() -> Efficiency:
    """The shipped constants (see `paceline.constants`)."""
    launch_seconds = numbers_of("overheads").values["launch_seconds"]
    kernels = numbers_of("kernels")
    curves = {name: table for name, table in kernels.values.items() if name != "limits"}
    root = dataclasses.replace(kernels, values=curves)
    return read_file(root, Efficiency, launch_seconds=launch_seconds)
