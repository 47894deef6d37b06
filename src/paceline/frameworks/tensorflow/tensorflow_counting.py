"""FLOPs of a TensorFlow graph: its convolutions and GEMMs."""

import math
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import get_stats_for_node_def

PRODUCTS = ("BatchMatMulV2", "BatchMatMulV3", "Conv2D", "DepthwiseConv2dNative", "MatMul")
"""Operations whose FLOPs TensorFlow counts, by its names."""

LOOPS = ("StatelessWhile", "While")


def product_flops(graph: Any) -> float:
    """FLOPs (2 per multiply-add) of a graph; the body of a loop counts once per iteration."""
    return float(sum(_flops(graph, operation) for operation in graph.get_operations()))


def _flops(graph: Any, operation: Any) -> float:
    if operation.type in PRODUCTS:
        return float(get_stats_for_node_def(graph, operation.node_def, "flops").value)
    if operation.type == "Einsum":
        return _einsum_flops(operation)
    if operation.type in LOOPS:
        rounds = tf.get_static_value(operation.inputs[1])  # its counter, its limit, its values
        return float(rounds) * product_flops(operation._body_graph)
    return 0.0


def _einsum_flops(operation: Any) -> float:
    """One multiply-add for every combination of its indices."""
    terms = operation.get_attr("equation").decode().split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, value in zip(terms, operation.inputs, strict=True):
        sizes |= zip(term, value.shape, strict=True)
    return 2.0 * math.prod(sizes.values())
