"""Runs the nodes of a network with the functions of one framework; standard library only.

Every node of a job's graph has the shapes of its result and its parameters: of one sample, channels
first, parameters in PyTorch's layout, in which `synthetic` defines initial weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]
Shape = tuple[int, ...]

LOSSES = frozenset({"cross_entropy", "ctc_loss", "elementwise_loss", "focal_loss", "weighted_sum"})
"""Operations that belong to the loss, not to the network: they have no weights."""

TIED_ROWS = "rows"
"""Name in a linear layer of the weight that it shares with an embedding: one row per output."""

Operation = Callable[..., Any]
"""Called with the node, its inputs, and its parameters by their short names."""


@dataclass(frozen=True)
class NodeRun:
    """A node, and the full names of its parameters by the short names of its operation."""

    node: Node
    own: Mapping[str, str]


@dataclass(frozen=True)
class Program:
    """Nodes in topological order, and the name of the output."""

    runs: tuple[NodeRun, ...]
    output: str

    def run(
        self,
        operations: Mapping[str, Operation],
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Any],
    ) -> Any:
        """Run every node with the framework's function of its operation; return the output.

        ``parameters`` are named ``<node>.<parameter>``.
        """
        values = dict(inputs)
        for run in self.runs:
            node = run.node
            read = [values[name] for name in node["inputs"]]
            own = {short: parameters[full] for short, full in run.own.items()}
            values[node["name"]] = operations[node["op"]](node, read, own)
        return values[self.output]


def value_shapes(graph: Mapping[str, Any]) -> dict[str, Shape]:
    shapes = {name: spec["shape"] for name, spec in graph["inputs"].items()}
    shapes.update((node["name"], node["output_shape"]) for node in graph["nodes"])
    return {name: tuple(shape) for name, shape in shapes.items()}


def parameter_owners(graph: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Owner of every parameter that a node reads: itself, or the node that shares its weights.

    Parameters with the same name and shape are shared.
    """
    shapes = {node["name"]: node["parameter_shapes"] for node in graph["nodes"]}
    owners: dict[str, dict[str, str]] = {}
    for node in graph["nodes"]:
        name, other = node["name"], node.get("shares_weights_with")
        owners[name] = {
            short: owners[other][short] if other and shapes[other].get(short) == shape else name
            for short, shape in shapes[name].items()
        }
    return owners


def trained_parameters(graph: Mapping[str, Any]) -> list[tuple[Node, str, Shape]]:
    """Node, name within the node, and shape of every trained parameter, in order."""
    frozen = [node["name"] for node in graph["nodes"] if node.get("frozen")]
    if frozen:
        raise ValueError(f"node '{frozen[0]}': frozen weights are not in this worker")
    owners = parameter_owners(graph)
    return [
        (node, short, tuple(shape))
        for node in graph["nodes"]
        for short, shape in node["parameter_shapes"].items()
        if owners[node["name"]][short] == node["name"]
    ]


def beyond_end(node: Node, sides: Sequence[int]) -> list[int]:
    """Positions that the last window of a pool extends beyond the padding, in each dimension.

    ``sides`` are the sizes of its input in these dimensions.
    """
    return [
        max(0, (count - 1) * stride + kernel - (side + 2 * padding))
        for count, side, kernel, stride, padding in zip(
            node["output_shape"][1:],
            sides,
            node["kernel"],
            node["stride"],
            node["padding"],
            strict=True,
        )
    ]


def whole_program(graph: Mapping[str, Any]) -> Program:
    owners = parameter_owners(graph)
    kinds = {node["name"]: node["op"] for node in graph["nodes"]}
    runs = []
    for node in graph["nodes"]:
        own = {}
        for short, owner in owners[node["name"]].items():
            tied = node["op"] == "linear" and kinds[owner] == "embedding"
            own[TIED_ROWS if tied else short] = f"{owner}.{short}"
        if node["op"] == "batch_norm":
            own |= {short: f"{node['name']}.{short}" for short in ("running_mean", "running_var")}
        runs.append(NodeRun(node, own))
    return Program(tuple(runs), graph["output"])


