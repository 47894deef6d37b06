"""The layer graph: one description of a network for execution and for costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError, PacelineError
from paceline.workload.cost import GraphCost, GraphProfile, Number, Shape
from paceline.workload.costing import graph_profile
from paceline.workload.ops.attention import Attention
from paceline.workload.ops.base import Op
from paceline.workload.ops.codec import fields_of, op_from_fields
from paceline.workload.precision import Precision, precision

Counts: TypeAlias = int | Sequence[int] | NDArray[Any]
"""A batch or sequence length, or an array of them."""

SCHEMA = "paceline/graph/1"
SEQUENCE = "sequence"
"""The dimension of inputs that is the sequence length, known when costs are computed."""

LARGEST_COUNT = 2**62

RECORDED_BATCH = "recorded_batch"
"""Key of `Graph.dimensions` for the batch at which a captured graph was recorded."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a network: shape of one sample and type of its elements.

    A dimension may be ``"sequence"``. Integers lie in 0..``limit`` - 1 (classes, tokens).
    """

    shape: tuple[int | Literal["sequence"], ...]
    dtype: Literal["float", "integer"] = "float"
    limit: int | None = None

    def __post_init__(self) -> None:
        for size in self.shape:
            if size != SEQUENCE and (type(size) is not int or size < 1):
                raise InputError(
                    f"a dimension must be a positive integer or 'sequence' (got {size!r})"
                )
        if self.dtype not in ("float", "integer"):
            raise InputError(f"dtype must be 'float' or 'integer' (got {self.dtype!r})")
        rule = "need a positive limit" if self.dtype == "integer" else "cannot have a limit"
        if (self.dtype == "integer") != (type(self.limit) is int and self.limit > 0):
            raise InputError(f"{self.dtype} inputs {rule}")


@dataclass(frozen=True, slots=True)
class Node:
    """One layer: an operation on the results of earlier nodes or on inputs of the graph.

    A node that shares weights uses the tensors of the named earlier node that have the same name
    and shape (a tied output layer keeps its own bias). The weights of a frozen node have no
    gradient and no optimizer state.
    """

    name: str
    op: Op
    inputs: tuple[str, ...]
    shares_weights_with: str | None = None
    frozen: bool = False


@dataclass(frozen=True)
class Graph:
    """A network with its loss: inputs, nodes in topological order, one output.

    ``sequence`` is the published sequence length and the default; ``dimensions`` are the sizes of
    the architecture (hidden, layers, heads, ...); ``notes`` are uncertainties of its costs;
    ``dtype`` is the precision in its configuration, if any.
    """

    name: str
    inputs: Mapping[str, InputSpec]
    nodes: tuple[Node, ...]
    output: str
    sequence: int | None = None
    dimensions: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    dtype: str = ""
    _profiles: dict[tuple[int | None, Precision], GraphProfile] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        known = set(self.inputs)
        if not self.nodes:
            raise InputError(f"graph '{self.name}' has no nodes")
        for node in self.nodes:
            _check_node(node, known)
            known.add(node.name)
        if self.output not in known - set(self.inputs):
            raise InputError(f"the output '{self.output}' of graph '{self.name}' is not a node")

    def __hash__(self) -> int:
        return hash((self.name, self.output, len(self.nodes)))

    @property
    def uses_sequence(self) -> bool:
        return any(SEQUENCE in spec.shape for spec in self.inputs.values())

    def node(self, name: str) -> Node:
        found = _by_name(self).get(name)
        if found is None:
            raise InputError(f"graph '{self.name}' has no node '{name}'")
        return found

    def with_inputs(self, shapes: Mapping[str, Sequence[int]]) -> "Graph":
        """The same network on inputs of other shapes (of one sample)."""
        changed = dict(self.inputs)
        for name, shape in shapes.items():
            if name not in changed:
                raise InputError(
                    f"graph '{self.name}' has no input '{name}'", f"inputs: {', '.join(changed)}"
                )
            changed[name] = replace(changed[name], shape=tuple(shape))
        return replace(self, inputs=changed)

    def with_attention(self, *, fused: bool) -> "Graph":
        """The same network with or without fused attention, which keeps scores out of memory."""
        nodes = tuple(
            replace(node, op=replace(node.op, fused=fused))
            if isinstance(node.op, Attention)
            else node
            for node in self.nodes
        )
        return replace(self, nodes=nodes)

    def profile(
        self, sequence: Counts | None = None, number_format: str | Precision = "fp32"
    ) -> GraphProfile:
        """Costs as functions of the batch, cached per sequence and precision."""
        width = precision(number_format)
        length = self._length(sequence)
        shapes = {name: _input_shape(spec, length) for name, spec in self.inputs.items()}
        if isinstance(length, np.ndarray):
            return graph_profile(self, shapes, width)
        key = (None if length is None else int(length), width)
        if key not in self._profiles:
            self._profiles[key] = graph_profile(self, shapes, width)
        return self._profiles[key]

    def cost(
        self,
        batch: Counts,
        sequence: Counts | None = None,
        precision: str | Precision = "fp32",
    ) -> GraphCost:
        """Costs of one training step of ``batch`` samples.

        ``batch`` and ``sequence`` may be arrays that broadcast against each other; results that
        depend on them are then arrays of that shape.
        """
        return GraphCost(self.profile(sequence, precision), _counts(batch, "batch"))

    def to_json(self) -> dict[str, Any]:
        """The graph as plain data, the input of a framework's worker."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "inputs": {name: _spec_to_json(spec) for name, spec in self.inputs.items()},
            "nodes": [_node_to_json(node) for node in self.nodes],
            "output": self.output,
            "sequence": self.sequence,
            "dimensions": dict(self.dimensions),
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"dtype": self.dtype} if self.dtype else {}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Graph":
        if document.get("schema") != SCHEMA:
            raise InputError(
                f"not a layer graph: schema must be '{SCHEMA}' (got {document.get('schema')!r})",
                "write it with Graph.to_json",
            )
        try:
            return cls(
                name=document["name"],
                inputs={n: _spec_from_json(n, s) for n, s in document["inputs"].items()},
                nodes=tuple(_node_from_json(node) for node in document["nodes"]),
                output=document["output"],
                sequence=document.get("sequence"),
                dimensions=dict(document.get("dimensions", {})),
                notes=tuple(document.get("notes", ())),
                dtype=str(document.get("dtype", "")),
            )
        except KeyError as error:
            raise InputError(f"the layer graph has no {error}") from None
        except (AttributeError, TypeError) as error:
            raise InputError(f"the layer graph is malformed: {error}") from None

    def _length(self, sequence: Counts | None) -> Number | None:
        if not self.uses_sequence:
            return None
        chosen = self.sequence if sequence is None else sequence
        if chosen is None:
            raise InputError(
                f"graph '{self.name}' needs a sequence length", "give --seq or sequence"
            )
        return _counts(chosen, "sequence")


