"""Operations of layer graphs: one frozen dataclass per kind.

Modules of operations are imported on first use: 59 dataclasses take 30 ms, one network needs a
dozen of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from paceline.workload.ops.base import Op, operation
from paceline.workload.ops.work import Kept, Traffic, Work

if TYPE_CHECKING:
    from paceline.workload.ops.adaptive import AdaptiveCrossEntropy, AdaptiveEmbedding
    from paceline.workload.ops.attention import (
        AdditiveAttention,
        Attention,
        RelativeAttention,
        Rotary,
    )
    from paceline.workload.ops.base import OPS
    from paceline.workload.ops.convolution import Convolution
    from paceline.workload.ops.dense import (
        ClassToken,
        DotInteraction,
        Embedding,
        Linear,
        MatrixProduct,
        PositionEmbedding,
    )
    from paceline.workload.ops.experts import MixtureOfExperts
    from paceline.workload.ops.losses import (
        CrossEntropy,
        CtcLoss,
        ElementwiseLoss,
        FocalLoss,
        WeightedSum,
    )
    from paceline.workload.ops.norms import (
        BatchNorm,
        FrozenBatchNorm,
        GroupNorm,
        LayerNorm,
        LocalResponseNorm,
        RmsNorm,
    )
    from paceline.workload.ops.pointwise import (
        Activation,
        Add,
        AddPerChannel,
        Dropout,
        FusedSum,
        Multiply,
        Prelu,
    )
    from paceline.workload.ops.pooling import AveragePool, GlobalAveragePool, MaxPool
    from paceline.workload.ops.recorded import Recorded, RecordedTensor, UnknownOperation
    from paceline.workload.ops.recurrent import Lstm
    from paceline.workload.ops.resampling import RoiAlign, Upsample
    from paceline.workload.ops.shaping import (
        Concatenate,
        Expand,
        Flatten,
        PadShortcut,
        Reshape,
        Slice,
        Transpose,
    )
    from paceline.workload.ops.state_space import CausalConvolution, SelectiveScan, StateSpaceDual

_HOMES = {
    "adaptive": "AdaptiveCrossEntropy AdaptiveEmbedding",
    "attention": "AdditiveAttention Attention RelativeAttention Rotary",
    "convolution": "Convolution",
    "dense": "ClassToken DotInteraction Embedding Linear MatrixProduct PositionEmbedding",
    "experts": "MixtureOfExperts",
    "losses": "CrossEntropy CtcLoss ElementwiseLoss FocalLoss WeightedSum",
    "norms": "BatchNorm FrozenBatchNorm GroupNorm LayerNorm LocalResponseNorm RmsNorm",
    "pointwise": "Activation Add AddPerChannel Dropout FusedSum Multiply Prelu",
    "pooling": "AveragePool GlobalAveragePool MaxPool",
    "recorded": "Recorded RecordedTensor UnknownOperation",
    "recurrent": "Lstm",
    "resampling": "RoiAlign Upsample",
    "shaping": "Concatenate Expand Flatten PadShortcut Reshape Slice Transpose",
    "state_space": "CausalConvolution SelectiveScan StateSpaceDual",
}
_LAZY = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "OPS",
    "Activation",
    "AdaptiveCrossEntropy",
    "AdaptiveEmbedding",
    "Add",
    "AddPerChannel",
    "AdditiveAttention",
    "Attention",
    "AveragePool",
    "BatchNorm",
    "CausalConvolution",
    "ClassToken",
    "Concatenate",
    "Convolution",
    "CrossEntropy",
    "CtcLoss",
    "DotInteraction",
    "Dropout",
    "ElementwiseLoss",
    "Embedding",
    "Expand",
    "Flatten",
    "FocalLoss",
    "FrozenBatchNorm",
    "FusedSum",
    "GlobalAveragePool",
    "GroupNorm",
    "Kept",
    "LayerNorm",
    "Linear",
    "LocalResponseNorm",
    "Lstm",
    "MatrixProduct",
    "MaxPool",
    "MixtureOfExperts",
    "Multiply",
    "Op",
    "PadShortcut",
    "PositionEmbedding",
    "Prelu",
    "Recorded",
    "RecordedTensor",
    "RelativeAttention",
    "Reshape",
    "RmsNorm",
    "RoiAlign",
    "Rotary",
    "SelectiveScan",
    "Slice",
    "StateSpaceDual",
    "Traffic",
    "Transpose",
    "UnknownOperation",
    "Upsample",
    "WeightedSum",
    "Work",
    "operation",
]


def __getattr__(name: str) -> Any:
    if name == "OPS":
        return _all_operations()
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = found
    return found


def _all_operations() -> dict[str, type[Op]]:
    """Every operation by its kind; a module registers its operations when it is imported."""
    for module in _HOMES:
        importlib.import_module(f"{__name__}.{module}")
    from paceline.workload.ops.base import OPS

    return OPS
