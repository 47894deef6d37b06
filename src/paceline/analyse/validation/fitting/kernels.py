"""Curves of single kernels fitted on all devices but one, and how far they are off on that one.

The points are in data/reference/kernels.csv.gz: facts of NVIDIA AIConfigurator's database
(aiconfigurator-core 0.12.0, Apache-2.0), forward products of at least 1024 x 512 x 512 and
causal attention (heads of 64 and 128, 1024 tokens or more) in bf16, a part drawn at random, and
collectives among 2, 4 and 8 devices over NVLink, the median of library versions; all replayed as
CUDA graphs. Nothing that predicts reads them. The curve of products is that of
`paceline.predictor.efficiency` with one constant more; the others are simpler than what predicts.

`script/fit-constants --kernels` prints the table of docs/constants.md.
"""

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from paceline.hardware import Device, catalogue

Array = NDArray[np.float64]
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
_PRIOR_WEIGHT = 0.02
_LARGE_RESIDUAL = 0.2
_ROUNDS = 25
_LINK_BYTES = {"a100_sxm_80gb": 300e9, "h100_sxm_80gb": 450e9, "b200_sxm": 900e9}
"""NVLink bytes per second and direction of one device."""


@dataclass(frozen=True)
class KernelPoints:
    """Kernels measured on one device: a row of numbers each, and its seconds."""

    device: Device
    shapes: Array
    seconds: Array


@dataclass(frozen=True)
class KernelCurve:
    """Seconds as a function of points, shared constants and one constant of the device.

    All constants are logarithms; ``start`` is where the fit begins and what it is drawn to.
    """

    seconds: Callable[[KernelPoints, Array, float], Array]
    start: tuple[float, ...]
    own_start: float


@dataclass(frozen=True)
class LeftOut:
    """Mean error on a device that the shared constants have not seen.

    With the constant that the other devices have in the mean, and with its own.
    """

    kind: str
    device: str
    points: int
    typical: float
    own: float


def left_out_scores() -> list[LeftOut]:
    """Every kind of kernel on every device, in the order of the table."""
    return [
        _left_out(kind, curve, left, points)
        for kind, curve, points in _kinds()
        for left in range(len(points))
    ]


def left_out_table() -> str:
    """The scores as lines of Markdown."""
    lines = [
        f"| {score.kind} | {score.device} | {score.points} "
        f"| {score.typical:.1%} | {score.own:.1%} |"
        for score in left_out_scores()
    ]
    head = "| kernel | device left out | points | typical constant | its own |"
    return "\n".join([head, "|---|---|---:|---:|---:|", *lines])


def _kinds() -> list[tuple[str, KernelCurve, list[KernelPoints]]]:
    found = [
        (
            "product",
            KernelCurve(_product_seconds, _logs(85, 178, 0.14, 88, 4700, 2e-6, 5e-4), -0.2),
        ),
        ("attention", KernelCurve(_attention_seconds, _logs(600, 20, 0.3, 1e-5), -0.5)),
    ]
    kinds = [(kind, curve, points_of(kind)) for kind, curve in found]
    for operation in COLLECTIVES:
        passes = 2.0 if operation == "all_reduce" else 1.0
        curve = KernelCurve(
            partial(_collective_seconds, passes), _logs(0.1, 0.7, 0.75, 0.8, 1), -11.8
        )
        kinds.append((operation, curve, points_of("collective", operation)))
    return kinds


def _product_seconds(points: KernelPoints, shared: Array, own: float) -> Array:
    """As `UnitEfficiency.of_product`, a launch, and bytes that tiles read again per FLOP."""
    half_small, half_depth, half_waves, tile, split_depth, launch, again = np.exp(shared)
    m, n, k, _ = points.shapes.T
    tiles = np.maximum(m / tile, 1.0) * np.maximum(n / tile, 1.0) * np.maximum(k / split_depth, 1.0)
    waves = tiles / _units(points.device)
    filled = _fill(np.minimum(m, n), half_small) * _fill(k, half_depth) * _fill(waves, half_waves)
    flops = 2.0 * m * n * k
    read_again = flops * again / points.device.known_memory_bandwidth
    return np.asarray(flops / (_peak(points.device) * np.exp(own) * filled) + read_again + launch)


