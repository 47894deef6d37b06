"""Training precisions: bytes of weights, activations and gradients."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from paceline.naming import look_up


@dataclass(frozen=True, slots=True)
class Precision:
    """A training precision as bytes per element.

    ``compute`` is the arithmetic of GEMMs (the key of a device's peak rates). ``weight_bytes`` is
    the stored parameter, ``operand_bytes`` the copy that a GEMM reads, ``activation_bytes`` a
    value between layers, ``gradient_bytes`` a parameter gradient as workers exchange it. If only
    linear layers run in ``compute``, with operands converted on the fly, ``other_compute`` is the
    arithmetic of all other GEMMs (attention, the output layer); empty if all use ``compute``.
    ``saved_operand_bytes`` is an input that a linear layer saves for its weight gradient, None if
    it saves the tensor between layers itself. ``other_share`` is the share of linear layers that
    recipes leave in ``other_compute``.
    """

    name: str
    compute: str
    weight_bytes: int
    operand_bytes: float
    activation_bytes: int
    gradient_bytes: int
    other_compute: str = ""
    saved_operand_bytes: float | None = None
    other_share: float = 0.0


_ALL = (
    Precision("fp32", "fp32", 4, 4, 4, 4),
    Precision("tf32", "tf32", 4, 4, 4, 4),
    # torch.autocast: parameters and their gradients stay in 32 bits, GEMMs and activations do not.
    Precision("amp_fp16", "fp16", 4, 2, 2, 4),
    Precision("amp_bf16", "bf16", 4, 2, 2, 4),
    # Half-precision model; 32-bit master weights, if any, are optimizer state.
    Precision("fp16", "fp16", 2, 2, 2, 2),
    Precision("bf16", "bf16", 2, 2, 2, 2),
    # GEMMs of linear layers in 8 or 4 bits, tensors between them in bf16. Microscaling formats have
    # one byte of scale per 32 elements (OCP MX specification: mxfp8, mxfp4) or per 16 (nvfp4).
    Precision("fp8", "fp8", 2, 1, 2, 2, "bf16"),
    Precision("mxfp8", "fp8", 2, 1 + 1 / 32, 2, 2, "bf16"),
    # Recipes for four bits leave none (bf16_with_nvfp4_mixed of Megatron Bridge) to 15 % of the
    # blocks in bf16 (arXiv 2509.25149): the share is a judgement.
    Precision("mxfp4", "fp4", 2, 0.5 + 1 / 32, 2, 2, "bf16", other_share=0.05),
    Precision("nvfp4", "fp4", 2, 0.5 + 1 / 16, 2, 2, "bf16", other_share=0.05),
)

PRECISIONS: Mapping[str, Precision] = MappingProxyType({p.name: p for p in _ALL})
"""Every precision by name."""

_SPELLINGS = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "amp": "amp_fp16",
    "mixed": "amp_fp16",
    "float8": "fp8",
    "fp4": "nvfp4",
}


def precision(name: str | Precision) -> Precision:
    """Look up a precision by name (``fp32``, ``amp_fp16``, ``bf16``, ... or ``float32``)."""
    if isinstance(name, Precision):
        return name
    key = name.strip().lower().replace("-", "_")
    choices = ", ".join(PRECISIONS)
    return look_up("precision", _SPELLINGS.get(key, key), PRECISIONS, f"one of {choices}")
