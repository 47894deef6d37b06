import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.partition.pipeline_stages import (
    balanced_chunks,
    chunks_by_cost,
    chunks_of_equal_blocks,
    with_own_tail,
)
from paceline.workload import zoo
from paceline.workload.blocks import Block, blocks, part_of

ONES = tuple(Block(str(i), i, i + 1) for i in range(12))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("transformer.h.3.attention.query", "transformer.h.3"),
        ("layer1.2.conv1", "layer1.2"),
        ("stage1.block2.conv", "stage1.block2"),
        ("conv1", ""),
        ("norm", ""),
    ],
)
def test_parts_are_what_is_numbered(name, part):
    assert part_of(name) == part


def test_a_transformer_has_a_block_per_layer_with_its_ends_attached():
    graph = zoo.build("gpt2")
    found = blocks(graph)
    assert len(found) == 12
    assert found[0].first == 0
    assert found[-1].last == len(graph.nodes)


def test_layers_that_do_not_divide_are_spread_as_evenly_as_can_be():
    chunks = chunks_of_equal_blocks(ONES, 5)
    assert [c.last - c.first for c in chunks] == [3, 3, 2, 2, 2]


def test_more_chunks_than_layers_and_sizes_that_do_not_sum_are_refused():
    with pytest.raises(InputError, match="12 blocks cannot fill 13 pipeline chunks"):
        chunks_of_equal_blocks(ONES, 13)
    with pytest.raises(InputError, match="sum to 11 blocks, but the network has 12"):
        chunks_of_equal_blocks(ONES, 3, (4, 4, 3))
    uneven = chunks_of_equal_blocks(ONES, 3, (5, 4, 3))
    assert [(c.first, c.last) for c in uneven] == [(0, 5), (5, 9), (9, 12)]


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=12), st.integers(1, 3))
def test_balanced_chunks_have_the_lightest_heaviest(weights, chunks):
    parts = tuple(Block(str(i), i, i + 1) for i in range(len(weights)))
    found = balanced_chunks(parts, weights, chunks)
    assert [c.first for c in found] == [0, *[c.last for c in found][:-1]]
    assert found[-1].last == len(weights)
    heaviest = max(sum(weights[c.first : c.last]) for c in found)
    assert heaviest <= best_possible(weights, chunks) + 1e-9


def best_possible(weights, chunks):
    if chunks == 1:
        return sum(weights)
    return min(
        max(sum(weights[:cut]), best_possible(weights[cut:], chunks - 1))
        for cut in range(1, len(weights) - chunks + 2)
    )


def test_chunks_by_cost_close_with_the_block_that_fills_their_share():
    # 16 layers and a head that costs four: shares of 5, reached after 5, 10 and 15 layers.
    parts = [Block(str(number), number, number + 1) for number in range(17)]
    found = chunks_by_cost(parts, [1.0] * 16 + [4.0], 4)
    assert [chunk.last - chunk.first for chunk in found] == [5, 5, 5, 2]


def test_chunks_by_cost_close_with_the_block_that_passes_their_share():
    # Shares of 2.5, passed after 3, reached after 5, passed after 8 and so on.
    parts = [Block(str(number), number, number + 1) for number in range(17)]
    found = chunks_by_cost(parts, [1.0] * 16 + [4.0], 8)
    assert [chunk.last - chunk.first for chunk in found] == [3, 2, 3, 2, 3, 2, 1, 1]


def test_chunks_by_cost_that_would_stay_empty_are_refused():
    # 16 layers share 12 stages, the head is on the 13th, conversion and loss on two more.
    parts = [Block(str(number), number, number + 1) for number in range(17)]
    with pytest.raises(InputError, match="leaves 1 of 16 pipeline chunks empty"):
        chunks_by_cost(parts, [1.0] * 16 + [4.0], 16)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=20), st.integers(1, 20))
def test_chunks_by_cost_hold_every_block_once_and_none_is_empty(weights, chunks):
    parts = [Block(str(number), number, number + 1) for number in range(len(weights))]
    try:
        found = chunks_by_cost(parts, weights, chunks)
    except InputError as refused:
        assert "cannot fill" in refused.message or "empty" in refused.message
        return
    assert len(found) == chunks
    assert [chunk.first for chunk in found] == [0, *(chunk.last for chunk in found[:-1])]
    assert found[-1].last == len(parts)
    assert all(chunk.first < chunk.last for chunk in found)


def test_the_tail_of_a_transformer_may_be_a_block_of_its_own():
    graph = zoo.build("llama2_7b")
    parts = with_own_tail(blocks(graph), graph)
    assert len(parts) == len(blocks(graph)) + 1
    assert [node.name for node in graph.nodes[parts[-1].first : parts[-1].last]][-2:] == [
        "head",
        "loss",
    ]
