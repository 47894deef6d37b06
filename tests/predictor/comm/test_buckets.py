from hypothesis import given
from hypothesis import strategies as st

from paceline.predictor.comm.buckets import bucket_lengths, merged_lengths, messages
from paceline.predictor.plan.sync_policy import (
    MIB,
    SYNCHRONISATIONS,
    Synchronisation,
    synchronisation,
)

SIZES = st.lists(st.floats(1.0, 1e8), min_size=1, max_size=7)


def affine(size):
    return 1e-3 + 1e-9 * size


def end_of(lengths, sizes, ready, overhead=0.0):
    """End of the last of the messages, or of backward when overheads delay it further."""
    end, start = 0.0, 0
    for number, length in enumerate(lengths, 1):
        stop = start + length
        end = max(end, ready[stop - 1] + number * overhead) + affine(sum(sizes[start:stop]))
        start = stop
    return end


def partitions(count):
    if count == 0:
        yield []
    for first in range(1, count + 1):
        for rest in partitions(count - first):
            yield [first, *rest]


def test_ddp_fills_a_small_first_bucket_then_25_mib_ones():
    assert bucket_lengths([0.6 * MIB] * 50, MIB, 25 * MIB) == [2, 42, 6]


def test_a_bucket_closes_with_the_tensor_that_reaches_its_limit():
    assert bucket_lengths([100 * MIB, MIB, 30 * MIB], MIB, 25 * MIB) == [1, 2]


@given(SIZES, st.data())
def test_merging_is_as_good_as_the_best_of_all_partitions(sizes, data):
    gaps = data.draw(st.lists(st.floats(0, 0.05), min_size=len(sizes), max_size=len(sizes)))
    overhead = data.draw(st.sampled_from([0.0, 5e-4]))
    ready = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    found = end_of(merged_lengths(sizes, ready, affine, overhead), sizes, ready, overhead)
    best = min(end_of(p, sizes, ready, overhead) for p in partitions(len(sizes)))
    assert abs(found - best) <= 1e-12 + 1e-9 * best


def test_merging_takes_a_cost_that_knows_no_arrays():
    def scalar_only(size):
        return 1e-3 if size < 1e6 else 2e-3

    assert merged_lengths([1e5, 1e5], [0.0, 0.0], scalar_only) == [2]


@given(st.sampled_from(sorted(SYNCHRONISATIONS)), st.lists(st.floats(0.0, 1e8), max_size=20))
def test_every_gradient_travels_exactly_once(name, sizes):
    groups = messages(synchronisation(name), sizes, [0.0] * len(sizes), affine)
    travelled = [layer for group in groups for layer in group.layers]
    assert travelled == [i for i in reversed(range(len(sizes))) if sizes[i] > 0]
    assert abs(sum(g.size_bytes for g in groups) - sum(sizes)) <= 1e-6 * sum(sizes)


def test_one_message_holds_everything():
    (message,) = messages(synchronisation("one_message"), [4.0, 0.0, 8.0], [0.0] * 3, affine)
    assert message.layers == (2, 0)
    assert message.size_bytes == 12.0


def test_a_smaller_bucket_shrinks_the_first_one_too():
    small = Synchronisation().with_bucket(0.5 * MIB)
    assert small.first_bytes == small.bucket_bytes == 0.5 * MIB
