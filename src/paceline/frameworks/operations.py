"""Operations, and variants of them, that workers can build."""

from collections.abc import Container, Mapping
from typing import Any

COMMON_OPERATIONS = frozenset(
    {
        *("conv", "linear", "embedding", "lstm", "attention"),
        *("batch_norm", "layer_norm", "rms_norm", "local_response_norm", "dropout"),
        *("activation", "add", "multiply", "max_pool", "avg_pool", "global_avg_pool"),
        *("concat", "flatten", "slice", "transpose", "pad_shortcut"),
        *("position_embedding", "class_token", "rotary"),
        *("cross_entropy", "elementwise_loss", "weighted_sum"),
    }
)
"""Operations of every worker; PyTorch's workers have all operations."""

COMMON_ACTIVATIONS = frozenset({"relu", "relu6", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu"})


def ends_in_loss(graph: Mapping[str, Any]) -> bool:
    """Return whether the output of a graph (its JSON form) is a loss."""
    from paceline.frameworks.runtime.layer_graph import LOSSES

    kinds = {node["name"]: node["op"] for node in graph["nodes"]}
    return kinds[graph["output"]] in LOSSES


def missing_operations(graph: Mapping[str, Any], operations: Container[str]) -> list[str]:
    """Return the operations of a graph (its JSON form) that are not in ``operations``.

    Only common variants of some operations count: 2D convolutions and pools, not both
    strided and dilated; response norms over an odd number of channels; activations that all
    frameworks have; LSTMs with zero initial state; attention without window, sinks, relative
    positions or another value width; trained weights; dense gradients.
    """
    return sorted(
        {
            node["op"]
            for node in graph["nodes"]
            if node["op"] not in operations or not _has_common_form(node)
        }
    )


def _has_common_form(node: Mapping[str, Any]) -> bool:
    if node.get("frozen") or node.get("sparse"):
        return False
    if len(node.get("kernel", (1, 1))) != 2 or node.get("transposed"):
        return False
    if node.get("ceil") and (node["op"] != "max_pool" or any(node["padding"])):
        return False
    if max(node.get("dilation", (1,))) > 1 and max(node["stride"]) > 1:
        return False
    if node["op"] == "local_response_norm":
        return bool(node["size"] % 2)
    if node["op"] == "attention":
        return not any(
            node.get(name) for name in ("window", "sinks", "relative_buckets", "value_dim")
        )
    if node["op"] == "lstm":
        return len(node["inputs"]) == 1
    if node["op"] == "activation":
        return node["function"] in COMMON_ACTIVATIONS
    return bool(node.get("function", "binary_cross_entropy") == "binary_cross_entropy")
