"""Partitioning of a network into pipeline chunks: runs of blocks."""

from collections.abc import Sequence

from paceline.errors import InputError
from paceline.workload.blocks import Block, part_of
from paceline.workload.graph import Graph

_PIECES_OF_A_TAIL = 3
"""Blocks that nanotron counts for head and loss: linear layer, cast, loss."""


def chunks_of_equal_blocks(
    parts: Sequence[Block], chunks: int, sizes: Sequence[int] = ()
) -> tuple[Block, ...]:
    """Runs of whole blocks, one per pipeline chunk, of given ``sizes`` or as equal as possible."""
    count = len(parts)
    if sizes and sum(sizes) != count:
        raise InputError(
            f"stage sizes sum to {sum(sizes)} blocks, but the network has {count}",
            f"give sizes that sum to {count}",
        )
    if not sizes:
        if chunks > count:
            raise InputError(
                f"{count} blocks cannot fill {chunks} pipeline chunks",
                f"use pp x interleave of at most {count}",
            )
        sizes = [count // chunks + (number < count % chunks) for number in range(chunks)]
    return _runs(parts, sizes)


def balanced_chunks(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks that minimise the cost of the most expensive run.

    ``weights`` are seconds (or FLOP) of each block.
    """
    if chunks > len(parts):
        raise InputError(
            f"{len(parts)} blocks cannot fill {chunks} pipeline chunks",
            f"use pp x interleave of at most {len(parts)}",
        )
    sizes = _lightest_heaviest(weights, chunks)
    return _runs(parts, sizes)


def chunks_by_cost(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks, each closed by the block with which it reaches its share of the cost.

    nanotron partitions in one pass like this, so the first runs are the most expensive. It counts
    head and loss as `_PIECES_OF_A_TAIL` blocks of which the first has all the cost. Partitions
    with empty runs are rejected.
    """
    if chunks > len(parts):
        raise InputError(
            f"{len(parts)} blocks cannot fill {chunks} pipeline chunks",
            f"use pp x interleave of at most {len(parts)}",
        )
    filled = _filled_in_one_pass(weights, chunks)
    if filled < chunks:
        raise InputError(
            f"partitioning by cost leaves {chunks - filled} of {chunks} pipeline chunks empty",
            f"use pp x interleave of at most {filled}",
        )
    whole, passed = sum(weights), 0.0
    sizes = [0] * chunks
    chunk = 0
    for number, weight in enumerate(weights):
        sizes[chunk] += 1
        passed += weight
        left_blocks, left_chunks = len(parts) - number - 1, chunks - chunk - 1
        is_full = passed * chunks >= whole * (chunk + 1)
        if left_chunks and (is_full or left_blocks == left_chunks):
            chunk += 1
    return _runs(parts, sizes)


def _filled_in_one_pass(weights: Sequence[float], chunks: int) -> int:
    """Number of non-empty chunks in a one-pass partition by cost."""
    whole, passed, chunk, last = sum(weights), 0.0, 0, 0
    for weight in (*weights, *[0.0] * (_PIECES_OF_A_TAIL - 1)):
        last = chunk
        passed += weight
        if passed * chunks >= whole * (chunk + 1) and chunk + 1 < chunks:
            chunk += 1
    return last + 1


def with_own_ends(parts: Sequence[Block], graph: Graph) -> tuple[Block, ...]:
    """The blocks with the embedding and with head and loss as separate blocks.

    Megatron Core counts them as layers of the pipeline, so 126 blocks make 128 chunks
    (account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split).
    """
    first, *others = with_own_tail(parts, graph)
    own = [i for i in range(first.first, first.last) if part_of(graph.nodes[i].name)]
    if not own or own[0] == first.first:
        return (first, *others)
    head = Block("head", first.first, own[0])
    return (head, Block(first.name, own[0], first.last), *others)


def with_own_tail(parts: Sequence[Block], graph: Graph) -> tuple[Block, ...]:
    """The blocks with head and loss (after the last numbered node) as a separate block."""
    last = parts[-1]
    numbered = [i for i in range(last.first, last.last) if part_of(graph.nodes[i].name)]
    if not numbered or numbered[-1] + 1 == last.last:
        return tuple(parts)
    cut = numbered[-1] + 1
    return (*parts[:-1], Block(last.name, last.first, cut), Block("tail", cut, last.last))


def _runs(parts: Sequence[Block], sizes: Sequence[int]) -> tuple[Block, ...]:
    if any(size < 1 for size in sizes):
        raise InputError("a pipeline chunk has no block", "give each chunk at least one block")
    runs = []
    start = 0
    for number, size in enumerate(sizes):
        run = parts[start : start + size]
        runs.append(Block(f"stage {number}", run[0].first, run[-1].last))
        start += size
    return tuple(runs)


def _lightest_heaviest(weights: Sequence[float], chunks: int) -> list[int]:
    """Sizes of consecutive groups that minimise the largest sum (dynamic programming)."""
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
