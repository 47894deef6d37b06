"""Weights sharded inside groups of devices and copied in others (HSDP)."""

from dataclasses import replace

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.schedule.task_schedule import HSDP_REPLICATE_LINK
from paceline.predictor.search import PlanSearch
from paceline.predictor.search.plan_variants import variations
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-a100").with_nodes(4)
WORKLOAD = Workload.of("gpt2_medium", 4, 1024, "bf16", "adam")
WHOLE = Plan(dp=32, zero=3, framework="torch-fsdp")
IN_NODES = replace(WHOLE, shard_group=8)


def prediction(plan=IN_NODES, cluster=CLUSTER, workload=WORKLOAD):
    return predict(workload, cluster, plan)


def slow(cluster, factor):
    link = cluster.inter
    best = link.collective_bandwidth
    return replace(
        cluster,
        inter=replace(
            link,
            bandwidth=link.bandwidth / factor,
            collective_bandwidth=None if best is None else best / factor,
        ),
    )


def test_one_group_of_all_is_plain_sharding():
    everyone = prediction(replace(WHOLE, shard_group=32))
    assert everyone.step_seconds == prediction(WHOLE).step_seconds
    assert everyone.memory == prediction(WHOLE).memory


def test_a_device_holds_the_share_of_its_group():
    whole, grouped = prediction(WHOLE).memory, prediction().memory
    for part in ("weights_bytes", "gradients_bytes", "optimizer_bytes"):
        assert getattr(grouped, part) == pytest.approx(4 * getattr(whole, part))
    assert grouped.activations_bytes == whole.activations_bytes


def test_only_sums_of_shards_cross_nodes():
    step = prediction().step
    crossing = [task for task, _ in step.on(HSDP_REPLICATE_LINK)]
    inside = [task for task, _ in step.on("network") if task.name.startswith("reduce-scatter")]
    assert len(crossing) == len(inside) > 0
    assert sum(task.size_bytes for task in crossing) == pytest.approx(
        sum(task.size_bytes for task in inside) / 8
    )
    before = prediction(cluster=slow(CLUSTER, 100)).step
    for name in ("all-gather", "reduce-scatter"):
        own, others = (
            [task.seconds for task, _ in each.on("network") if task.name.startswith(name)]
            for each in (step, before)
        )
        assert own == others, "a slower network leaves what stays in a node alone"


def test_messages_are_stated_by_the_link_that_they_take():
    """69 B parameters of 2 bytes: two gathers and a scatter of them stay in the node, half of the
    gradients leaves it."""
    found = pl.predict(
        "llama2_70b",
        device="a100_sxm_80gb",
        nodes=4,
        processes=2,
        link="100gbit",
        nics=1,
        precision="bf16",
        framework="torch-fsdp",
        zero=3,
        shard_group=2,
        batch=1,
        recompute="none",
    )
    inside, crossing = found.bound_by.removeprefix("network: ").split(", ")
    assert inside.startswith("414 GB over nvlink3 takes")
    assert crossing.startswith("69.0 GB over 100gbit takes 1")
    crossed = sum(task.seconds for task, _ in found.step.on(HSDP_REPLICATE_LINK))
    # An all-reduce among 4 nodes sends 2 x 3/4 of a shard; the two devices share the card.
    by_hand = 2 * 3 / 4 * 69e9 / (0.92 * 12.5e9 / 2)
    assert crossed == pytest.approx(by_hand, rel=0.15)


def test_a_group_larger_than_a_node_has_no_link_to_itself():
    step = prediction(replace(WHOLE, shard_group=16)).step
    assert not step.on(HSDP_REPLICATE_LINK)
    assert any(task.name.startswith("all-reduce shards") for task, _ in step.on("network"))


def test_on_a_slow_network_groups_inside_nodes_win():
    cluster = slow(CLUSTER, 16)
    assert prediction(cluster=cluster).step_seconds < prediction(WHOLE, cluster).step_seconds


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize(("dp", "pp"), [(32, 1), (16, 2)])
def test_a_slower_network_never_makes_it_faster(zero, dp, pp):
    plan = Plan(dp=dp, pp=pp, zero=zero, micro_batch=1, shard_group=8)
    steps = [prediction(plan, slow(CLUSTER, factor)).step_seconds for factor in (1, 4, 64)]
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def test_micro_batches_sum_again_each():
    def seconds(count):
        workload = WORKLOAD.with_batch(4 * count)
        plan = replace(IN_NODES, micro_batch=4)
        return prediction(plan, slow(CLUSTER, 64), workload).step_seconds

    assert seconds(4) > 3.5 * seconds(1)


def test_context_parallel_devices_belong_to_a_group():
    found = prediction(Plan(dp=16, cp=2, zero=3, shard_group=8))
    assert found.ideal_seconds > 0
    with pytest.raises(InputError, match="shard_group 2"):
        Plan(dp=8, cp=4, zero=3, shard_group=2)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_groups_that_do_not_divide_are_refused(size):
    with pytest.raises(InputError, match=f"shard_group {size}") as caught:
        replace(WHOLE, shard_group=size)
    assert "divisor of 32" in caught.value.hint


def test_groups_without_sharding_are_refused():
    with pytest.raises(InputError, match="needs --zero") as caught:
        prediction(Plan(dp=32, shard_group=8))
    assert "--zero 3" in caught.value.hint


def test_groups_and_shared_out_experts_are_refused():
    with pytest.raises(InputError, match="not supported"):
        Plan(dp=32, ep=8, zero=3, shard_group=8)


def test_frameworks_that_shard_need_no_stage():
    assert prediction(replace(IN_NODES, zero=0)).step_seconds == prediction().step_seconds


def test_advice_tries_groups_of_a_node():
    search = PlanSearch(WORKLOAD, CLUSTER, 128, like=Plan(framework="torch-fsdp"))
    (found,) = [own for own in variations(search, [WHOLE]) if own.plan.shard_copies > 1]
    assert found.plan.shard_group == 8
    assert found.seconds == predict(WORKLOAD, CLUSTER, IN_NODES).step_seconds
    with pytest.raises(InputError, match="do not model shard_group"):
        replace(search, like=replace(search.like, shard_group=8, dp=8))
