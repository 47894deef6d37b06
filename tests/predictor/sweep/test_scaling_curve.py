"""Curves over numbers of nodes are what `predict` says of each."""

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.hardware.catalogue import cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Offload, Recompute
from paceline.predictor.sweep.scaling_curve import scaling_curve
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
        ("gpt2", "dgx-a100", "torch-fsdp", "bf16"),
        ("gpt2", "dgx-a100", "megatron-lm", "bf16"),  # sums gradients in 32 bits
        ("gpt2", "dgx-a100", "megatron-core", "bf16"),
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
            optimizer="sgd_momentum",
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
            optimizer="sgd_momentum",
            zero=zero,
            framework="torch-ddp",
        )
        assert point.step_seconds == pytest.approx(answer.step_seconds, rel=1e-9)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(recompute=Recompute.FULL),
        Plan(recompute=Recompute.FULL, zero=3),
        Plan(micro_batch=4),
        Plan(offload=(Offload.OPTIMIZER,)),
    ],
)
def test_plans_that_sweeps_would_ignore_are_refused(plan):
    workload = Workload.of("gpt2", 16, 1024, "bf16", "adam")
    with pytest.raises(InputError, match="sweep does not support"):
        scaling_curve(workload, cluster("dgx-a100"), plan, COUNTS)


def test_what_sweeps_do_not_have_is_refused():
    with pytest.raises(InputError, match="sweep does not support recompute"):
        pl.sweep("gpt2", "dgx-a100", "nodes=2..4", recompute="full")
    workload = Workload(zoo.build("resnet50"), 16, None, "fp32", "sgd_momentum")
    with pytest.raises(InputError, match="shard groups"):
        scaling_curve(workload, cluster("dgx-1"), Plan(dp=4, zero=3, shard_group=2), COUNTS)
