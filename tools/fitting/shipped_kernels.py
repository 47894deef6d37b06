"""Errors of the shipped kernel curves on measured kernels.

The points are those of `fitting.kernels`: replayed bursts of single kernels, so nothing is paid
for what training does not sustain, nor for launches by a framework. The constants were fitted on
the same points: `fitting.kernels` says how far they are off on devices that they have not seen.
With a factor of the device's own the bias is gone and the form of a curve is left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fitting.kernel_curves import Array, KernelPoints, points_of
from paceline.hardware import Device
from paceline.predictor.comm.collective_cost import collective_cost
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.kernels.efficiency import load_efficiency
from paceline.predictor.kernels.gemm_arrays import FORWARD
from paceline.predictor.kernels.roofline import layer_work
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Attention, Linear

REPLAYED_LAUNCH_SECONDS = {"product": 2.4e-6, "attention": 16.7e-6}
"""Overhead of a replayed kernel, as fitted on the points."""


@dataclass(frozen=True)
class ShippedError:
    """Mean error of the shipped curves on one device, its bias, and the error without the bias."""

    kind: str
    device: str
    points: int
    error: float
    bias: float
    own: float


def shipped_errors() -> list[ShippedError]:
    """Products, causal attention and collectives of one node on every device."""
    return [
        _scored(kind, seconds, points)
        for kind, seconds in PREDICTED.items()
        for points in points_of(kind)
    ]


def shipped_table() -> str:
    """The errors as lines of Markdown."""
    lines = [
        f"| {own.kind} | {own.device} | {own.points} | {own.error:.1%} | {own.bias:+.1%} "
        f"| {own.own:.1%} |"
        for own in shipped_errors()
    ]
    head = "| kernel | device | points | as predicted | bias | with its own factor |"
    return "\n".join([head, "|---|---|---:|---:|---:|---:|", *lines])


def _scored(
    kind: str, seconds: Callable[[KernelPoints], Array], points: KernelPoints
) -> ShippedError:
    ratio = seconds(points) / points.seconds
    factors = np.exp(np.linspace(-1.0, 1.0, 401))
    return ShippedError(
        kind,
        points.device.name,
        len(ratio),
        float(np.mean(np.abs(ratio - 1.0))),
        float(np.exp(np.mean(np.log(ratio))) - 1.0),
        min(float(np.mean(np.abs(factor * ratio - 1.0))) for factor in factors),
    )


def _product_seconds(points: KernelPoints) -> Array:
    """Forward of a linear layer, for each product (m x k)(k x n)."""
    found = []
    for m, n, k, _ in points.shapes.astype(int).tolist():
        node = Node("map", Linear(m, bias=False), ("rows",))
        found.append(_forward_seconds(node, (n, k), 1, points.device))
    return np.array(found) + REPLAYED_LAUNCH_SECONDS["product"]


def _attention_seconds(points: KernelPoints) -> Array:
    """Forward of causal attention over so many samples, tokens, heads and numbers per head."""
    found = []
    for batch, tokens, heads, width in points.shapes.astype(int).tolist():
        op = Attention(heads, heads, width, causal=True)
        node = Node("mix", op, ("queries", "keys", "values"))
        found.append(_forward_seconds(node, (tokens, heads * width), batch, points.device))
    return np.array(found) + REPLAYED_LAUNCH_SECONDS["attention"]


def _forward_seconds(node: Node, shape: tuple[int, ...], batch: int, device: Device) -> float:
    """One layer of bf16 training as `predict` has it, its inputs of equal shape, as a burst."""
    inputs = {name: InputSpec(shape) for name in node.inputs}
    profile = Graph("kernel", inputs, (node,), node.name).profile(None, "bf16")
    burst = load_efficiency().with_constants({"matrix.sustained": 1.0})
    work = layer_work(profile, batch, device, "bf16", burst)
    rate = burst.attainable_flops(device, "bf16")
    return float(work.seconds(rate, device.known_memory_bandwidth, 0.0)[FORWARD, 0])


def _collective_seconds(points: KernelPoints) -> Array:
    """As NCCL is predicted in one node of such devices."""
    found = [
        collective_cost(str(operation), Group(ranks, ranks), points.node, "nccl").seconds(size)
        for operation, (ranks, size) in zip(points.what, points.shapes[:, :2].tolist(), strict=True)
    ]
    return np.array(found)


PREDICTED: Mapping[str, Callable[[KernelPoints], Array]] = {
    "product": _product_seconds,
    "attention": _attention_seconds,
    "collective": _collective_seconds,
}
"""Seconds of points by kind, as predicted for a burst."""
