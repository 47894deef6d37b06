"""Under which circumstances something runs, by the names that fitted effects go by."""

from dataclasses import dataclass, fields

from paceline.workload.precision import precision
from paceline.workload.workload import Workload

IMAGE, TEXT, OTHER = "image", "text", "other"
"""Kinds of samples."""

HALF, FULL = "half", "full"
"""Widths of the numbers that products are computed with."""

_IMAGE_DIMENSIONS = 3
_FULL_BYTES = 4

_BASES = {
    "mxnet": ("mxnet",),
    "tensorflow": ("tensorflow", "tf-", "keras", "tarantella"),
    "oneflow": ("oneflow",),
    "megatron": ("megatron",),
    "paddle": ("paddle",),
    "jax": ("jax",),
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Names of what an effect may depend on; empty where it is not known.

    ``base`` is the library under a framework (Horovod with MXNet is ``mxnet``), ``kind`` what a
    sample is (image, text, other), ``width`` half or full precision, ``compiler`` how operations
    are fused where it is said. ``program`` and ``script`` name one published training program
    (the first with its network and sequence length), ``site`` one machine, ``kernel`` one shape
    of work of one program, ``link`` the slowest link that gradients cross.
    """

    framework: str = ""
    base: str = ""
    kind: str = ""
    width: str = ""
    compiler: str = ""
    device: str = ""
    model: str = ""
    link: str = ""
    script: str = ""
    program: str = ""
    site: str = ""
    kernel: str = ""

    def level(self, factor: str) -> str:
        """The level of a factor such as ``device`` or ``base+kind+width``; empty if unknown."""
        parts = [str(getattr(self, name)) for name in factor.split("+")]
        return "" if not parts[0] else "/".join(parts)


FACTORS = frozenset(field.name for field in fields(Circumstances))


def kind_of(workload: Workload) -> str:
    """What a sample of a workload is, by what it reads."""
    inputs = workload.graph.inputs.values()
    if any(spec.dtype == "float" and len(spec.shape) >= _IMAGE_DIMENSIONS for spec in inputs):
        return IMAGE
    return TEXT if any(spec.dtype == "integer" and spec.shape for spec in inputs) else OTHER


def width_of(workload: Workload) -> str:
    """The width of the numbers that a workload's products read."""
    return HALF if precision(workload.precision).operand_bytes < _FULL_BYTES else FULL


def base_of(framework: str) -> str:
    """The library that a framework's profile stands on; PyTorch unless its name says another."""
    for base, marks in _BASES.items():
        if any(mark in framework for mark in marks):
            return base
    return "torch"
