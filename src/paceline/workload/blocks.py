"""Blocks of a network, from the numbers in the names of its nodes."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from paceline.workload.graph import Graph

_ENDS_IN_NUMBER = re.compile(r"\d$")


@dataclass(frozen=True)
class Block:
    """Nodes ``first`` to ``last`` of the graph, the latter excluded."""

    name: str
    first: int
    last: int


@lru_cache(maxsize=64)
def blocks(graph: Graph) -> tuple[Block, ...]:
    """Numbered blocks of a graph (``block.0``, ``layer1.2``, ``h.11``), in order.

    Nodes before the first block belong to it; other nodes belong to the block before them. A
    graph without numbered names has one block per node.
    """
    names = [part_of(node.name) for node in graph.nodes]
    if not any(names):
        return tuple(Block(node.name, i, i + 1) for i, node in enumerate(graph.nodes))
    starts: list[tuple[str, int]] = []
    for index, name in enumerate(names):
        if name and (not starts or name != starts[-1][0]):
            starts.append((name, index if starts else 0))
    ends = [start for _, start in starts[1:]] + [len(graph.nodes)]
    return tuple(Block(name, start, end) for (name, start), end in zip(starts, ends, strict=True))


@cache
def part_of(name: str) -> str:
    """``transformer.h.3`` for ``transformer.h.3.attention.query``; empty without a number."""
    scopes = re.split(r"[./]", name)[:-1]
    for depth, scope in enumerate(scopes, 1):
        if scope.isdigit():
            return ".".join(scopes[:depth])
    numbered = 0
    while numbered < len(scopes) and _ENDS_IN_NUMBER.search(scopes[numbered]):
        numbered += 1
    return ".".join(scopes[:numbered])
