"""Runs the nodes of an image network with one framework's functions; standard library only."""

from collections.abc import Callable, Mapping
from typing import Any

NORM_EPSILON = 1e-5
NORM_NEW_SHARE = 0.1
"""PyTorch's settings of batch normalisation: what is added to the variance, and how much of a
batch's statistics goes into the running ones."""

Operation = Callable[..., Any]
"""Called with the node, the values it reads, and its parameters by their short names."""


def run_graph(
    graph: Mapping[str, Any],
    operations: Mapping[str, Operation],
    parameters: Mapping[str, Any],
    inputs: Mapping[str, Any],
) -> Any:
    """The loss of a batch: every node in order, by the framework's function for its operation.

    ``parameters`` are named ``<node>.<parameter>``; each function gets those of its node.
    """
    values = dict(inputs)
    own: dict[str, dict[str, Any]] = {}
    for name, value in parameters.items():
        node, _, short = name.rpartition(".")
        own.setdefault(node, {})[short] = value
    for node in graph["nodes"]:
        read = [values[name] for name in node["inputs"]]
        values[node["name"]] = operations[node["op"]](node, read, own.get(node["name"], {}))
    return values[graph["output"]]
