"""Shapes of values and parameters of a network, from its graph's JSON alone.

Shapes are of one sample, channels first; parameters are in PyTorch's layout, which `synthetic`
defines initial weights in. Standard library only.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

Node = Mapping[str, Any]
Shape = tuple[int, ...]

LOSSES = frozenset({"cross_entropy", "ctc_loss", "elementwise_loss", "focal_loss", "weighted_sum"})
"""Operations that belong to the loss, not to the network: they have no weights."""

ANY_SEQUENCE = 8
"""Tokens where no length is given and none matters: no parameter's shape depends on it."""

LSTM_GATES = 4


def value_shapes(graph: Mapping[str, Any], sequence: "int | None" = None) -> dict[str, Shape]:
    """Shape of every input and of every node but those of the loss, at a length of sequences."""
    length = sequence or graph.get("sequence") or ANY_SEQUENCE
    shapes: dict[str, Shape] = {
        name: input_shape(spec, length) for name, spec in graph["inputs"].items()
    }
    for node in graph["nodes"]:
        if node["op"] in LOSSES:
            continue
        if node.get("frozen"):
            raise ValueError(f"node '{node['name']}': frozen weights are not in this worker")
        if node["op"] not in OUTPUTS:
            raise ValueError(f"node '{node['name']}': no operation '{node['op']}' in this worker")
        shapes[node["name"]] = OUTPUTS[node["op"]](node, [shapes[name] for name in node["inputs"]])
    return shapes


def input_shape(spec: Mapping[str, Any], sequence: "int | None") -> Shape:
    """Shape of one sample of an input, at a length of sequences."""
    sizes: list[Any] = [sequence if size == "sequence" else size for size in spec["shape"]]
    return tuple(sizes)


def node_parameters(graph: Mapping[str, Any]) -> dict[str, dict[str, Shape]]:
    """Shape of every parameter that a node reads, its own or another's, by its name there."""
    shapes = value_shapes(graph)
    return {
        node["name"]: WEIGHTED[node["op"]](node, shapes[node["inputs"][0]])
        for node in graph["nodes"]
        if node["op"] in WEIGHTED
    }


