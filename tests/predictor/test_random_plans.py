"""Fifteen laws on plans drawn at random; plans that are refused say what to do instead.

Networks without equal blocks are not cut into stages here: they are cut by computing time alone,
so that a device with faster memory may be given a cut that sends more (seen once, VGG-16).
"""

import math
import random
from dataclasses import replace

import pytest

from paceline.errors import PacelineError
from paceline.hardware import catalogue
from paceline.predictor.partition.tensor_parallel import is_transformer
from paceline.predictor.plan.plan import plan_for
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    Offload,
    OptimizerState,
    PipelineSchedule,
    Recompute,
)
from paceline.predictor.predict import predict
from paceline.workload.adapters import QUANTISED_BYTES, with_adapters
from paceline.workload.workload import Workload

NETWORKS = {
    "resnet50": (None, "fp32"),
    "vgg16": (None, "amp"),
    "bert_large": (384, "amp"),
    "gpt2_xl": (1024, "fp16"),
    "llama2_7b": (4096, "bf16"),
    "llama3_8b": (8192, "fp8"),
    "mixtral_8x7b": (4096, "bf16"),
}
CLUSTERS = ("dgx-1", "dgx-a100", "dgx-h100", "dgx-b200", "p4d.24xlarge", "azure-ndv5")
FRAMEWORKS = ("torch-ddp", "torch-fsdp", "deepspeed", "megatron", "nanotron", "jax", "tensorflow")
PLANS = 40
SOME = 1 + 1e-9


def drawn(dice):
    """A workload, a cluster and a plan; it may be impossible."""
    name = dice.choice(sorted(NETWORKS))
    sequence, precision = NETWORKS[name]
    cluster = catalogue.cluster(dice.choice(CLUSTERS)).with_nodes(dice.choice((1, 2, 4, 16)))
    tp, pp, cp = (dice.choice(sizes) for sizes in ((1, 1, 2, 4, 8), (1, 1, 2, 4), (1, 1, 1, 2)))
    pp = pp if sequence else 1
    micro_batch, micro_batches = dice.choice((1, 2, 4)), dice.choice((1, 4, 8))
    workload = Workload.of(name, micro_batch * micro_batches, sequence, precision)
    plan = plan_for(
        cluster.devices,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=dice.choice((1, 1, 2, 8)),
        zero=dice.choice((0, 1, 2, 3)),
        micro_batch=micro_batch,
        interleave=dice.choice((1, 1, 2)) if pp > 1 else 1,
        recompute=dice.choice(list(Recompute)),
        sequence_parallel=tp > 1 and dice.random() < 0.5,
        framework=dice.choice(FRAMEWORKS),
    )
    return workload, cluster, plan


def with_choices(dice):
    """A job with the options that divide, move or leave out more than degrees do."""
    workload, cluster, plan = drawn(dice)
    schedule = dice.choice(list(PipelineSchedule)) if plan.pp > 1 else plan.pipeline
    is_sharded = plan.zero == 3 and plan.holders > 1 and not schedule.splits_backward
    states = [each for each in Offload if each is not Offload.WEIGHTS or is_sharded]
    if schedule.splits_backward:
        plan = replace(plan, interleave=schedule.chunks_of_stage, zero=min(plan.zero, 1))
    plan = replace(
        plan,
        pipeline=schedule,
        cp_impl=dice.choice((None, *ContextForm)) if plan.cp > 1 else None,
        expert_imbalance=dice.choice((None, 1.0, 1.5)) if plan.ep > 1 else None,
        offload=dice.choice(((), *((each,) for each in states), tuple(states))),
        tp_overlap=plan.sequence_parallel and dice.random() < 0.5,
    )
    if is_transformer(workload.graph) and dice.random() < 0.3:
        short = dice.choice((None, QUANTISED_BYTES))
        adapted = with_adapters(workload.graph, dice.choice((4, 64)))
        workload = replace(workload, graph=adapted, frozen_bytes=short)
    return workload, cluster, plan


def with_links(cluster, change):
    return replace(cluster, intra=change(cluster.intra), inter=change(cluster.inter))


def faster_links(factor):
    def faster(link):
        best = link.collective_bandwidth
        return replace(
            link,
            bandwidth=link.bandwidth * factor,
            collective_bandwidth=None if best is None else best * factor,
        )

    return lambda cluster: with_links(cluster, faster)


def faster_arithmetic(factor):
    def change(cluster):
        device = cluster.device
        rates = {name: rate * factor for name, rate in device.peak_flops.items()}
        best = {name: rate * factor for name, rate in device.attainable_flops.items()}
        return replace(cluster, device=replace(device, peak_flops=rates, attainable_flops=best))

    return change


def faster_memory(factor):
    def change(cluster):
        bandwidth = cluster.device.memory_bandwidth * factor
        return replace(cluster, device=replace(cluster.device, memory_bandwidth=bandwidth))

    return change


def later_links(cluster):
    return with_links(
        cluster, lambda link: replace(link, latency_seconds=(link.latency_seconds or 0.0) + 1e-3)
    )


def crowded(cluster):
    return replace(cluster, oversubscription=4.0 * cluster.oversubscription)


NEVER_SLOWER = {
    **{f"links x {factor}": faster_links(factor) for factor in (1.5, 4, 100)},
    **{f"arithmetic x {factor}": faster_arithmetic(factor) for factor in (1.5, 4)},
    **{f"memory x {factor}": faster_memory(factor) for factor in (1.5, 4)},
}
NEVER_FASTER = {"latency + 1 ms": later_links, "oversubscription x 4": crowded}


def broken_laws(workload, cluster, plan):
    """Names of the laws that a plan breaks."""
    found = predict(workload, cluster, plan)
    seconds = found.step_seconds
    for name, change in NEVER_SLOWER.items():
        if predict(workload, change(cluster), plan).step_seconds > seconds * SOME:
            yield name
    for name, change in NEVER_FASTER.items():
        if predict(workload, change(cluster), plan).step_seconds * SOME < seconds:
            yield name
    memory = found.memory
    laws = {
        "finite": 0.0 < seconds < math.inf,
        "utilisation": found.utilisation <= 1.0,
        "interval": found.interval.low <= 1.0 <= found.interval.high,
        "repeated": predict(workload, cluster, plan).step_seconds == seconds,
        "parts of memory": min(memory.parts().values()) >= 0.0 < memory.total_bytes,
        "sum of memory": math.isclose(sum(memory.parts().values()), memory.total_bytes),
    }
    yield from (name for name, holds in laws.items() if not holds)


def in_groups(dice):
    """A job whose weights are sharded inside groups, with short momenta."""
    workload, cluster, plan = drawn(dice)
    plan = replace(
        plan,
        ep=1,
        zero=max(1, plan.zero),
        shard_group=dice.choice((2, 4, 8)),
        optimizer_state=dice.choice(list(OptimizerState)),
    )
    return workload, cluster, plan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "plans"),
    [(drawn, PLANS), (in_groups, PLANS // 2), (with_choices, PLANS)],
    ids=["all", "groups", "choices"],
)
def test_laws_on_random_plans(draw, plans):
    dice = random.Random(14)
    broken, held, refused = [], 0, 0
    while held < plans:
        try:
            job = draw(dice)
            predict(*job)
        except PacelineError as problem:
            assert problem.message and problem.hint
            refused += 1
            continue
        broken += [(job, law) for law in broken_laws(*job)]
        held += 1
    assert refused > plans // 2
    assert not broken
