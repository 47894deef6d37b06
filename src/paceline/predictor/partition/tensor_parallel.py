"""How tensor parallelism divides each layer of a graph, and the resulting messages.

Transformers are divided in pairs as in Megatron-LM: a linear layer by its outputs, the next one by
its inputs, heads of attention between them; each pair needs one sum. Other
networks are divided by filter as in Castello et al. (PDP 2021): every convolution and linear
layer by its outputs, which are gathered before the next one.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from paceline.errors import InputError
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import Attention, Convolution, Linear, MixtureOfExperts, Recorded


class Role(StrEnum):
    """The share of a layer that one device has."""

    OUTPUTS = "outputs"
    """Its share of the output features, from all inputs (column parallel)."""
    INPUTS = "inputs"
    """All outputs, from its share of the input features; partial sums (row parallel)."""
    FEATURES = "features"
    """Its share of the features of a layer that mixes none (heads, channels)."""
    VOCABULARY = "vocabulary"
    """Its rows of an embedding; partial sums."""
    EXPERTS = "experts"
    """Its share of the hidden features of every expert; partial sums."""
    WHOLE = "whole"
    """All of it; with sequence parallelism its share of the tokens."""


class Collective(StrEnum):
    """Operations that tensor parallelism needs."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    GATHER_FEATURES = "gather_features"
    """An all-gather along features; followed by a copy into sample-major layout."""
    SCATTER_FEATURES = "scatter_features"
    """A reduce-scatter along features; preceded by a copy into rank-major layout."""


@dataclass(frozen=True)
class Transfer:
    """A collective on one tensor of the graph among tensor-parallel devices."""

    operation: Collective
    tensor: str


@dataclass(frozen=True)
class Division:
    """The division of one layer: its role, and messages in forward and backward."""

    role: Role
    forward: tuple[Transfer, ...] = ()
    backward: tuple[Transfer, ...] = ()


_MIXING = ("layer_norm", "rms_norm", "group_norm")
_ATTENTIONS = ("attention", "relative_attention")
_OF_EXPERTS = "hidden features"
_LOSSES = ("cross_entropy", "weighted_sum")


def is_transformer(graph: Graph) -> bool:
    """Whether the graph is divided by heads and pairs of linear layers rather than by filter."""
    return any(node.op.kind in _ATTENTIONS for node in graph.nodes)


@lru_cache(maxsize=64)
def divide(
    graph: Graph, sequence_parallel: bool = False, folds_experts: bool = False
) -> tuple[Division, ...]:
    """One `Division` per node, whatever the degree (above 1).

    ``folds_experts``: every device sends its own tokens to experts, which tensor parallelism does
    not divide.
    """
    return _Divider(graph, sequence_parallel and is_transformer(graph), folds_experts).run()


def check_divisible(graph: Graph, tp: int, etp: int | None = None) -> None:
    """Reject degrees that do not divide heads or features equally; ``etp`` divides experts.

    A captured model has recorded operations, which tensor parallelism cannot divide.
    """
    if tp > 1 and _is_recorded(graph):
        raise InputError(
            f"tp {tp} cannot divide the captured operations of {graph.name}",
            "use --zero or --pp, or give the config.json of the model",
        )
    for name, size, what in _divided_sizes(graph):
        option, degree = ("etp", etp) if etp and what == _OF_EXPERTS else ("tp", tp)
        if size % degree:
            raise InputError(
                f"{option} {degree} does not divide the {size} {what} of '{name}'",
                f"use a tensor-parallel degree that divides {size}",
            )


def common_size(graph: Graph) -> int:
    """The number that every degree accepted by `check_divisible` divides; 0 if all are accepted."""
    if _is_recorded(graph):
        return 1
    return math.gcd(*(size for _, size, _ in _divided_sizes(graph)))


@lru_cache(maxsize=64)
def _is_recorded(graph: Graph) -> bool:
    """Whether all GEMMs of a graph are in recorded operations."""
    return any(isinstance(node.op, Recorded) for node in graph.nodes) and all(
        division.role is Role.WHOLE for division in divide(graph)
    )


@lru_cache(maxsize=64)
def _divided_sizes(graph: Graph) -> tuple[tuple[str, int, str], ...]:
    """Name of each divided node, with the number and kind of its divided features."""
    found = (
        (node.name, *_divided_size(node, division.role))
        for node, division in zip(graph.nodes, divide(graph), strict=True)
    )
    return tuple((name, size, what) for name, size, what in found if size)


def _divided_size(node: Node, role: Role) -> tuple[int, str]:
    op = node.op
    if isinstance(op, Attention):
        return op.heads, "heads"
    if role is Role.OUTPUTS and isinstance(op, Convolution):
        return op.out_channels, "filters"
    if isinstance(op, MixtureOfExperts):
        return op.hidden, _OF_EXPERTS
    # Vocabularies and classes are padded to a multiple, so linear maps always divide.
    return 0, ""


