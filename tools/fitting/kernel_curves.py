"""Curves of single kernels fitted on all devices but one, and how far they are off on that one.

The points are in data/reference/kernels.csv.gz: facts of NVIDIA AIConfigurator's database
(aiconfigurator-core 0.12.0, Apache-2.0), forward products of at least 1024 x 512 x 512 and
causal attention (heads of 64 and 128, 1024 tokens or more) in bf16, a part drawn at random, and
collectives among 2, 4 and 8 devices over NVLink, the median of library versions; all replayed as
CUDA graphs. The curves are those that predict (`paceline.predictor.kernels.efficiency`,
`paceline.predictor.comm`), and their constants in ``data/constants`` are those fitted on
all devices; what training keeps of such bursts is fitted on whole steps.

`script/fit-constants --kernels` prints the constants and the table of
docs/explanation/constants.md.
"""

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from paceline.hardware import Cluster, Device, catalogue
from paceline.predictor.comm.collective_cost import variant_cost
from paceline.predictor.comm.fabric import fabric_of
from paceline.predictor.comm.library import library
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.kernels.efficiency import UnitEfficiency, load_efficiency
from paceline.workload.ops.attention import TILE

Array = NDArray[np.float64]
_PRIOR_WEIGHT = 0.02
_LARGE_RESIDUAL = 0.2
_ROUNDS = 25
_OPERAND_BYTES = 2.0
_OF_ATTENTION = ("score_work", "half_seen", "half_rounds")
_OF_RING = ("bandwidth_fraction", "half_ranks")
_PLACES = {"a100_sxm_80gb": "dgx-a100", "h100_sxm_80gb": "dgx-h100", "b200_sxm": "dgx-b200"}
"""Clusters whose nodes have the devices of the points."""


@dataclass(frozen=True)
class KernelPoints:
    """Kernels measured on one device: a row of numbers each, and its seconds.

    ``what`` is the engine that called a kernel, or the operation of a collective.
    """

    device: Device
    what: NDArray[np.str_]
    shapes: Array
    seconds: Array

    @property
    def node(self) -> Cluster:
        """One node with such devices."""
        return catalogue.cluster(_PLACES[self.device.name]).with_nodes(1)


@dataclass(frozen=True)
class KernelCurve:
    """Seconds as a function of points, shared constants and one constant of the device.

    All constants are logarithms; ``start`` is where the fit begins and what it is drawn to.
    ``names`` are those of the constants in ``data/constants``, the device's own last; a name
    without a dot is one that only the points have.
    """

    seconds: Callable[[KernelPoints, Array, float], Array]
    names: tuple[str, ...]
    start: tuple[float, ...]


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


def fitted_constants() -> dict[str, float]:
    """Constants fitted on all devices, the median of the devices' own; some by short names."""
    found: dict[str, float] = {}
    for curve, points in curves().values():
        shared, owns = _fitted(curve, points)
        values = np.exp([*shared, np.median(owns)])
        found |= dict(zip(curve.names, values.tolist(), strict=True))
    return found


