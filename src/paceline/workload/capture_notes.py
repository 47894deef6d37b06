"""What is uncertain about a graph that was captured: read from the graph alone."""

from collections import Counter

from paceline.workload.graph import Graph
from paceline.workload.ops import Recorded


def unknown_operations(graph: Graph) -> dict[str, float]:
    """Operations of a captured graph that are costed by their bytes alone, largest first.

    The value is the share of all bytes that the model moves in a step.
    """
    shares: Counter[str] = Counter()
    for node in graph.nodes:
        if isinstance(node.op, Recorded):
            for unknown in node.op.unknown:
                shares[unknown.name] += unknown.bytes_share  # type: ignore[assignment]
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def capture_notes(graph: Graph) -> list[str]:
    """What is uncertain about a captured graph, or not understood, each once."""
    notes: dict[str, None] = dict.fromkeys(graph.notes)
    notes |= {
        f"{name} is not understood and costed by its bytes alone: {share:.2%} of all bytes": None
        for name, share in unknown_operations(graph).items()
    }
    for node in graph.nodes:
        if isinstance(node.op, Recorded):
            notes |= dict.fromkeys(node.op.notes)
    return list(notes)
