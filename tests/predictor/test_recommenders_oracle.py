"""Embedding tables divided among replicas: vectors in an all-to-all, by hand count.

DLRM: 187,767,399 rows of 128 in 26 fields; MLPs of 512, 256, 128 and 1,024, 1,024, 512, 256, 1.
"""

import pytest

import paceline as pl
from paceline.hardware import catalogue
from paceline.predictor.framework_profiles import framework
from paceline.predictor.partition.partition import partition
from paceline.predictor.plan.plan import Plan
from paceline.workload.workload import Workload

ROWS, WIDTH, FIELDS, BATCH = 187_767_399, 128, 26, 8192
DLRM = Workload.of("dlrm", BATCH, None, "fp32", "sgd_momentum")


def tables(name, dp=8):
    cluster = catalogue.cluster("dgx-a100").shaped(1, dp)
    parts = partition(DLRM, cluster, Plan(dp=dp), framework(name))
    kind = next(i for i, part in enumerate(parts.kinds) if part.profile.name == "fields.table")
    return parts, kind


def test_replicas_divide_the_rows_and_sum_none_of_them():
    parts, kind = tables("torchrec")
    assert parts.kinds[kind].profile.parameters == pytest.approx(ROWS * WIDTH / 8)
    assert parts.gradient_bytes[kind] == 0
    whole, position = tables("torch-ddp")
    assert whole.kinds[position].profile.parameters == ROWS * WIDTH
    assert whole.gradient_bytes[position] == BATCH * FIELDS * WIDTH * 4


def test_vectors_of_the_own_samples_travel_in_each_pass():
    parts, kind = tables("torchrec")
    (message,) = parts.kinds[kind].rows
    assert (message.operation, message.size.at(BATCH)) == ("all_to_all", BATCH * FIELDS * WIDTH * 4)
    alone, kind = tables("torchrec", dp=1)
    assert alone.kinds[kind].rows == ()


def test_dlrm_fits_because_its_tables_are_divided():
    found = pl.predict("dlrm", "dgx-a100", global_batch=65_536)
    assert found.fits and found.framework == "torchrec"
    slow = pl.predict("dlrm", "dgx-a100", global_batch=65_536, nodes=4, link="10gbit")
    assert slow.breakdown.exposed_communication_seconds > 0.5 * slow.step_seconds


def test_reading_may_limit_a_recommender_unless_its_input_time_is_known():
    job = {"model": "wide_deep_outbrain", "cluster": "dgx-1", "batch": 16_384}
    assumed, known = pl.predict(**job), pl.predict(**job, input_time="1ms")
    assert any("reading often limits recommenders" in note for note in assumed.notes)
    assert not any("reading often" in note for note in known.notes)
    assert assumed.interval.relative_error > known.interval.relative_error
