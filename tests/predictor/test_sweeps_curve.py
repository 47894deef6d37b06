"""Curves over numbers of nodes are what `predict` says of each."""

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.hardware.catalogue import cluster
from paceline.plan.plan import Plan
from paceline.predictor.sweeps.curve import scaling_curve
from paceline.workload import zoo
from paceline.workload.workload import Workload

COUNTS = (2, 3, 8, 17, 64)


@pytest.mark.parametrize(
    ("model", "place", "framework", "precision"),
    [
        ("resnet50", "dgx-1", "torch-ddp", "fp32"),
        ("resnet50", "hkbu-v100-pcie", "mxnet", "amp_fp16"),
        ("bert_large", "dgx-a100", "torch-ddp", "bf16"),
        ("vgg16", "hkbu-v100-pcie", "tensorflow", "fp32"),
    ],
)
def test_every_point_is_the_answer_of_predict(model, place, framework, precision):
    workload = Workload(zoo.build(model), 16, None, precision, "sgd_momentum")
    plan = Plan(framework=framework)
    for point in scaling_curve(workload, cluster(place), plan, COUNTS):
        answer = pl.predict(
            model,
            place,
            batch=16,
            nodes=point.nodes,
            precision=precision,
            framework=framework,
            optimiser="sgd_momentum",
        )
        assert point.step_seconds == pytest.approx(answer.step_seconds, rel=1e-9)
        assert point.interval.low == pytest.approx(answer.interval.low, rel=1e-9)
        assert point.interval.high == pytest.approx(answer.interval.high, rel=1e-9)


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_sharded_points_are_the_answers_of_predict_too(zero):
    workload = Workload.of("resnet50", 16, None, "fp16", "sgd_momentum")
    for point in scaling_curve(workload, cluster("dgx-1"), Plan(zero=zero), COUNTS):
        answer = pl.predict(
            "resnet50",
            "dgx-1",
            batch=16,
            nodes=point.nodes,
            precision="fp16",
            optimiser="sgd_momentum",
            zero=zero,
        )
        assert point.step_seconds == pytest.approx(answer.step_seconds, rel=1e-9)


def test_what_sweeps_do_not_have_is_refused():
    workload = Workload(zoo.build("resnet50"), 16, None, "fp32", "sgd_momentum")
    with pytest.raises(InputError, match="groups of shards"):
        scaling_curve(workload, cluster("dgx-1"), Plan(dp=4, zero=3, shard_group=2), COUNTS)
