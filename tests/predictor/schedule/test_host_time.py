"""Steps that the host bounds."""

import pytest

import paceline as pl

JOB = {"device": "h100_sxm_80gb", "framework": "nanotron", "seq": 4096, "precision": "bf16"}


def step_of(**options):
    return pl.predict("llama3_1b", **JOB, **options)


def least(tp, pp, nodes):
    if pp == 1 or tp == 1 or nodes == 1:
        return max(4.7e-3, 0.51e-3 * tp)
    return 8.3e-3 + 1.2e-3 * tp + 0.105e-3 * tp**2


@pytest.mark.parametrize(("tp", "pp", "topology"), [(8, 1, "1x8"), (8, 2, "2x8"), (16, 1, "2x8")])
def test_no_block_takes_less_than_the_host(tp, pp, topology):
    micro_batches = 16
    found = step_of(
        tp=tp, pp=pp, topology=topology, batch=micro_batches, micro_batch=1, recompute="none"
    )
    nodes = int(topology[0])
    passes = (micro_batches + pp - 1) * 16 / pp
    assert found.step_seconds > 0.95 * passes * least(tp, pp, nodes)


def test_large_micro_batches_hide_the_host():
    small, large = (
        step_of(tp=2, topology="1x2", batch=16, micro_batch=size, recompute="none")
        for size in (1, 16)
    )
    assert large.step_seconds < small.step_seconds
    other = pl.predict(
        "llama3_1b", **{**JOB, "framework": "torch-ddp"}, tp=8, topology="1x8", batch=1
    )
    assert other.step_seconds < 16 * 4.7e-3, "only nanotron was measured"
