"""Device: one accelerator or one processor socket, as its data sheet describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from paceline import units
from paceline.errors import InputError
from paceline.file_keys import COUNT, NOT_IN_FILE, Key, quantity
from paceline.hardware.provenance import SourcedEntry, UnknownQuantityError
from paceline.naming import unknown_name

PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""Arithmetic formats of peak rates."""

DEVICE_KINDS = ("gpu", "cpu", "cpu_socket", "manycore", "ipu", "npu")
SLOWEST_FLOPS, SMALLEST_BYTES = 1e6, 1e6
"""Smaller values indicate a forgotten unit."""

_PRECISION_HINT = f"one of {', '.join(PRECISIONS)}"


def _device_flops(value: str | float) -> float:
    rate = units.parse_flops(value)
    if rate < SLOWEST_FLOPS:
        raise InputError(
            f"{value} FLOP/s is too small for a device", 'give a unit, e.g. "15 TFLOP/s"'
        )
    return rate


def _device_bytes(value: str | float) -> float:
    size = units.parse_bytes(value)
    if 0 < size < SMALLEST_BYTES:
        raise InputError(f"{value} bytes is too small for a device", 'give a unit, e.g. "24 GB"')
    return size


Rates = Annotated[Mapping[str, Annotated[float, quantity(_device_flops)]], Key(choices=PRECISIONS)]
"""FLOP/s by arithmetic format."""


@dataclass(frozen=True)
class Device(SourcedEntry):
    """An accelerator or a CPU. Rates are dense peaks in FLOP/s, sizes in bytes; None is unknown.

    ``matrix_precisions`` are the formats whose peak is that of a matrix unit (tensor core),
    which only large, aligned GEMMs reach. ``compute_units`` is the number of streaming
    multiprocessors, compute units or cores, ``clock_mhz`` their highest clock.
        ``attainable_flops`` is the best published GEMM rate. ``launch_overhead_seconds`` is the
    cost of one kernel launch. ``generation`` names the architecture if the year of the device
    does not determine it. ``exponential_rate`` is the rate of exponentials for each FLOP of the
    vector units, relative to that of Volta to Blackwell.
    """

    CHECKED_KEY: ClassVar[str] = "attainable_flops"

    name: Annotated[str, NOT_IN_FILE]
    vendor: str = ""
    kind: Annotated[str, Key(choices=DEVICE_KINDS)] = "gpu"
    peak_flops: Rates = field(default_factory=dict)
    memory_bytes: Annotated[float | None, quantity(_device_bytes, "memory")] = None
    memory_bandwidth: Annotated[float | None, quantity(units.parse_bandwidth)] = None
    matrix_precisions: frozenset[str] = frozenset()
    attainable_flops: Rates = field(default_factory=dict)
    compute_units: Annotated[int | None, COUNT] = None
    clock_mhz: Annotated[float | None, quantity(float)] = None
    launch_overhead_seconds: Annotated[
        float | None, quantity(units.parse_seconds, "launch_overhead", may_be_zero=True)
    ] = None
    power_watts: Annotated[float | None, quantity(float)] = None
    year: Annotated[int | None, COUNT] = None
    generation: str = ""
    exponential_rate: Annotated[float, quantity(float)] = 1.0

    def peak(self, arithmetic: str) -> float:
        """Dense peak in FLOP/s of an arithmetic format; an error if it is unknown."""
        if arithmetic not in PRECISIONS:
            raise unknown_name("arithmetic", arithmetic, PRECISIONS, _PRECISION_HINT)
        rate = self.peak_flops.get(arithmetic)
        if rate is None:
            known = ", ".join(self.peak_flops) or "none"
            raise UnknownQuantityError(
                f"the {arithmetic} rate of {self.name} is unknown (known: {known})",
                f"measure it with 'paceline calibrate', or set [device.{self.name}] "
                f'peak_flops = {{ {arithmetic} = "..TFLOP/s" }} in a TOML file',
            )
        return rate

    def uses_matrix_unit(self, arithmetic: str) -> bool:
        """Whether GEMMs in this format run on a matrix unit (tensor core)."""
        return arithmetic in self.matrix_precisions

    @property
    def is_processor(self) -> bool:
        return self.kind in {"cpu", "cpu_socket", "manycore"}

    @property
    def known_memory_bytes(self) -> float:
        """Memory in bytes; an error if it is unknown."""
        return self._known(
            self.memory_bytes, "memory", "read it from nvidia-smi or free -b", '"80GB"'
        )

    @property
    def known_memory_bandwidth(self) -> float:
        """Memory bandwidth in bytes/s; an error if it is unknown."""
        return self._known(
            self.memory_bandwidth,
            "memory_bandwidth",
            "measure it with 'paceline calibrate'",
            '"900GB/s"',
        )

    def _known(self, value: float | None, key: str, how: str, example: str) -> float:
        if value is None:
            raise UnknownQuantityError(
                f"the {key.replace('_', ' ')} of {self.name} is unknown",
                f"{how}; then set [device.{self.name}] {key} = {example} in a TOML file",
            )
        return value

    def __post_init__(self) -> None:
        for precision in [*self.peak_flops, *self.attainable_flops, *self.matrix_precisions]:
            if precision not in PRECISIONS:
                raise unknown_name("arithmetic", precision, PRECISIONS, _PRECISION_HINT)
        for precision, rate in self.attainable_flops.items():
            peak = self.peak_flops.get(precision)
            if peak is not None and rate > peak:
                raise InputError(
                    f"{self.name}: attainable {precision} rate exceeds its peak",
                    "correct one of the two: utilisation cannot exceed 100 %",
                )
