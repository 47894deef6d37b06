"""Sharded data parallelism inside pipelines: what is exchanged again for every micro-batch."""

from dataclasses import replace

import pytest

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.workload.workload import Workload

PLAN = Plan(dp=8, pp=2, micro_batch=1, framework="torch-ddp")
CLUSTER = catalogue.cluster("dgx-a100").with_nodes(2)
WORKLOAD = Workload.of("gpt2", 8, 1024, "fp16", "adam")


def prediction(zero, workload=WORKLOAD):
    return predict(workload, CLUSTER, replace(PLAN, zero=zero))


def bytes_per_micro_batch(zero):
    """What the first stage sends more for one micro-batch more, to its replicas."""

    def sent(batch):
        step = prediction(zero, WORKLOAD.with_batch(batch)).step
        return sum(task.size_bytes for task, _ in step.on("network", 0))

    return (sent(16) - sent(8)) / 8


def test_gradients_are_scattered_in_every_micro_batch_from_stage_2_on():
    assert bytes_per_micro_batch(1) == 0
    embedding, half = (50257 + 1024) * 768, 6 * 12 * 768**2
    assert bytes_per_micro_batch(2) == pytest.approx(2 * (embedding + half), rel=0.01)


def test_weights_are_gathered_for_every_forward_and_every_backward():
    assert bytes_per_micro_batch(3) == pytest.approx(3 * bytes_per_micro_batch(2))


def test_sharding_more_in_a_pipeline_takes_longer_and_holds_less():
    steps = [prediction(zero).step_seconds for zero in (1, 2, 3)]
    assert steps == sorted(steps)
    first, _, third = (prediction(zero).memory for zero in (1, 2, 3))
    assert float(third.weights_bytes) == pytest.approx(float(first.weights_bytes) / 8)
    assert float(third.total_bytes) < float(first.total_bytes)


def test_experts_are_sharded_among_those_that_hold_the_same_ones():
    workload = Workload.of("mixtral_8x7b", 1, 512, "bf16", "adam")
    plan = Plan(dp=8, tp=2, zero=1, micro_batch=1)
    together = predict(workload, CLUSTER, plan)
    apart = predict(workload, CLUSTER, replace(plan, ep=8))
    # Shared out among 8 devices, experts have one holder each: nothing is left to shard.
    assert float(apart.memory.optimizer_bytes) == pytest.approx(
        float(together.memory.optimizer_bytes)
    )
    assert float(apart.memory.weights_bytes) < 0.3 * float(together.memory.weights_bytes)