@lru_cache(maxsize=64)
def _by_name(graph: Graph) -> dict[str, Node]:
    """The nodes of a graph by name."""
    return {node.name: node for node in graph.nodes}


def _check_node(node: Node, known: set[str]) -> None:
    if node.name in known:
        raise InputError(f"duplicate name '{node.name}' of a node or input")
    for name in node.inputs:
        if name not in known:
            raise InputError(
                f"node '{node.name}' reads '{name}', which is not an earlier node or input",
                "list the nodes in topological order",
            )
    if node.shares_weights_with is not None and node.shares_weights_with not in known:
        raise InputError(
            f"node '{node.name}' shares weights with '{node.shares_weights_with}', "
            "which is not an earlier node"
        )
    op, count = node.op, len(node.inputs)
    if count < op.least_inputs or (op.most_inputs is not None and count > op.most_inputs):
        most = "or more" if op.most_inputs is None else f"to {op.most_inputs}"
        wanted = (
            f"{op.least_inputs} {most}"
            if op.most_inputs != op.least_inputs
            else str(op.least_inputs)
        )
        raise InputError(f"node '{node.name}' ({op.kind}) takes {wanted} inputs (got {count})")


def _counts(value: Counts, what: str) -> Number:
    """An exact int, or a float array so that large products do not overflow."""
    array = np.asarray(value)
    if isinstance(value, int) and value > LARGEST_COUNT:
        raise InputError(f"{what} of {value:.3g} is too large", f"give at most {LARGEST_COUNT}")
    if array.size == 0 or array.dtype.kind not in "iuf" or not np.all(array == np.floor(array)):
        raise InputError(f"{what} must be an integer (got {value!r})", "give 1 or more")
    if not np.all(np.isfinite(array)) or not np.all(array >= 1):
        worst = array.min()
        raise InputError(f"{what} must be at least 1 (got {worst})", f"give a {what} of 1 or more")
    return int(array) if array.ndim == 0 else array.astype(np.float64)


def _input_shape(spec: InputSpec, length: Number | None) -> Shape:
    sizes: list[Number] = []
    for size in spec.shape:
        if isinstance(size, int):
            sizes.append(size)
        else:
            assert length is not None
            sizes.append(length)
    return tuple(sizes)


def _spec_to_json(spec: InputSpec) -> dict[str, Any]:
    document: dict[str, Any] = {"shape": list(spec.shape), "dtype": spec.dtype}
    return document if spec.limit is None else document | {"limit": spec.limit}


def _spec_from_json(name: str, document: Mapping[str, Any]) -> InputSpec:
    try:
        shape = tuple(document["shape"])
        return InputSpec(shape, document.get("dtype", "float"), document.get("limit"))
    except InputError as error:
        raise InputError(f"input '{name}': {error.message}", error.hint) from None


def _node_to_json(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": node.name,
        "op": node.op.kind,
        "inputs": list(node.inputs),
    }
    if node.shares_weights_with is not None:
        document["shares_weights_with"] = node.shares_weights_with
    if node.frozen:
        document["frozen"] = True
    return document | fields_of(node.op)


def _node_from_json(document: Mapping[str, Any]) -> Node:
    reserved = ("name", "op", "inputs", "shares_weights_with", "frozen")
    name = document["name"]
    fields = {key: value for key, value in document.items() if key not in reserved}
    try:
        op = op_from_fields(document["op"], fields)
    except PacelineError as error:
        raise type(error)(f"node '{name}': {error.message}", error.hint) from None
    shared, frozen = document.get("shares_weights_with"), document.get("frozen", False)
    return Node(name, op, tuple(document["inputs"]), shared, frozen is True)
