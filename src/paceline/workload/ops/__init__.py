"""The vocabulary of layer graphs: one frozen dataclass per kind of operation."""

from paceline.workload.ops.base import OPS, Kept, Op, Traffic, Work, register
from paceline.workload.ops.convolution import Convolution
from paceline.workload.ops.dense import Embedding, Linear, PositionEmbedding
from paceline.workload.ops.losses import CrossEntropy, WeightedSum
from paceline.workload.ops.norms import (
    BatchNorm,
    GroupNorm,
    LayerNorm,
    LocalResponseNorm,
    RmsNorm,
)
from paceline.workload.ops.pointwise import Activation, Add, Dropout, Multiply
from paceline.workload.ops.pooling import AveragePool, GlobalAveragePool, MaxPool
from paceline.workload.ops.shaping import (
    Concatenate,
    Flatten,
    PadShortcut,
    Reshape,
    Slice,
    Transpose,
)

__all__ = [
    "OPS",
    "Activation",
    "Add",
    "AveragePool",
    "BatchNorm",
    "Concatenate",
    "Convolution",
    "CrossEntropy",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAveragePool",
    "GroupNorm",
    "Kept",
    "LayerNorm",
    "Linear",
    "LocalResponseNorm",
    "MaxPool",
    "Multiply",
    "Op",
    "PadShortcut",
    "PositionEmbedding",
    "Reshape",
    "RmsNorm",
    "Slice",
    "Traffic",
    "Transpose",
    "WeightedSum",
    "Work",
    "register",
]