def _adapted(graph: Graph) -> dict[str, str]:
    """The frozen linear layer of each adapter's last layer, whose results are added."""
    linear = {node.name: node for node in graph.nodes if isinstance(node.op, Linear)}
    pairs = (node.inputs for node in graph.nodes if node.op.kind == "add" and len(node.inputs) == 2)
    return {
        second: first
        for first, second in pairs
        if first in linear and second in linear
        if linear[first].frozen and not linear[second].frozen
    }


class _Divider:
    """Walks the graph; knows which tensors are divided by features and which were gathered."""

    def __init__(self, graph: Graph, sequence_parallel: bool, folds_experts: bool) -> None:
        self.graph = graph
        self.folds_experts = folds_experts
        self.sequence_parallel = sequence_parallel
        self.in_pairs = is_transformer(graph)
        self.divided: set[str] = set()
        self.exchanged: set[str] = set()
        self.trained: set[str] = set()
        self.adapted = _adapted(graph)
        self.adapters_in = {graph.node(name).inputs[0] for name in self.adapted}

    def run(self) -> tuple[Division, ...]:
        return tuple(self._divide(node) for node in self.graph.nodes)

    def _divide(self, node: Node) -> Division:
        division = self._division(node)
        if division.role in (Role.OUTPUTS, Role.FEATURES):
            self.divided.add(node.name)
        self.trained.add(node.name)
        return division

    def _division(self, node: Node) -> Division:
        kind = node.op.kind
        reads_divided = [name for name in node.inputs if name in self.divided]
        if kind == "embedding":
            return self._partial_sums(node, Role.VOCABULARY)
        if kind == "moe":
            return Division(Role.EXPERTS) if self.folds_experts else self._whole_pair(node)
        if node.name in self.adapted:
            # As its linear layer (Megatron's ParallelLinearAdapter), whose messages it shares.
            return Division(Role.OUTPUTS if self.adapted[node.name] in self.divided else Role.WHOLE)
        if self._has_matrix(node):
            if not reads_divided:
                is_narrow = node.name in self.adapters_in
                return Division(Role.WHOLE) if is_narrow else self._by_outputs(node)
            if self.in_pairs:
                return self._partial_sums(node, Role.INPUTS)
            return self._by_outputs(node)
        if reads_divided and kind in _LOSSES:
            # The loss of divided classes exchanges a maximum and a sum per sample: nothing.
            return Division(Role.FEATURES) if self.in_pairs else self._gathered(node)
        if reads_divided and (len(reads_divided) < len(node.inputs) or kind in _MIXING):
            return self._gathered(node)
        return Division(Role.FEATURES if reads_divided else Role.WHOLE)

    def _has_matrix(self, node: Node) -> bool:
        op = node.op
        if isinstance(op, Convolution):
            return op.groups == 1
        return isinstance(op, Linear)

    def _by_outputs(self, node: Node) -> Division:
        """Column parallel: whole inputs are needed, and their partial gradients are summed."""
        forward, backward = [], []
        for name in node.inputs:
            if name in self.exchanged:
                continue
            self.exchanged.add(name)
            gathering, summing = self._exchanges_of(name)
            if gathering is not None:
                forward.append(Transfer(gathering, name))
            if name in self.trained:
                backward.append(Transfer(summing, name))
        return Division(Role.OUTPUTS, tuple(forward), tuple(backward))

    def _exchanges_of(self, name: str) -> tuple[Collective | None, Collective]:
        """Collectives that gather a tensor and sum its gradient."""
        if name in self.divided:
            return Collective.GATHER_FEATURES, Collective.SCATTER_FEATURES
        if self.sequence_parallel:
            return Collective.ALL_GATHER, Collective.REDUCE_SCATTER
        return None, Collective.ALL_REDUCE

    def _partial_sums(self, node: Node, role: Role) -> Division:
        """Row parallel: partial sums are all-reduced, or reduce-scattered by tokens."""
        if self.sequence_parallel:
            scattered = (Transfer(Collective.REDUCE_SCATTER, node.name),)
            gathered = (Transfer(Collective.ALL_GATHER, node.name),)
            return Division(role, scattered, gathered)
        return Division(role, (Transfer(Collective.ALL_REDUCE, node.name),))

    def _whole_pair(self, node: Node) -> Division:
        """Experts: a pair of linear layers in one graph node."""
        first = self._by_outputs(node)
        second = self._partial_sums(node, Role.INPUTS)
        return Division(
            Role.EXPERTS, first.forward + second.forward, second.backward + first.backward
        )

    def _gathered(self, node: Node) -> Division:
        """A layer that needs all features of inputs that are divided."""
        needed = [n for n in node.inputs if n in self.divided and n not in self.exchanged]
        self.exchanged.update(needed)
        return Division(
            Role.WHOLE,
            tuple(Transfer(Collective.GATHER_FEATURES, name) for name in needed),
            tuple(Transfer(Collective.SCATTER_FEATURES, name) for name in needed),
        )