def scores_program(graph: Mapping[str, Any]) -> Program:
    """The network without its loss, for evaluation; its output is the input of the loss."""
    nodes, _, (output,) = split_loss(graph)
    wanted = {node["name"] for node in nodes}
    runs = tuple(run for run in whole_program(graph).runs if run.node["name"] in wanted)
    return Program(runs, output)


def loss_program(graph: Mapping[str, Any]) -> Program:
    """The loss alone; its inputs are the output of the network and the targets."""
    runs = tuple(NodeRun(node, {}) for node in split_loss(graph)[1])
    return Program(runs, graph["output"])


def split_loss(graph: Mapping[str, Any]) -> tuple[list[Node], list[Node], list[str]]:
    """Nodes of the network, nodes of the loss, and the network outputs that the loss reads."""
    network = [node for node in graph["nodes"] if node["op"] not in LOSSES]
    loss = [node for node in graph["nodes"] if node["op"] in LOSSES]
    if not loss:
        return network, loss, [graph["output"]]
    made = {node["name"] for node in network}
    reads = (name for node in loss for name in node["inputs"])
    return network, loss, list(dict.fromkeys(name for name in reads if name in made))


def weighted_sum(node: Node, losses: Sequence[Any], _: Mapping[str, Any]) -> Any:
    weighted = [weight * loss for weight, loss in zip(node["weights"], losses, strict=True)]
    return sum(weighted[1:], weighted[0])


def add(_: Node, values: Sequence[Any], __: Mapping[str, Any]) -> Any:
    return sum(values[1:], values[0])


def position_embedding(_: Node, values: Sequence[Any], own: Mapping[str, Any]) -> Any:
    """Add to each token of (batch, positions, features) the row of its position."""
    return values[0] + own["weight"][: values[0].shape[-2]]


def named(*operations: Operation) -> dict[str, Operation]:
    """Functions by the operation in their name: ``_max_pool`` computes ``max_pool``."""
    return {operation.__name__.strip("_"): operation for operation in operations}


SHARED = named(add, position_embedding, weighted_sum)
"""Operations that only need arithmetic and slices of a framework's arrays."""


def lstm_layers(
    node: Node,
    tokens: Any,
    states: Callable[[Any, str, bool], Any],
    side_by_side: Callable[[list], Any],
) -> Any:
    """States of the last layer of an LSTM for every token.

    ``states`` computes those of one layer and direction: it is called with the input of the layer,
    the suffix of its parameters' names, and whether it runs from the last token to the first.
    """
    for layer in range(node["layers"]):
        ways = [states(tokens, f"l{layer}", False)]
        if node["bidirectional"]:
            ways.append(states(tokens, f"l{layer}_reverse", True))
        tokens = side_by_side(ways) if len(ways) > 1 else ways[0]
    return tokens


NORMALISATIONS = frozenset({"batch_norm", "layer_norm", "rms_norm", "local_response_norm"})


def mixed_precision(
    operations: Mapping[str, Operation], low: Callable[[Any], Any], high: Callable[[Any], Any]
) -> dict[str, Operation]:
    """``operations`` in 16 bits; normalisations and losses compute in 32 bits.

    This is what Flax does with ``dtype=bfloat16`` and Keras with ``mixed_bfloat16``: weights,
    gradients and running statistics stay in 32 bits. ``low`` and ``high`` convert an array of
    floating-point numbers and return others unchanged.
    """

    def converted(name: str, operation: Operation) -> Operation:
        if name in LOSSES:
            return lambda node, values, own: operation(node, [high(one) for one in values], own)
        if name in NORMALISATIONS:
            return lambda node, values, own: low(operation(node, [high(v) for v in values], own))
        return lambda node, values, own: operation(
            node, [low(one) for one in values], {short: low(own[short]) for short in own}
        )

    return {name: converted(name, operation) for name, operation in operations.items()}


def batch_axis(axis: int) -> int:
    """Axis of a batch (samples first) for ``axis`` of one sample."""
    return axis + 1 if axis >= 0 else axis
