"""How far the curves that predict are off on measured kernels.

The points are those of `fitting.kernels`: bursts of single kernels. What predicts has its level
from whole steps, so that a bias is what steps sustain less than bursts; the form of its product
curve was fitted on the same database, which is why its errors validate nothing. With a factor of
the device's own the bias is gone and the form of a curve is left.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paceline.analyse.validation.fitting.kernels import COLLECTIVES, Array, KernelPoints, points_of
from paceline.hardware import Device, catalogue
from paceline.predictor.collectives import Group, collective_cost
from paceline.predictor.compute import layer_times
from paceline.workload.cost import GraphCost
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Attention, Linear

_PLACES = {"a100_sxm_80gb": "dgx-a100", "h100_sxm_80gb": "dgx-h100", "b200_sxm": "dgx-b200"}
"""Clusters whose nodes have the devices of the points."""


@dataclass(frozen=True)
class ShippedError:
    """Mean error of what predicts on one device, its bias, and the error without the bias."""

    kind: str
    device: str
    points: int
    error: float
    bias: float
    own: float


def shipped_errors() -> list[ShippedError]:
    """Products, causal attention and collectives of one node on every device."""
    kinds: list[tuple[str, Callable[[KernelPoints], Array], list[KernelPoints]]] = [
        ("product", _product_seconds, points_of("product")),
        ("attention", _attention_seconds, points_of("attention")),
    ]
    found = [_scored(kind, seconds, each) for kind, seconds, own in kinds for each in own]
    for operation in COLLECTIVES:
        for each in points_of("collective", operation):
            found.append(_scored(operation, _collective(operation), each))
    return found


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
    return np.array(found)


def _attention_seconds(points: KernelPoints) -> Array:
    """Forward of causal attention over so many samples, tokens, heads and numbers per head."""
    found = []
    for batch, tokens, heads, width in points.shapes.astype(int).tolist():
        op = Attention(heads, heads, width, causal=True)
        node = Node("mix", op, ("queries", "keys", "values"))
        found.append(_forward_seconds(node, (tokens, heads * width), batch, points.device))
    return np.array(found)


def _forward_seconds(node: Node, shape: tuple[int, ...], batch: int, device: Device) -> float:
    """One layer of bf16 training as `predict` has it, its inputs of equal shape."""
    inputs = {name: InputSpec(shape) for name in node.inputs}
    profile = Graph("kernel", inputs, (node,), node.name).profile(None, "bf16")
    return layer_times(GraphCost(profile, batch), device, "bf16")[0].forward_seconds


def _collective(operation: str) -> Callable[[KernelPoints], Array]:
    def seconds(points: KernelPoints) -> Array:
        cluster = catalogue.cluster(_PLACES[points.device.name]).with_nodes(1)
        found = [
            float(collective_cost(operation, Group(ranks, ranks), cluster, "nccl").seconds(size))
            for ranks, size in points.shapes[:, :2].tolist()
        ]
        return np.array(found)

    return seconds
