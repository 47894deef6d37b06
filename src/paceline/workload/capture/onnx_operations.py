"""GEMMs, memory traffic and saved tensors of ONNX operations, from the shapes of their tensors.

Needs no onnx: shapes and attributes are plain values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from paceline.errors import InputError
from paceline.workload.capture.gemms import CapturedGemm

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OnnxProducts:
    """GEMMs of an operation; the weight, if any, is the first or the second factor."""

    products: list[CapturedGemm]
    weight_is_first: bool = False

    def gradients(self, has_weight: bool) -> tuple[list[CapturedGemm], list[CapturedGemm]]:
        """GEMMs of the input gradient and of the weight gradient.

        Without a weight both factors are inputs.
        """
        of_first = [CapturedGemm(p.m, p.k, p.n, p.count) for p in self.products]
        of_second = [CapturedGemm(p.k, p.n, p.m, p.count) for p in self.products]
        if not has_weight:
            return of_first + of_second, []
        return (of_second, of_first) if self.weight_is_first else (of_first, of_second)


Formula: TypeAlias = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, Any]], OnnxProducts]


def products_of(
    operation: str,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> OnnxProducts | None:
    """GEMMs of an operation; None if it has no known ones."""
    formula = _FORMULAS.get(operation)
    return None if formula is None else formula(inputs, outputs, attributes)


def _conv(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    weight, output, groups = inputs[1], outputs[0], int(attributes.get("group", 1))
    if inputs[0][1] != weight[1] * groups:
        raise InputError(
            f"the input has {inputs[0][1]} channels, the filters have {weight[1] * groups}",
            "check the shapes given with --input",
        )
    positions = output[0] * math.prod(output[2:])
    depth = math.prod(weight[1:])
    return OnnxProducts([CapturedGemm(weight[0] // groups, positions, depth, groups)], True)


def _conv_transposed(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    images, weight, groups = inputs[0], inputs[1], int(attributes.get("group", 1))
    positions = images[0] * math.prod(images[2:])
    rows = math.prod(weight[1:])
    return OnnxProducts([CapturedGemm(rows, positions, weight[0] // groups, groups)], True)


def _gemm(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    first = inputs[0][::-1] if attributes.get("transA") else inputs[0]
    second = inputs[1][::-1] if attributes.get("transB") else inputs[1]
    return OnnxProducts([CapturedGemm(first[0], second[1], first[1])])


def _matmul(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    first, second = inputs[0], inputs[1]
    if len(second) <= 2:
        columns = second[1] if len(second) == 2 else 1
        return OnnxProducts([CapturedGemm(math.prod(first[:-1]), columns, first[-1])])
    rows = first[-2] if len(first) > 1 else 1
    count = math.prod(outputs[0]) // (rows * second[-1])
    return OnnxProducts([CapturedGemm(rows, second[-1], first[-1], count)])


def _attention(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    query, key, value = inputs[:3]
    if len(query) == 3:
        heads, kv_heads = int(attributes["q_num_heads"]), int(attributes["kv_num_heads"])
        query = (query[0], heads, query[1], query[2] // heads)
        key = (key[0], kv_heads, key[1], key[2] // kv_heads)
        value = (value[0], kv_heads, value[1], value[2] // kv_heads)
    count = query[0] * query[1]
    return OnnxProducts(
        [
            CapturedGemm(query[2], key[2], query[3], count),
            CapturedGemm(query[2], value[3], key[2], count),
        ]
    )


def _recurrent(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> OnnxProducts:
    (tokens, batch, features), (ways, rows, _), (_, _, hidden) = inputs[0], inputs[1], inputs[2]
    return OnnxProducts(
        [
            CapturedGemm(rows, tokens * batch, features, ways),
            CapturedGemm(rows, batch, hidden, ways * tokens),
        ],
        True,
    )


_FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "Conv": _conv,
        "ConvTranspose": _conv_transposed,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Attention": _attention,
        "LSTM": _recurrent,
        "GRU": _recurrent,
        "RNN": _recurrent,
    }
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _names("Reshape Flatten Squeeze Unsqueeze Identity Shape Size Constant ConstantOfShape")
"""Operations that move no data."""

GATHERS = _names("Gather GatherND GatherElements")
"""Operations that read as much of their table as they write."""

NOT_TRAINED = MappingProxyType(
    {"BatchNormalization": (3, 4), "InstanceNormalization": (), "Clip": (1, 2), "Pad": (2,)}
)
"""Positions of constant inputs that hold statistics or limits, not weights."""

KEEPS_OUTPUT = _names("Relu Sigmoid Tanh Softmax LogSoftmax Exp Sqrt Reciprocal HardSigmoid Elu")
"""Operations whose gradient is computed from their result."""

KEEPS_INPUTS = (
    _names(
        "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization "
        "RMSNormalization SimplifiedLayerNormalization LpNormalization LRN Mul Div Pow Erf Gelu "
        "HardSwish LeakyRelu PRelu Selu Softplus Mish Abs Log Sin Cos Clip Max Min MaxPool "
        "AveragePool Where"
    )
    | _FORMULAS.keys()
)
"""Operations whose gradient is computed from their inputs."""

KEEPS_POSITIONS = _names("MaxPool")
"""Operations that also save the index of each result, in 8 bytes."""

_BYTES_ONLY = (
    KEEPS_OUTPUT
    | KEEPS_INPUTS
    | GATHERS
    | VIEWS
    | _names(
        "Add Sub Sum Mean Neg Not And Or Equal Greater GreaterOrEqual Less LessOrEqual Sign Floor "
        "Ceil Round Cast CastLike Concat Split Slice Transpose Expand Tile Pad Resize Upsample "
        "DepthToSpace SpaceToDepth GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum ReduceMax "
        "ReduceMin ReduceL2 ReduceL1 ReduceProd ReduceSumSquare ReduceLogSumExp ArgMax ArgMin "
        "TopK Range OneHot ScatterND ScatterElements Trilu CumSum Dropout RandomNormalLike "
        "RandomUniformLike NonZero IsNaN IsInf RotaryEmbedding SoftmaxCrossEntropyLoss "
        "NegativeLogLikelihoodLoss"
    )
)


def is_understood(operation: str) -> bool:
    """Whether GEMMs and bytes determine an operation's cost."""
    return operation in _BYTES_ONLY


_KINDS = MappingProxyType(
    {
        "Conv": "conv",
        "ConvTranspose": "conv",
        "Gemm": "linear",
        "MatMul": "linear",
        "Attention": "attention",
        "LSTM": "lstm",
        "BatchNormalization": "batch_norm",
        "LayerNormalization": "layer_norm",
        "GroupNormalization": "group_norm",
        "RMSNormalization": "rms_norm",
        "MaxPool": "max_pool",
        "AveragePool": "avg_pool",
        "GlobalAveragePool": "global_avg_pool",
        "Add": "add",
        "Mul": "multiply",
        "Concat": "concat",
        "Gather": "embedding",
        "Dropout": "dropout",
        "Relu": "activation",
        "Gelu": "activation",
        "Sigmoid": "activation",
        "Tanh": "activation",
        "Softmax": "activation",
        "Clip": "activation",
        "HardSwish": "activation",
        "LeakyRelu": "activation",
    }
)


def kind_of(operation: str, has_weight: bool) -> str:
    """The kind of operation with the same cost model; ``recorded`` if there is none."""
    if operation == "MatMul" and not has_weight:
        return "attention"
    return _KINDS.get(operation, "recorded")
