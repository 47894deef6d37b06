"""Covariates: the levels of the factors of a correction."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from paceline.hardware import Cluster, Device, Link
from paceline.predictor.comm.fabric import inner_family, outer_family
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

IMAGE, TEXT, DECODER, OTHER = "image", "text", "decoder", "other"
"""Kinds of work: images, text, causal decoders (mostly large GEMMs), others."""

HALF, FULL = "half", "full"
"""Widths of GEMM operands."""

_IMAGE_DIMENSIONS = 3
_FULL_BYTES = 4
_GENERATIONS = (
    *((2024, "blackwell"), (2022, "hopper"), (2020, "ampere")),
    *((2017, "volta"), (0, "pascal")),
)
_NAMED_BY_YEAR = "nvidia"
_BASES = {
    "mxnet": ("mxnet",),
    "tensorflow": ("tensorflow", "tf-", "keras", "tarantella"),
    "oneflow": ("oneflow",),
    "megatron": ("megatron", "nemo"),
    "paddle": ("paddle",),
    "jax": ("jax",),
}


class Tuning(StrEnum):
    """How well a program is tuned for its machine."""

    PLAIN = "plain"
    """An unmodified tutorial or benchmark script."""
    REFERENCE = "reference"
    """A maintained implementation of a vendor or a framework, with its recommended settings."""
    TUNED = "tuned"
    """A submission to a competition or a record run: fused kernels, graphs, no padding."""


@dataclass(frozen=True, slots=True)
class Program:
    """The training program; empty fields are unknown.

    ``compiler`` is the compiler that fuses operations.
    """

    tuning: Tuning | None = None
    compiler: str = ""


@dataclass(frozen=True, slots=True)
class Covariates:
    """Levels of all factors for a job; empty if unknown or not applicable.

    ``base`` is the library under a framework (Horovod with MXNet is ``mxnet``), ``kind`` what a
    sample is, ``width`` half or full precision, ``reach`` the family of the slowest link that
    gradients cross (``nvlink``, ``pcie``, ``tcp``, ``rdma``), ``link`` its name, ``intra`` the
    family of the link inside nodes if gradients leave them.
    """

    framework: str = ""
    base: str = ""
    kind: str = ""
    width: str = ""
    compiler: str = ""
    tuning: str = ""
    device: str = ""
    vendor: str = ""
    generation: str = ""
    model: str = ""
    reach: str = ""
    link: str = ""
    intra: str = ""

    def level(self, factor: str) -> str:
        """The level of a factor such as ``device`` or ``base+kind+width``; empty if unknown."""
        parts = [str(getattr(self, name)) for name in factor.split("+")]
        return "" if not parts[0] else "/".join(parts)


def covariates_of(
    workload: Workload, cluster: Cluster, framework: str, program: Program | None = None
) -> Covariates:
    """The covariates of a job."""
    known = program or Program()
    link = _slowest_link(cluster)
    return Covariates(
        framework=framework,
        base=base_of(framework),
        kind=kind_of(workload),
        width=width_of(workload),
        compiler=known.compiler,
        tuning=known.tuning or "",
        device=cluster.device.name,
        vendor=vendor_of(cluster.device),
        generation=generation_of(cluster.device),
        model=workload.graph.name,
        reach=_family(link, cluster) if link else "",
        link=link.name if link else "",
        intra=inner_family(cluster.intra) if cluster.nodes > 1 and cluster.intra else "",
    )


def kind_of(workload: Workload) -> str:
    """The kind of work of a workload, by its inputs and causal attention."""
    graph = workload.graph
    inputs = graph.inputs.values()
    if any(spec.dtype == "float" and len(spec.shape) >= _IMAGE_DIMENSIONS for spec in inputs):
        return IMAGE
    if not any(spec.dtype == "integer" and spec.shape for spec in inputs):
        return OTHER
    return DECODER if _is_causal(graph) else TEXT


@lru_cache(maxsize=64)
def _is_causal(graph: Graph) -> bool:
    """Whether a graph has attention, all of it causal."""
    attention = [node.op for node in graph.nodes if isinstance(node.op, Attention)]
    return bool(attention) and all(op.causal for op in attention)


def width_of(workload: Workload) -> str:
    """The width of a workload's GEMM operands."""
    return HALF if precision(workload.precision).operand_bytes < _FULL_BYTES else FULL


def generation_of(device: Device) -> str:
    """The generation of a device: by year for NVIDIA, otherwise the vendor."""
    vendor = vendor_of(device)
    if device.generation or vendor != _NAMED_BY_YEAR:
        return device.generation or vendor
    year = device.year or 0
    return next(name for since, name in _GENERATIONS if year >= since)


def vendor_of(device: Device) -> str:
    """The vendor of a device; NVIDIA if not given."""
    return device.vendor.lower() or _NAMED_BY_YEAR


def base_of(framework: str) -> str:
    """The base library of a framework by its name; PyTorch by default."""
    for base, marks in _BASES.items():
        if any(mark in framework for mark in marks):
            return base
    return "torch"


def _slowest_link(cluster: Cluster) -> Link | None:
    return cluster.inter if cluster.nodes > 1 else cluster.intra


def _family(link: Link, cluster: Cluster) -> str:
    return outer_family(link) if cluster.nodes > 1 else inner_family(link)
