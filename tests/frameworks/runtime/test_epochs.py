"""Epochs over real data: the same samples in the same order for any number of ranks."""

import epochs
import pytest

from paceline.workload import zoo
from paceline.workload.shapes import with_shapes


def a_job(model="digits_cnn", batch=32, **changes):
    graph = with_shapes(zoo.build(model).to_json(), None)
    return {
        "graph": graph,
        "batch_per_rank": batch,
        "seed": 1,
        "data": {"kind": "digits"},
        **changes,
    }


def test_global_batch_does_not_depend_on_the_number_of_ranks():
    alone = epochs.Epochs(a_job(batch=32), 0, 1)
    both = [epochs.Epochs(a_job(batch=16), rank, 2) for rank in (0, 1)]
    assert alone.steps == both[0].steps == 1438 // 32
    for step, whole in enumerate(alone.shares(3)):
        assert whole == both[0].shares(3)[step] + both[1].shares(3)[step]
    assert alone.shares(0) != alone.shares(1)
    assert epochs.Epochs(a_job(seed=2), 0, 1).shares(0) != alone.shares(0)


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_every_test_sample_counts_once_and_ranks_have_as_many_batches(world):
    shares = [epochs.Epochs(a_job(batch=16), rank, world).test_shares() for rank in range(world)]
    assert len({len(own) for own in shares}) == 1
    counted = [index for own in shares for indices, n in own for index in indices[:n]]
    assert sorted(counted) == list(range(359))
    assert all(len(indices) == 16 for own in shares for indices, _ in own)


def test_data_that_do_not_fit_are_refused_in_one_line():
    with pytest.raises(Exception, match="fewer than a global batch of 2048"):
        epochs.Epochs(a_job(batch=1024), 0, 2)
    with pytest.raises(Exception, match="but the graph needs"):
        epochs.Epochs(a_job("resnet20"), 0, 1)
    with pytest.raises(Exception, match="one label per sample"):
        epochs.Epochs(a_job("ncf"), 0, 1)
