"""Device: one accelerator or one processor socket, as its data sheet describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from paceline.errors import InputError
from paceline.hardware.provenance import Provenance, UnknownQuantityError
from paceline.naming import unknown_name

PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""Arithmetic formats that a device may have a rate for."""

_PRECISION_HINT = f"one of {', '.join(PRECISIONS)}"
_EMPTY: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Device:
    """What computes. Rates are dense peaks in FLOP/s; sizes are bytes; None is unknown.

    ``matrix_precisions`` are the formats whose peak is that of a matrix unit (tensor core),
    which reaches it only on large, aligned products. ``compute_units`` are the streaming
    multiprocessors, compute units or cores that work is dealt out to, ``clock_mhz`` the highest
    clock that they run at.
    ``attainable_flops`` holds the best rate that anyone measured on a matrix product.
    ``launch_overhead_seconds`` is what starting one operation costs the device's queue.
    ``generation`` names the architecture where the year of the part does not tell it.
    """

    name: str
    vendor: str
    kind: str
    peak_flops: Mapping[str, float]
    memory_bytes: float | None = None
    memory_bandwidth: float | None = None
    matrix_precisions: frozenset[str] = frozenset()
    attainable_flops: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    compute_units: int | None = None
    clock_mhz: float | None = None
    launch_overhead_seconds: float | None = None
    power_watts: float | None = None
    year: int | None = None
    generation: str = ""
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict, compare=False)

    def peak(self, arithmetic: str) -> float:
        """Dense peak in FLOP/s of an arithmetic format, or an error on how to measure it."""
        if arithmetic not in PRECISIONS:
            raise unknown_name("arithmetic", arithmetic, PRECISIONS, _PRECISION_HINT)
        rate = self.peak_flops.get(arithmetic)
        if rate is None:
            known = ", ".join(self.peak_flops) or "none"
            raise UnknownQuantityError(
                f"the {arithmetic} rate of {self.name} is not known (known: {known})",
                f"'paceline probe' measures it on the device; or state [device.{self.name}] "
                f'peak_flops = {{ {arithmetic} = "..TFLOP/s" }} in a TOML of yours',
            )
        return rate

    def uses_matrix_unit(self, arithmetic: str) -> bool:
        """Whether products in this format run on a matrix unit (tensor core)."""
        return arithmetic in self.matrix_precisions

    @property
    def is_processor(self) -> bool:
        """Whether it is a CPU, which its host's own libraries drive."""
        return self.kind in {"cpu", "cpu_socket", "manycore"}

    @property
    def known_memory_bytes(self) -> float:
        """Memory in bytes, or an error on how to find it."""
        return self._known(self.memory_bytes, "memory", "nvidia-smi or free -b show it", '"80GB"')

    @property
    def known_memory_bandwidth(self) -> float:
        """Memory bandwidth in bytes/s, or an error on how to measure it."""
        return self._known(
            self.memory_bandwidth,
            "memory_bandwidth",
            "'paceline probe' measures it on the device",
            '"900GB/s"',
        )

    def _known(self, value: float | None, key: str, how: str, example: str) -> float:
        if value is None:
            raise UnknownQuantityError(
                f"the {key.replace('_', ' ')} of {self.name} is not known",
                f"{how}; then state [device.{self.name}] {key} = {example} in a TOML of yours",
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
                    f"{self.name}: attainable {precision} rate is above its peak",
                    "utilisation above 100 % is impossible: one of the two is wrong",
                )
