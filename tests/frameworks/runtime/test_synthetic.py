"""The generator against its published definition, and its array form against its integer form."""

import array

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

seeds = st.integers(0, 2**64 - 1)
keys = st.integers(0, 2**64 - 1)
indices = st.integers(0, 2**40)


def test_the_finaliser_is_splitmix64s():
    # The reference implementation seeded with 0 gives these two first outputs.
    assert synthetic.word(0, 0) == 0xE220A8397B1DCDAF
    assert synthetic.word(0, 1) == 0x6E789E6AA1B965F4


def test_the_stream_hash_is_fnv1a():
    # 64-bit FNV-1a of "a" is af63dc4c8601ec8c; with a seed of 0, mix(0) = 0.
    assert synthetic.stream_key(0, "a") == synthetic.mix(0xAF63DC4C8601EC8C)


def test_numbers_that_another_framework_must_reproduce():
    key = synthetic.stream_key(7, "input/image")
    assert [synthetic.integer(key, index, 1000) for index in range(6)] == [
        470,
        77,
        245,
        389,
        859,
        683,
    ]
    assert synthetic.real(key, 5) == pytest.approx(-0.63268876, abs=1e-8)


@given(keys, indices)
def test_numpy_and_torch_arrays_give_equal_words(key, start):
    torch = pytest.importorskip("torch")
    expected = [synthetic.word(key, start + offset) for offset in range(20)]
    with_numpy = synthetic.array_words(key, np.arange(start, start + 20, dtype=np.int64))
    with_torch = synthetic.array_words(key, torch.arange(start, start + 20))
    assert [int(word) % 2**64 for word in with_numpy] == expected
    assert [int(word) % 2**64 for word in with_torch] == expected


@given(keys, indices, st.integers(1, 2**31 - 1))
def test_arrays_give_the_same_reals_and_integers_bit_for_bit(key, start, bound):
    words = synthetic.array_words(key, np.arange(start, start + 20, dtype=np.int64))
    reals = synthetic.reals_from_words(words).astype(np.float32) * np.float32(synthetic.REAL_STEP)
    assert reals.tobytes() == synthetic.reals(key, start, 20).tobytes()
    integers = synthetic.integers_from_words(words, bound)
    assert integers.tolist() == synthetic.integers(key, start, 20, bound).tolist()


@given(seeds, indices)
def test_reals_are_exact_in_single_precision_and_inside_their_interval(seed, index):
    value = synthetic.real(synthetic.stream_key(seed, "x"), index)
    assert -1.0 <= value < 1.0
    assert array.array("f", [value])[0] == value


@given(keys, st.integers(1, 1000), st.integers(0, 1000))
def test_any_part_of_a_stream_can_be_made_alone(key, start, index):
    whole = synthetic.reals(key, 0, start + 5)
    assert synthetic.reals(key, start, 5) == whole[start:]


def test_reals_and_integers_are_spread_evenly():
    key = synthetic.stream_key(1, "even")
    words = synthetic.array_words(key, np.arange(1_000_000, dtype=np.int64))
    reals = synthetic.reals_from_words(words) * synthetic.REAL_STEP
    assert abs(reals.mean()) < 0.003  # five standard errors of a uniform on [-1, 1)
    assert abs(reals.std() - 3**-0.5) < 0.002
    counts = np.bincount(synthetic.integers_from_words(words, 10), minlength=10)
    assert abs(counts - 100_000).max() < 1500
    assert abs(np.corrcoef(reals[1:], reals[:-1])[0, 1]) < 0.005


def test_streams_differ_by_name_and_by_seed():
    names = {synthetic.stream_key(seed, name) for seed in range(100) for name in ("a", "b", "ab")}
    assert len(names) == 300


def test_a_shuffled_order_holds_every_number_once_and_changes_with_the_epoch():
    first, second = (synthetic.shuffled(100, seed=3, epoch=epoch) for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second


def test_initial_weights_preserve_the_variance_of_inputs():
    # He: variance 2 / fan_in is a half-width of sqrt(6 / fan_in).
    scale = synthetic.initial_scale("conv1.weight", [64, 3, 7, 7], "conv")
    assert scale == pytest.approx((6 / 147) ** 0.5, rel=1e-7)
    assert synthetic.initial_scale("fc.bias", [10], "linear") == 0.0
    assert synthetic.starts_at_one("bn1.weight", "batch_norm")
    assert not synthetic.starts_at_one("bn1.bias", "batch_norm")
