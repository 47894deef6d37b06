"""Uncertainties of a captured graph."""

from collections import Counter

from paceline.workload.graph import Graph
from paceline.workload.ops import Recorded


def unknown_operations(graph: Graph) -> dict[str, float]:
    """Operations whose cost is estimated from their bytes only, largest first.

    The value is the share of all bytes that the model moves in a step.
    """
    shares: Counter[str] = Counter()
    for node in graph.nodes:
        if isinstance(node.op, Recorded):
            for unknown in node.op.unknown:
                shares[unknown.name] += unknown.bytes_share  # type: ignore[assignment]
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def capture_notes(graph: Graph) -> list[str]:
    """Notes on uncertain costs and unknown operations, without duplicates."""
    notes: dict[str, None] = dict.fromkeys(graph.notes)
    notes |= {
        f"cost of {name} is estimated from its bytes only ({share:.2%} of all bytes)": None
        for name, share in unknown_operations(graph).items()
    }
    for node in graph.nodes:
        if isinstance(node.op, Recorded):
            notes |= dict.fromkeys(node.op.notes)
    return list(notes)
