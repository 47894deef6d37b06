"""The transformer builder: one `TransformerShape` per architecture, by name or config.json."""

from paceline.workload.zoo.transformers.shape import (
    Experts,
    LatentAttention,
    LayerKind,
    LinearAttention,
    StateSpace,
    TransformerShape,
)
from paceline.workload.zoo.transformers.stack import stack, transformer

__all__ = [
    "Experts",
    "LatentAttention",
    "LayerKind",
    "LinearAttention",
    "StateSpace",
    "TransformerShape",
    "stack",
    "transformer",
]
