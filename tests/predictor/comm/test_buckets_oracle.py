"""Messages of each policy on small examples, by hand."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.predictor.comm.buckets import bucket_lengths, fused_lengths, merged_lengths, messages
from paceline.predictor.comm.compression import Compression, CompressionKind
from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, Policy, Synchronisation


def second_per_byte(size):
    return 1.0 * size


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ([], []),
        ([9.0], [1]),
        ([10.0], [1]),  # reaches the limit exactly: closes (reducer.cpp, ``>=``)
        ([9.0, 1.0, 30.0], [2, 1]),
        ([9.0, 0.5, 30.0], [3]),
        ([10.0, 29.0, 1.0, 5.0], [1, 2, 1]),
    ],
)
def test_buckets_of_10_then_30(sizes, lengths):
    assert bucket_lengths(sizes, 10.0, 30.0) == lengths


def test_horovod_sends_what_is_ready_when_the_link_is_idle():
    """First tensor alone (1 s); at 1 s two more are ready (3 s); the fourth exceeds the limit."""
    sizes, ready = [1.0, 1.0, 2.0, 7.0, 1.0], [0.0, 0.5, 1.0, 1.5, 10.0]
    assert fused_lengths(sizes, ready, second_per_byte, 100.0) == [1, 2, 1, 1]
    assert fused_lengths(sizes, ready, second_per_byte, 3.0) == [1, 2, 1, 1]
    assert fused_lengths(sizes, ready, second_per_byte, 2.0) == [1, 1, 1, 1, 1]
    # Ready exactly when the link becomes idle is early enough.
    assert fused_lengths([1.0, 1.0, 1.0], [0.0, 1.0, 1.0], second_per_byte, 2.0) == [1, 2]
    assert fused_lengths([1.0, 1.0], [0.0, 1.01], second_per_byte, 2.0) == [1, 1]


def with_start_up(size):
    return 1.0 + size


def test_merging_saves_start_ups_only_where_waiting_is_cheaper():
    assert merged_lengths([1.0, 1.0], [0.0, 0.5], with_start_up) == [2]  # 3.5 s, apart 4 s
    assert merged_lengths([1.0, 1.0], [0.0, 2.0], with_start_up) == [1, 1]  # 4 s, together 5 s
    assert merged_lengths([1.0, 1.0], [0.0, 2.0], with_start_up, 0.6, 2.0) == [1, 1]
    # 2 messages: 2 + 2 * 1.1 + 2 = 6.2 s; 1 message: 2 + 1.1 + 3 = 6.1 s.
    assert merged_lengths([1.0, 1.0], [0.0, 2.0], with_start_up, 1.1, 2.0) == [2]


def test_merging_is_no_gain_while_backward_continues():
    """Backward ends at 20 s + its overheads, so one message, with one overhead, is best."""
    assert merged_lengths([1.0, 1.0], [0.0, 2.0], with_start_up, 0.1, 20.0) == [2]


def test_messages_by_policy():
    sizes, ready = [4.0, 0.0, 8.0, 2.0], [4.0, 3.0, 2.0, 1.0]

    def groups(policy, **limits):
        own = Synchronisation(policy, **limits)
        return [m.layers for m in messages(own, sizes, ready, second_per_byte)]

    for policy in (Policy.NONE, Policy.PER_TENSOR, Policy.PRIORITY):
        assert groups(policy) == [(3,), (2,), (0,)]
    assert groups(Policy.ONE_MESSAGE) == [(3, 2, 0)]
    for policy in (Policy.BUCKETED, Policy.SPLIT):
        assert groups(policy, first_bytes=2.0, bucket_bytes=12.0) == [(3,), (2, 0)]
        assert groups(policy, first_bytes=3.0, bucket_bytes=12.0) == [(3, 2), (0,)]
    # 2 bytes leave at 1 s until 3 s, 8 bytes until 11 s, the last after that.
    assert groups(Policy.FUSED, bucket_bytes=100.0) == [(3,), (2,), (0,)]
    sent = messages(Synchronisation(Policy.ONE_MESSAGE), sizes, ready, second_per_byte)
    assert [message.size_bytes for message in sent] == [14.0]


@given(st.sampled_from(sorted(SYNCHRONISATIONS)), st.integers(0, 5))
@example("merged", 0)
@example("priority", 1)
@example("bucketed", 3)
def test_layers_without_gradients_send_nothing(name, count):
    assert messages(SYNCHRONISATIONS[name], [0.0] * count, [0.0] * count, second_per_byte) == []


@pytest.mark.parametrize(
    ("kind", "sent", "passes"),
    [(CompressionKind.NONE, 400.0, 0), (CompressionKind.FP16, 200.0, 3)],
)
def test_compression_of_100_floats(kind, sent, passes):
    """fp16: read 4, write 2, then read 2, write 4 bytes per element: 3 passes over 4 bytes."""
    own = Compression(kind)
    assert own.sent_bytes(400.0, 4) == sent
    assert own.memory_passes == passes
    assert not own.gathers


@pytest.mark.parametrize("density", [1.0, 0.1])
def test_top_k_sends_values_and_32_bit_indices(density):
    own = Compression(CompressionKind.TOP_K, density)
    assert own.sent_bytes(400.0, 4) == pytest.approx(100 * density * 8)
    assert own.sent_bytes(200.0, 2) == pytest.approx(100 * density * 6)
    assert own.memory_passes == 5
    assert own.gathers
