"""Segments: parts of a network that are parallelised in one way.

A segment starts at a convolution or linear layer whose input is the only tensor that crosses the
cut. In a chain these are all such layers; a residual block or an inception module stays in one
segment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError
from paceline.predictor.partition.tensor_parallel import Role, divide, is_transformer
from paceline.workload.graph import Graph


class Way(StrEnum):
    """How the layers of a segment are parallelised."""

    DATA = "data"
    """Data parallelism: all weights, a share of the samples; gradients are summed."""
    MODEL = "model"
    """Model parallelism: a share of the filters, all samples; activations are gathered."""


@dataclass(frozen=True)
class Segment:
    """Nodes ``first`` to ``last`` of a graph, the latter excluded, which read ``source``.

    ``source`` is the only tensor that comes from before; empty for the first segment.
    """

    name: str
    first: int
    last: int
    source: str = ""

    @property
    def positions(self) -> range:
        """Positions of its nodes in the graph."""
        return range(self.first, self.last)


def segments(graph: Graph) -> tuple[Segment, ...]:
    """The segments of a network, in order."""
    if is_transformer(graph):
        raise InputError(
            f"--per-layer does not support transformers ({graph.name})",
            "omit --per-layer: advise searches tensor-parallel degrees",
        )
    starts = [(0, ""), *_cuts(graph)]
    ends = [start for start, _ in starts[1:]] + [len(graph.nodes)]
    return tuple(
        Segment(graph.nodes[first].name, first, last, source)
        for (first, source), last in zip(starts, ends, strict=True)
    )


def _cuts(graph: Graph) -> Iterator[tuple[int, str]]:
    """Positions where a segment may begin, and the tensor that it reads.

    Under model parallelism that tensor must be divided by features, so that every combination of
    choices before and after the cut is possible.
    """
    divisions = dict(zip((node.name for node in graph.nodes), divide(graph), strict=True))
    read_last = _last_readers(graph)
    crossing: set[str] = set()
    for position, node in enumerate(graph.nodes):
        if position > 0 and len(crossing) == 1 and divisions[node.name].role is Role.OUTPUTS:
            (source,) = crossing
            if divisions[source].role in (Role.OUTPUTS, Role.FEATURES) and source in node.inputs:
                yield position, source
        crossing = {name for name in (*crossing, node.name) if read_last.get(name, -1) > position}


def _last_readers(graph: Graph) -> dict[str, int]:
    """Last position that reads each tensor or shares the weights of a node."""
    last: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        for name in node.inputs:
            last[name] = position
        if node.shares_weights_with is not None:
            last[node.shares_weights_with] = position
    return last
