"""Runs of layers between messages, by hand."""

import pytest

from paceline.predictor.comm.buckets import Message
from paceline.predictor.schedule.coalesce_layers import runs_between


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([], [range(2, 7)]),
        ([(4, 3, 2, 1, 0)], [range(2, 7)]),
        ([(4, 3), (2, 1, 0)], [range(2, 5), range(5, 7)]),
        # The first two layers have no gradients: they follow the last message.
        ([(4, 3), (2,)], [range(2, 4), range(4, 5), range(5, 7)]),
        ([(4,)], [range(2, 6), range(6, 7)]),
    ],
)
def test_runs_of_layers_2_to_6(layers, expected):
    assert runs_between([Message(own, 1.0) for own in layers], 2, 7) == expected
