"""Normalisation of tokens and of heads, and dropout."""

from paceline.workload import ops
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape


def norm(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    if shape.norm == "rms":
        return net.add_node(name, ops.RmsNorm(), x)
    return net.layer_norm(name, x, shape.norm_bias)


def norm_of_heads(
    net: NetworkBuilder, name: str, x: str, width: int, shape: TransformerShape
) -> str:
    """Add a norm of queries or keys: over their whole width, or per head with one scale."""
    if shape.norm_of_heads == "no":
        return x
    if shape.norm_of_heads == "whole":
        return norm(net, name, x, shape)
    apart = net.reshape(f"{name}_heads", x, -1, shape.head_dim)
    y = norm(net, name, apart, shape)
    return net.reshape(f"{name}_joined", y, -1, width)


def dropout(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    """Add dropout where the architecture is trained with it."""
    return net.dropout(name, x, shape.dropout) if shape.dropout else x
