"""Means of a log by hand."""

import pytest

from paceline.importers.logs.parsing.parsed_log import ParsedLog, StepRecord


@pytest.mark.parametrize(
    ("batch", "ranks", "expected"), [(64.0, 4, 16.0), (64.0, None, None), (None, 4, None)]
)
def test_batch_per_rank(batch, ranks, expected):
    assert ParsedLog("x", global_batch=batch, ranks=ranks).batch_per_rank == expected


def test_the_slowest_rank_of_each_step_counts():
    steps = (
        StepRecord(0, 9.0, warm_up=True),
        StepRecord(1, 1.0),
        StepRecord(1, 1.5),
        StepRecord(2, 2.5, count=3),
    )
    log = ParsedLog("x", steps=steps)
    assert [record.seconds for record in log.timed_steps] == [1.5, 2.5]
    assert log.step_seconds == pytest.approx((1.5 + 3 * 2.5) / 4)
    assert ParsedLog("x", steps=steps[:1]).step_seconds == 9.0
    assert ParsedLog("x").step_seconds is None
