import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import UnknownNameError
from paceline.predictor.memory.memory_parts import (
    buffer_bytes,
    micro_batches_held,
    optimizer_bytes_per_parameter,
    sharded_bytes,
)
from paceline.workload.precision import precision


def test_mixed_precision_adam_takes_16_bytes_per_parameter():
    widths = precision("bf16")
    state = optimizer_bytes_per_parameter("adam", widths)
    assert widths.weight_bytes + widths.gradient_bytes + state == 16


def test_an_unknown_optimizer_is_named():
    with pytest.raises(UnknownNameError, match=r"no optimizer named 'adma'\. Did you mean adam"):
        optimizer_bytes_per_parameter("adma", precision("fp32"))


@given(st.integers(0, 3), st.integers(1, 3), st.integers(1, 512))
def test_sharding_never_adds_memory(zero, stage, shards):
    one = float(sharded_bytes(1e9, stage, zero, shards))
    assert one <= 1e9
    assert float(sharded_bytes(1e9, stage, zero, shards + 1)) <= one


@given(st.integers(1, 8), st.integers(1, 64), st.integers(1, 4))
def test_one_f_one_b_never_holds_more_than_gpipe(pp, micro_batches, interleave):
    for stage in range(pp):
        held = float(micro_batches_held(stage, pp, micro_batches, interleave, False))
        assert 0 < held <= float(micro_batches_held(stage, pp, micro_batches, 1, True))


def test_the_first_stage_holds_most():
    held = [float(micro_batches_held(stage, 4, 16, 1, False)) for stage in range(4)]
    assert held == [4, 3, 2, 1]
    assert float(micro_batches_held(0, 4, 16, 2, False)) == pytest.approx(5.5)


def test_arrays_are_taken_too():
    zero = np.array([0, 1, 2, 3])
    assert sharded_bytes(8.0, 2, zero, 4) == pytest.approx([8, 8, 2, 2])
    assert buffer_bytes(100.0, 25.0, 7.0, zero) == pytest.approx([25, 25, 25, 14])


def test_gradients_copied_into_buckets_are_there_twice_until_they_are_sharded():
    zero = np.array([0, 1, 2, 3])
    copied = buffer_bytes(100.0, 25.0, 7.0, zero, copies_gradients=True)
    assert copied == pytest.approx([100, 100, 25, 14])
