"""Shapes of values and parameters of an image network, from its graph's JSON alone.

Shapes are of one sample, channels first; parameters are in PyTorch's layout, which `synthetic`
defines initial weights in. Standard library only.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

Shape = tuple[int, ...]
LOSSES = ("cross_entropy",)


def value_shapes(graph: Mapping[str, Any]) -> dict[str, Shape]:
    """Shape of every input and of every node but the loss."""
    shapes: dict[str, Shape] = {
        name: tuple(spec["shape"]) for name, spec in graph["inputs"].items()
    }
    for node in graph["nodes"]:
        if node["op"] in LOSSES:
            continue
        if node["op"] not in OUTPUTS:
            raise ValueError(f"node '{node['name']}': no operation '{node['op']}' in this worker")
        if node.get("shares_weights_with"):
            raise ValueError(f"node '{node['name']}' shares weights, which this worker cannot")
        shapes[node["name"]] = OUTPUTS[node["op"]](node, [shapes[name] for name in node["inputs"]])
    return shapes


def parameter_shapes(graph: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str, Shape]]:
    """Node, parameter's name within it, and shape, of all that is trained, in order."""
    shapes = value_shapes(graph)
    found = []
    for node in graph["nodes"]:
        if node["op"] in WEIGHTED:
            for name, shape in WEIGHTED[node["op"]](node, shapes[node["inputs"][0]]).items():
                found.append((node, name, shape))
    return found


def normalised_channels(graph: Mapping[str, Any]) -> dict[str, int]:
    """Channels of each batch normalisation, which keeps running statistics of them."""
    shapes = value_shapes(graph)
    return {
        node["name"]: shapes[node["inputs"][0]][0]
        for node in graph["nodes"]
        if node["op"] == "batch_norm"
    }


def _same(_: Mapping[str, Any], inputs: list[Shape]) -> Shape:
    return inputs[0]


def _conv(node: Mapping[str, Any], inputs: list[Shape]) -> Shape:
    if node.get("transposed") or len(node["kernel"]) != 2:
        raise ValueError(f"node '{node['name']}': only plain two-dimensional convolutions here")
    sides = zip(
        inputs[0][1:],
        node["kernel"],
        node["stride"],
        node["padding"],
        node["dilation"],
        strict=True,
    )
    return (
        node["out_channels"],
        *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sides),
    )


def _pool(node: Mapping[str, Any], inputs: list[Shape]) -> Shape:
    if node.get("ceil") or len(node["kernel"]) != 2:
        raise ValueError(f"node '{node['name']}': only pooling in 2 dimensions, rounded down, here")
    sides = zip(inputs[0][1:], node["kernel"], node["stride"], node["padding"], strict=True)
    return (inputs[0][0], *((n + 2 * p - k) // s + 1 for n, k, s, p in sides))


def _concat(node: Mapping[str, Any], inputs: list[Shape]) -> Shape:
    if node.get("axis", 0) != 0:
        raise ValueError(f"node '{node['name']}': only channels are joined here")
    return (sum(shape[0] for shape in inputs), *inputs[0][1:])


def _pad_shortcut(node: Mapping[str, Any], inputs: list[Shape]) -> Shape:
    return (node["out_channels"], *(-(-n // node["stride"]) for n in inputs[0][1:]))


OUTPUTS: dict[str, Callable[[Mapping[str, Any], list[Shape]], Shape]] = {
    "activation": _same,
    "add": _same,
    "avg_pool": _pool,
    "batch_norm": _same,
    "concat": _concat,
    "conv": _conv,
    "dropout": _same,
    "flatten": lambda _, inputs: (math.prod(inputs[0]),),
    "global_avg_pool": lambda _, inputs: inputs[0][:1],
    "linear": lambda node, inputs: (*inputs[0][:-1], node["out_features"]),
    "max_pool": _pool,
    "pad_shortcut": _pad_shortcut,
}
"""Shape of the result of each operation of an image network."""


def _conv_weights(node: Mapping[str, Any], shape: Shape) -> dict[str, Shape]:
    weight = (node["out_channels"], shape[0] // node["groups"], *node["kernel"])
    return {"weight": weight, **_bias(node, node["out_channels"])}


def _linear_weights(node: Mapping[str, Any], shape: Shape) -> dict[str, Shape]:
    return {
        "weight": (node["out_features"], shape[-1]),
        **_bias(node, node["out_features"]),
    }


def _bias(node: Mapping[str, Any], width: int) -> dict[str, Shape]:
    return {"bias": (width,)} if node["bias"] else {}


WEIGHTED: dict[str, Callable[[Mapping[str, Any], Shape], dict[str, Shape]]] = {
    "batch_norm": lambda _, shape: {"weight": shape[:1], "bias": shape[:1]},
    "conv": _conv_weights,
    "linear": _linear_weights,
}
"""Parameters of each operation that has some, given the shape it reads."""
