"""The norm of an architecture, of whole tokens and of heads."""

from paceline.workload import ops
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape


def norm(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    """Layer norm or root mean square, as the architecture has it."""
    if shape.norm == "rms":
        return net.add_node(name, ops.RmsNorm(), x)
    return net.layer_norm(name, x, shape.norm_bias)


def norm_of_heads(
    net: NetworkBuilder, name: str, x: str, width: int, shape: TransformerShape
) -> str:
    """Queries or keys normalised: over their whole width, or each head with one common scale."""
    if shape.norm_of_heads == "no":
        return x
    if shape.norm_of_heads == "whole":
        return norm(net, name, x, shape)
    apart = net.reshape(f"{name}_heads", x, -1, shape.head_dim)
    y = norm(net, name, apart, shape)
    return net.reshape(f"{name}_joined", y, -1, width)