def left_out_scores() -> list[LeftOut]:
    """Every kind of kernel on every device, in the order of the table."""
    return [
        _left_out(kind, curve, left, points)
        for kind, (curve, points) in curves().items()
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


def curves() -> dict[str, tuple[KernelCurve, list[KernelPoints]]]:
    """Products, attention and collectives, each with its curve and its points."""
    unit = "half_small half_depth half_waves tile split_depth reread"
    product = KernelCurve(
        _product_seconds,
        (*(f"kernels.matrix.{name}" for name in unit.split()), "launch", "kernels.matrix.ceiling"),
        _logs(85, 178, 0.14, 88, 4700, 2.5e-4, 2e-6, 1.0),
    )
    attention = KernelCurve(
        _attention_seconds,
        (
            *(f"kernels.matrix.{name}" for name in _OF_ATTENTION),
            *("attention_launch", "trtllm", "kernels.matrix.attention_ceiling"),
        ),
        _logs(20, 250, 0.5, 1e-5, 1.2, 0.9),
    )
    collective = KernelCurve(
        _collective_seconds,
        (
            "libraries.nccl.hop.one-node.nvlink",
            *(f"libraries.nccl.variant.one-node-gather.{name}" for name in _OF_RING),
            *(f"libraries.nccl.variant.one-node-reduce.{name}" for name in _OF_RING),
            "libraries.nccl.variant.one-node-reduce.middle",
            "libraries.nccl.variant.one-node-reduce.start",
        ),
        _logs(1e-6, 1.2, 1.2, 1.2, 0.8, 1.3, 7e-6),
    )
    return {
        "product": (product, points_of("product")),
        "attention": (attention, points_of("attention")),
        "collective": (collective, points_of("collective")),
    }


def _product_seconds(points: KernelPoints, shared: Array, own: float) -> Array:
    """As `UnitEfficiency.of_product`, with bytes that tiles read again, and a launch."""
    half_small, half_depth, half_waves, tile, split_depth, reread, launch = np.exp(shared)
    unit = replace(
        _unit(float(np.exp(own))),
        half_small=half_small,
        half_depth=half_depth,
        half_waves=half_waves,
        tile=tile,
        split_depth=split_depth,
    )
    m, n, k, _ = points.shapes.T
    flops = 2.0 * m * n * k
    reached = _attainable(points.device) * unit.of_product(m, n, k, 1.0, _units(points.device))
    read_again = flops * reread * _OPERAND_BYTES / points.device.known_memory_bandwidth
    return np.asarray(flops / reached + read_again + launch)


def _attention_seconds(points: KernelPoints, shared: Array, own: float) -> Array:
    """As `UnitEfficiency.of_attention` of a causal mask; kernels of TensorRT-LLM are slower."""
    *of_attention, launch, slower = np.exp(shared).tolist()
    unit = replace(
        _unit(1.0),
        attention_ceiling=float(np.exp(own)),
        **dict(zip(_OF_ATTENTION, of_attention, strict=True)),
    )
    batch, tokens, heads, width = points.shapes.T
    seen = np.minimum(1.0, (1.0 + TILE / tokens) / 2.0)
    flops = 4.0 * batch * heads * tokens**2 * width * seen
    rate = _attainable(points.device) * unit.of_attention(
        *(tokens, tokens, width, batch * heads, seen, _units(points.device)),
        load_efficiency().plain_share(points.device, "bf16") or unit.plain_share,
    )
    return np.asarray((flops / rate + launch) * np.where(points.what == "trtllm", slower, 1.0))


def _collective_seconds(points: KernelPoints, shared: Array, own: float) -> Array:
    """As rings of NCCL in one node, with a start of the device's own."""
    hop, of_gather, half_gather, of_reduce, half_reduce, middle = np.exp(shared).tolist()
    ranks, size, _, _ = points.shapes.T
    group = Group(ranks, ranks)
    fabric, nccl = fabric_of(points.node, group), library("nccl")
    seconds = np.zeros_like(size)
    for ring in nccl.variants:
        if ring.one_node and not ring.needs_switch:
            reduces = ring.operation == "all_reduce"
            tried = replace(
                ring,
                start_seconds=float(np.exp(own)),
                hop_seconds={fabric.inner: hop},
                bandwidth_fraction=of_reduce if reduces else of_gather,
                half_ranks=half_reduce if reduces else half_gather,
                middle=middle,
            )
            found = variant_cost(tried, group, fabric, nccl).seconds(size)
            seconds = np.where(points.what == ring.operation, found, seconds)
    return np.asarray(seconds)


def _left_out(kind: str, curve: KernelCurve, left: int, points: Sequence[KernelPoints]) -> LeftOut:
    others = [each for number, each in enumerate(points) if number != left]
    asked = points[left]
    shared, owns = _fitted(curve, others)
    typical = float(np.median(owns))
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
    *shared, own_start = curve.start
    first = np.array([*shared, *[own_start] * len(points)])
    count = len(shared)

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


def points_of(kind: str) -> list[KernelPoints]:
    """Points of each device, in the order of the file."""
    rows = [row for row in _rows() if row["kind"] == kind]
    return [
        KernelPoints(
            catalogue.device(name),
            np.array([row["what"] for row in own]),
            np.array([[float(row[x] or 0) for x in "abcd"] for row in own]),
            np.array([float(row["seconds"]) for row in own]),
        )
        for name in dict.fromkeys(row["device"] for row in rows)
        if (own := [row for row in rows if row["device"] == name])
    ]


def _unit(ceiling: float) -> UnitEfficiency:
    """Matrix units that reach ``ceiling`` for a moment, with the constants that predict."""
    return replace(load_efficiency().matrix, ceiling=ceiling, sustained=1.0)


def _attainable(device: Device) -> float:
    return load_efficiency().attainable_flops(device, "bf16")


def _logs(*values: float) -> tuple[float, ...]:
    return tuple(float(np.log(value)) for value in values)


def _units(device: Device) -> float:
    return float(device.compute_units or 1)