def parameter_owners(graph: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Node that owns every parameter that a node reads: itself, or one it shares weights with.

    What is shared are the parameters of the same name and shape.
    """
    shapes = node_parameters(graph)
    owners: dict[str, dict[str, str]] = {}
    for node in graph["nodes"]:
        name, other = node["name"], node.get("shares_weights_with")
        if name not in shapes:
            continue
        owners[name] = {
            short: owners[other][short] if other and shapes[other].get(short) == shape else name
            for short, shape in shapes[name].items()
        }
    return owners


def parameter_shapes(graph: Mapping[str, Any]) -> list[tuple[Node, str, Shape]]:
    """Node, parameter's name within it, and shape, of all that is trained, in order."""
    shapes, owners = node_parameters(graph), parameter_owners(graph)
    return [
        (node, short, shape)
        for node in graph["nodes"]
        for short, shape in shapes.get(node["name"], {}).items()
        if owners[node["name"]][short] == node["name"]
    ]


def normalised_channels(graph: Mapping[str, Any]) -> dict[str, int]:
    """Channels of each batch normalisation, which keeps running statistics of them."""
    shapes = value_shapes(graph)
    return {
        node["name"]: shapes[node["inputs"][0]][0]
        for node in graph["nodes"]
        if node["op"] == "batch_norm"
    }


def beyond_end(node: Node, shape: Shape) -> list[int]:
    """Positions that the last window of a pool reaches beyond the padding, in each dimension."""
    return [
        max(0, (count - 1) * s + k - (n + 2 * p))
        for count, n, k, s, p in zip(
            _pool(node, [shape])[1:],
            shape[1:],
            node["kernel"],
            node["stride"],
            node["padding"],
            strict=True,
        )
    ]


def _same(_: Node, inputs: list[Shape]) -> Shape:
    return inputs[0]


def _conv(node: Node, inputs: list[Shape]) -> Shape:
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


def _pool(node: Node, inputs: list[Shape]) -> Shape:
    if len(node["kernel"]) != 2:
        raise ValueError(f"node '{node['name']}': only pooling in 2 dimensions here")
    sides = zip(inputs[0][1:], node["kernel"], node["stride"], node["padding"], strict=True)
    return (inputs[0][0], *(_windows(n, k, s, p, node.get("ceil", False)) for n, k, s, p in sides))


def _windows(size: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    span = size + 2 * padding - kernel
    count = (-(-span // stride) if ceil else span // stride) + 1
    starts_beyond = ceil and (count - 1) * stride >= size + padding
    return count - 1 if starts_beyond else count


def _concat(node: Node, inputs: list[Shape]) -> Shape:
    axis = node.get("axis", 0) % len(inputs[0])
    joined = sum(shape[axis] for shape in inputs)
    return (*inputs[0][:axis], joined, *inputs[0][axis + 1 :])


def _pad_shortcut(node: Node, inputs: list[Shape]) -> Shape:
    return (node["out_channels"], *(-(-n // node["stride"]) for n in inputs[0][1:]))


def _flatten(node: Node, inputs: list[Shape]) -> Shape:
    start = node.get("start_axis", 0)
    return (*inputs[0][:start], math.prod(inputs[0][start:]))


def _slice(node: Node, inputs: list[Shape]) -> Shape:
    axis = node["axis"] % len(inputs[0])
    return (*inputs[0][:axis], node["stop"] - node["start"], *inputs[0][axis + 1 :])


def _attention(node: Node, inputs: list[Shape]) -> Shape:
    return (inputs[0][0], node["heads"] * node["head_dim"])


def _lstm(node: Node, inputs: list[Shape]) -> Shape:
    return (inputs[0][0], node["hidden"] * (2 if node["bidirectional"] else 1))


OUTPUTS: dict[str, Callable[[Node, list[Shape]], Shape]] = {
    "activation": _same,
    "add": _same,
    "attention": _attention,
    "avg_pool": _pool,
    "batch_norm": _same,
    "class_token": lambda _, inputs: (inputs[0][0] + 1, inputs[0][1]),
    "concat": _concat,
    "conv": _conv,
    "dropout": _same,
    "embedding": lambda node, inputs: (*inputs[0], node["width"]),
    "flatten": _flatten,
    "global_avg_pool": lambda _, inputs: inputs[0][:1],
    "layer_norm": _same,
    "linear": lambda node, inputs: (*inputs[0][:-1], node["out_features"]),
    "local_response_norm": _same,
    "lstm": _lstm,
    "max_pool": _pool,
    "multiply": _same,
    "pad_shortcut": _pad_shortcut,
    "position_embedding": _same,
    "rms_norm": _same,
    "rotary": _same,
    "slice": _slice,
    "transpose": lambda node, inputs: tuple(inputs[0][axis] for axis in node["axes"]),
}
"""Shape of the result of each operation that workers of NumPy's shapes know."""


def _conv_weights(node: Node, shape: Shape) -> dict[str, Shape]:
    weight = (node["out_channels"], shape[0] // node["groups"], *node["kernel"])
    return {"weight": weight, **_bias(node, node["out_channels"])}


def _linear_weights(node: Node, shape: Shape) -> dict[str, Shape]:
    return {
        "weight": (node["out_features"], shape[-1]),
        **_bias(node, node["out_features"]),
    }


def _layer_norm_weights(node: Node, shape: Shape) -> dict[str, Shape]:
    return {"weight": shape[-1:], **({"bias": shape[-1:]} if node.get("bias", True) else {})}


def _lstm_weights(node: Node, shape: Shape) -> dict[str, Shape]:
    gates, directions = LSTM_GATES * node["hidden"], ("", "_reverse")[: 1 + node["bidirectional"]]
    found: dict[str, Shape] = {}
    width = shape[-1]
    for layer in range(node["layers"]):
        for direction in directions:
            place = f"l{layer}{direction}"
            found[f"weight_ih_{place}"] = (gates, width)
            found[f"weight_hh_{place}"] = (gates, node["hidden"])
            if node["bias"]:
                found[f"bias_ih_{place}"] = found[f"bias_hh_{place}"] = (gates,)
        width = node["hidden"] * len(directions)
    return found


def _bias(node: Node, width: int) -> dict[str, Shape]:
    return {"bias": (width,)} if node["bias"] else {}


WEIGHTED: dict[str, Callable[[Node, Shape], dict[str, Shape]]] = {
    "batch_norm": lambda _, shape: {"weight": shape[:1], "bias": shape[:1]},
    "class_token": lambda _, shape: {"weight": (1, shape[-1])},
    "conv": _conv_weights,
    "embedding": lambda node, _: {"weight": (node["vocabulary"], node["width"])},
    "layer_norm": _layer_norm_weights,
    "linear": _linear_weights,
    "lstm": _lstm_weights,
    "position_embedding": lambda node, shape: {"weight": (node["length"], shape[-1])},
    "rms_norm": lambda _, shape: {"weight": shape[-1:]},
}
"""Parameters of each operation that has some, given the shape it reads."""