def _attention_seconds(points: KernelPoints, shared: Array, own: float) -> Array:
    """Causal attention: half of the square, filled by sequence, head and rounds of 128 rows."""
    half_sequence, half_head, half_waves, launch = np.exp(shared)
    batch, sequence, heads, width = points.shapes.T
    waves = batch * heads * sequence / 128.0 / _units(points.device)
    filled = _fill(sequence, half_sequence) * _fill(width, half_head) * _fill(waves, half_waves)
    flops = 2.0 * batch * heads * sequence**2 * width
    return np.asarray(flops / (_peak(points.device) * np.exp(own) * filled) + launch)


def _collective_seconds(passes: float, points: KernelPoints, shared: Array, own: float) -> Array:
    """A start (the device's own), hops, transfer, and a loss where both weigh alike."""
    hop, of_two, of_four, of_eight, middle = np.exp(shared)
    devices, size, _, _ = points.shapes.T
    reached = np.select([devices == 2, devices == 4], [of_two, of_four], of_eight)
    link = _LINK_BYTES[points.device.name]
    transfer = passes * size * (devices - 1) / devices / (link * reached)
    start = np.exp(own) * (1.0 + hop * (devices - 1))
    return np.asarray(start + transfer + middle * np.sqrt(start * transfer))


def _left_out(kind: str, curve: KernelCurve, left: int, points: Sequence[KernelPoints]) -> LeftOut:
    others = [each for number, each in enumerate(points) if number != left]
    asked = points[left]
    shared, owns = _fitted(curve, others)
    typical = float(np.mean(owns))
    best = _own(curve, shared, asked, typical)
    return LeftOut(
        kind,
        asked.device.name,
        len(asked.seconds),
        _mean_error(curve, shared, asked, typical),
        _mean_error(curve, shared, asked, best),
    )


def _fitted(curve: KernelCurve, points: Sequence[KernelPoints]) -> tuple[Array, Array]:
    """Shared constants and one per device: damped least squares of logarithms, devices alike."""
    first = np.array([*curve.start, *[curve.own_start] * len(points)])
    count = len(curve.start)

    def residuals(values: Array) -> Array:
        parts = []
        for own, each in zip(values[count:], points, strict=True):
            error = np.log(curve.seconds(each, values[:count], own) / each.seconds)
            softened = error / np.sqrt(1.0 + np.abs(error) / _LARGE_RESIDUAL)
            parts.append(softened / np.sqrt(len(error)))
        drawn = _PRIOR_WEIGHT * (values[:count] - first[:count])
        return np.concatenate([*parts, drawn])

    values, damping = first, 1e-2
    left = residuals(values)
    for _ in range(_ROUNDS):
        slopes = _slopes(residuals, values, left)
        normal = slopes.T @ slopes
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slopes.T @ left)
        tried = values + np.clip(step, -0.5, 0.5)
        new = residuals(tried)
        if new @ new < left @ left:
            values, left, damping = tried, new, damping / 3.0
        else:
            damping *= 4.0
    return values[:count], values[count:]


def _slopes(residuals: Callable[[Array], Array], values: Array, left: Array) -> Array:
    width = 1e-5
    moved = values + width * np.eye(len(values))
    return np.stack([(residuals(each) - left) / width for each in moved], axis=1)


def _own(curve: KernelCurve, shared: Array, points: KernelPoints, typical: float) -> float:
    tried = typical + np.linspace(-1.0, 1.0, 201)
    return float(min(tried, key=lambda own: _mean_error(curve, shared, points, float(own))))


def _mean_error(curve: KernelCurve, shared: Array, points: KernelPoints, own: float) -> float:
    return float(np.mean(np.abs(curve.seconds(points, shared, own) / points.seconds - 1.0)))


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, str]]:
    packed = resources.files("paceline") / "data" / "reference" / "kernels.csv.gz"
    return list(csv.DictReader(gzip.decompress(packed.read_bytes()).decode("utf-8").splitlines()))


def points_of(kind: str, what: str | None = None) -> list[KernelPoints]:
    """Points of each device, in the order of the file."""
    rows = [row for row in _rows() if row["kind"] == kind and what in (None, row["what"])]
    return [
        KernelPoints(
            catalogue.device(name),
            np.array([[float(row[x] or 0) for x in "abcd"] for row in own]),
            np.array([float(row["seconds"]) for row in own]),
        )
        for name in dict.fromkeys(row["device"] for row in rows)
        if (own := [row for row in rows if row["device"] == name])
    ]


def _fill(size: Array, half: float) -> Array:
    return size / (size + half)


def _logs(*values: float) -> tuple[float, ...]:
    return tuple(float(np.log(value)) for value in values)


def _peak(device: Device) -> float:
    return device.peak_flops["bf16"]


def _units(device: Device) -> float:
    return float(device.compute_units or 1)
