import pytest

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan, plan_for
from paceline.predictor.plan.plan_choices import PipelineSchedule


def test_degrees_multiply_to_the_devices():
    plan = Plan(dp=8, tp=8, pp=4)
    assert plan.devices == 256
    assert plan.label == "dp 8 x tp 8 x pp 4"
    plan.check_devices(256)


def test_degrees_that_do_not_multiply_are_refused_with_the_missing_one():
    with pytest.raises(InputError, match="= 12, but the cluster has 16 devices") as error:
        Plan(dp=3, tp=4).check_devices(16)
    assert "--dp 4" in error.value.hint


def test_data_parallelism_takes_what_is_left():
    assert plan_for(64, tp=8, pp=2).dp == 4
    with pytest.raises(InputError, match=r"10 devices cannot be divided by tp 4"):
        plan_for(10, tp=4)


def test_experts_are_shared_among_replicas():
    assert plan_for(16, ep=8).ep == 8
    with pytest.raises(InputError, match="ep 3 does not divide tp x cp x dp = 16"):
        plan_for(16, ep=3)


@pytest.mark.parametrize(
    ("plan", "batches"),
    [
        (Plan(), (12, 1)),
        (Plan(micro_batch=4), (4, 3)),
        (Plan(micro_batches=6), (2, 6)),
        (Plan(micro_batch=3, micro_batches=4), (3, 4)),
    ],
)
def test_micro_batches_follow_from_the_batch(plan, batches):
    assert plan.batches(12) == batches


def test_micro_batches_that_do_not_make_up_the_batch_are_refused():
    with pytest.raises(InputError, match="batch per replica 12 is not 2 micro-batches of 5"):
        Plan(micro_batch=5).batches(12)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tp": 0}, "tp must be at least 1"),
        ({"zero": 4}, "zero must be 0, 1, 2 or 3"),
        ({"interleave": 2}, "needs a pipeline"),
        ({"pp": 4, "interleave": 2, "pipeline": PipelineSchedule.GPIPE}, "one chunk per stage"),
        ({"pp": 4, "stage_layers": (1, 2)}, "2 stage sizes for 4 chunks"),
        ({"micro_batch": 0}, "micro_batch must be at least 1"),
    ],
)
def test_plans_that_cannot_be_meant_are_refused(fields, words):
    with pytest.raises(InputError, match=words):
        Plan(**fields)
