"""Where pipelines cut a network: runs of its blocks."""

from collections.abc import Sequence

from paceline.errors import InputError
from paceline.workload.blocks import Block, part_of
from paceline.workload.graph import Graph

_PIECES_OF_A_TAIL = 3
"""Blocks that programs which cut by cost make of head and loss: product, conversion, loss."""


def chunks_of_equal_blocks(
    parts: Sequence[Block], chunks: int, sizes: Sequence[int] = ()
) -> tuple[Block, ...]:
    """Runs of whole blocks, one per pipeline chunk: ``sizes`` of them, or as equal as can be."""
    count = len(parts)
    if sizes and sum(sizes) != count:
        raise InputError(
            f"the stages hold {sum(sizes)} blocks, but the network has {count}",
            f"give sizes that sum to {count}",
        )
    if not sizes:
        if chunks > count:
            raise InputError(
                f"{count} layers cannot fill {chunks} pipeline chunks",
                f"take pp x interleave of at most {count}",
            )
        sizes = [count // chunks + (number < count % chunks) for number in range(chunks)]
    return _runs(parts, sizes)


def balanced_chunks(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks such that the heaviest of ``chunks`` runs is as light as it can be.

    ``weights`` are seconds (or FLOP) of each block.
    """
    if chunks > len(parts):
        raise InputError(
            f"{len(parts)} blocks cannot fill {chunks} pipeline chunks",
            f"take pp x interleave of at most {len(parts)}",
        )
    sizes = _lightest_heaviest(weights, chunks)
    return _runs(parts, sizes)


def chunks_by_cost(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks, each closed by the block with which it has its share of the weight.

    So do programs that add up what blocks cost in one pass: the first runs are the heaviest. They
    count the last block, head and loss, as `_PIECES_OF_A_TAIL` blocks of which the first has its
    cost. Runs that would still be left without a block are refused.
    """
    if chunks > len(parts):
        raise InputError(
            f"{len(parts)} blocks cannot fill {chunks} pipeline chunks",
            f"take pp x interleave of at most {len(parts)}",
        )
    filled = _filled_in_one_pass(weights, chunks)
    if filled < chunks:
        raise InputError(
            f"stages cut by cost leave {chunks - filled} of {chunks} pipeline chunks empty",
            f"take pp x interleave of at most {filled}",
        )
    whole, passed = sum(weights), 0.0
    sizes = [0] * chunks
    place = 0
    for number, weight in enumerate(weights):
        sizes[place] += 1
        passed += weight
        left_blocks, left_chunks = len(parts) - number - 1, chunks - place - 1
        is_full = passed * chunks >= whole * (place + 1)
        if left_chunks and (is_full or left_blocks == left_chunks):
            place += 1
    return _runs(parts, sizes)


def _filled_in_one_pass(weights: Sequence[float], chunks: int) -> int:
    """Chunks that get a block when each is closed by the block with which it has its share."""
    whole, passed, place, last = sum(weights), 0.0, 0, 0
    for weight in (*weights, *[0.0] * (_PIECES_OF_A_TAIL - 1)):
        last = place
        passed += weight
        if passed * chunks >= whole * (place + 1) and place + 1 < chunks:
            place += 1
    return last + 1


def with_own_tail(parts: Sequence[Block], graph: Graph) -> tuple[Block, ...]:
    """The blocks with what follows the last numbered node (head and loss) as one of its own."""
    last = parts[-1]
    numbered = [i for i in range(last.first, last.last) if part_of(graph.nodes[i].name)]
    if not numbered or numbered[-1] + 1 == last.last:
        return tuple(parts)
    cut = numbered[-1] + 1
    return (*parts[:-1], Block(last.name, last.first, cut), Block("tail", cut, last.last))


def _runs(parts: Sequence[Block], sizes: Sequence[int]) -> tuple[Block, ...]:
    if any(size < 1 for size in sizes):
        raise InputError("a pipeline chunk without a block", "give each at least one")
    runs = []
    start = 0
    for number, size in enumerate(sizes):
        run = parts[start : start + size]
        runs.append(Block(f"stage {number}", run[0].first, run[-1].last))
        start += size
    return tuple(runs)


def _lightest_heaviest(weights: Sequence[float], chunks: int) -> list[int]:
    """Sizes of consecutive groups that minimise the largest sum: dynamic programming."""
    count = len(weights)
    prefix = [0.0]
    for weight in weights:
        prefix.append(prefix[-1] + weight)
    best = [[float("inf")] * (count + 1) for _ in range(chunks + 1)]
    cut = [[0] * (count + 1) for _ in range(chunks + 1)]
    best[0][0] = 0.0
    for groups in range(1, chunks + 1):
        for end in range(groups, count + 1):
            for start in range(groups - 1, end):
                heaviest = max(best[groups - 1][start], prefix[end] - prefix[start])
                if heaviest < best[groups][end]:
                    best[groups][end], cut[groups][end] = heaviest, start
    sizes: list[int] = []
    end = count
    for groups in range(chunks, 0, -1):
        start = cut[groups][end]
        sizes.append(end - start)
        end = start
    return sizes[::-1]
