"""Operations of layer graphs: one frozen dataclass per kind."""

from paceline.workload.ops.adaptive import AdaptiveCrossEntropy, AdaptiveEmbedding
from paceline.workload.ops.attention import AdditiveAttention, Attention, RelativeAttention, Rotary
from paceline.workload.ops.base import OPS, Op, operation
from paceline.workload.ops.convolution import Convolution
from paceline.workload.ops.dense import ClassToken, Embedding, Linear, PositionEmbedding
from paceline.workload.ops.experts import MixtureOfExperts
from paceline.workload.ops.losses import (
    CrossEntropy,
    CtcLoss,
    ElementwiseLoss,
    FocalLoss,
    WeightedSum,
)
from paceline.workload.ops.matrix_product import DotInteraction, MatrixProduct
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
from paceline.workload.ops.work import Kept, Traffic, Work

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
