"""Laws that every prediction obeys, whatever the network, the cluster and the plan."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.hardware import catalogue
from paceline.predictor.comm.library import library
from paceline.predictor.evidence import Evidence
from paceline.predictor.framework_profiles import framework
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, synchronisation
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.step import Phase
from paceline.workload.workload import Workload

CLUSTER = catalogue.cluster("dgx-1")
NETWORKS = {
    "resnet44": Workload.of("resnet44", 16),
    "alexnet": Workload.of("alexnet", 16),
    "bert_h512_l4": Workload.of("bert_h512_l4", 16, 64),
    "gpt_h512_l8": Workload.of("gpt_h512_l8", 16, 128, "fp16", "adam"),
}
PLANS = st.sampled_from(
    [
        Plan(dp=16),
        Plan(dp=16, zero=1),
        Plan(dp=16, zero=2, micro_batch=4),
        Plan(dp=16, zero=3),
        Plan(dp=8, tp=2),
        Plan(dp=4, tp=4, zero=1),
        Plan(dp=4, pp=4, micro_batch=2),
        Plan(dp=2, tp=2, pp=4, micro_batch=4),
        Plan(dp=8, micro_batches=4, cp=2),
        Plan(dp=16, recompute=Recompute.FULL),
    ]
)
NAMES = st.sampled_from(sorted(NETWORKS))
POLICIES = st.sampled_from([None, *sorted(SYNCHRONISATIONS)])
LAW = settings(max_examples=15, deadline=None)


def possible(plan, workload):
    """The plan, with replicas in place of divided tokens where a network has no tokens."""
    return plan if workload.graph.uses_sequence else replace(plan, dp=plan.dp * plan.cp, cp=1)


def prediction(name, plan, policy=None, cluster=CLUSTER, batch=None, corrections=None):
    workload = NETWORKS[name] if batch is None else NETWORKS[name].with_batch(batch)
    chosen = None if policy is None else synchronisation(policy)
    chosen_plan = replace(possible(plan, workload), synchronisation=chosen)
    return predict(workload, cluster.with_nodes(2), chosen_plan, corrections=corrections)


def faster_links(cluster, factor):
    def faster(link):
        measured = link.collective_bandwidth
        return replace(
            link,
            bandwidth=link.bandwidth * factor,
            collective_bandwidth=None if measured is None else measured * factor,
        )

    return replace(cluster, intra=faster(cluster.intra), inter=faster(cluster.inter))


def faster_arithmetic(cluster, factor):
    device = cluster.device
    rates = {name: rate * factor for name, rate in device.peak_flops.items()}
    best = {name: rate * factor for name, rate in device.attainable_flops.items()}
    return replace(cluster, device=replace(device, peak_flops=rates, attainable_flops=best))


@LAW
@given(NAMES, PLANS, POLICIES)
def test_never_below_the_bounds_of_arithmetic_lanes_and_peak(name, plan, policy):
    found = prediction(name, plan, policy)
    lanes: dict[tuple[int, str], float] = {}
    for task in found.step.tasks:
        lane = (task.rank, task.resource)
        lanes[lane] = lanes.get(lane, 0.0) + task.seconds
    assert found.step_seconds >= max(lanes.values()) * (1 - 1e-9)
    assert found.utilisation <= 1
    peak = CLUSTER.device.peak(found.workload.precision)
    assert found.step_seconds >= found.training_flops / (peak * found.devices) * (1 - 1e-9)


@LAW
@given(NAMES, PLANS, st.floats(1, 8))
def test_faster_links_never_slow_a_step(name, plan, factor):
    slow = prediction(name, plan)
    fast = prediction(name, plan, cluster=faster_links(CLUSTER, factor))
    assert fast.step_seconds <= slow.step_seconds * (1 + 1e-9)


@LAW
@given(NAMES, PLANS, st.floats(1, 8))
def test_faster_arithmetic_never_slows_a_step(name, plan, factor):
    slow = prediction(name, plan)
    fast = prediction(name, plan, cluster=faster_arithmetic(CLUSTER, factor))
    assert fast.step_seconds <= slow.step_seconds * (1 + 1e-9)


@LAW
@given(NAMES, st.sampled_from(["per_tensor", "bucketed", "merged"]))
def test_overlap_never_slows_a_step_that_computes_undisturbed(name, policy):
    calm = replace(
        framework("torch-ddp"),
        message_overhead_seconds=0.0,
        accelerator_library=replace(
            library("nccl"), interference=0.0, message_overhead_seconds=0.0
        ),
    )
    plan = Plan(dp=16, framework=calm)
    # The same messages, sent under backward or after it.
    groups = {"per_tensor": "none", "bucketed": "one_message", "merged": "one_message"}
    overlapped = prediction(name, plan, policy)
    after = prediction(name, plan, groups[policy])
    messages = [
        sum(task.seconds for task, _ in found.step.on("network")) for found in (overlapped, after)
    ]
    assert (
        overlapped.step_seconds - after.step_seconds <= max(0.0, messages[0] - messages[1]) + 1e-9
    )


@LAW
@given(NAMES, POLICIES)
def test_one_device_communicates_nothing(name, policy):
    chosen = None if policy is None else synchronisation(policy)
    alone = predict(NETWORKS[name], CLUSTER.shaped(1, 1), Plan(synchronisation=chosen))
    assert not [task for task in alone.step.tasks if task.phase is Phase.COMMUNICATE]
    assert alone.efficiency == pytest.approx(1.0, abs=0.02)


@LAW
@given(NAMES, st.sampled_from(["one_message", "bucketed", "per_tensor"]), st.floats(0.25, 4))
def test_scaling_every_rate_scales_the_step(name, policy, k):
    """Without corrections: what they add per step is a time, and no rate."""

    def timeless(which):
        """The library without times of its own: only rates are left."""
        profile = library(which)
        variants = tuple(replace(v, start_seconds=0.0, hop_seconds={}) for v in profile.variants)
        return replace(profile, variants=variants, message_overhead_seconds=0.0)

    bare = replace(
        framework("torch-ddp"),
        accelerator_library=timeless("nccl"),
        dispatch_seconds=0.0,
        step_overhead_seconds=0.0,
        message_overhead_seconds=0.0,
        tensor_overhead_seconds=0.0,
    )

    def scaled(factor):
        cluster = faster_arithmetic(faster_links(CLUSTER, factor), factor)
        device = replace(
            cluster.device,
            memory_bandwidth=cluster.device.memory_bandwidth * factor,
            launch_overhead_seconds=0.0,
        )
        links = {
            "intra": replace(cluster.intra, latency_seconds=0.0),
            "inter": replace(cluster.inter, latency_seconds=0.0),
            "host": replace(cluster.host, bandwidth=cluster.host.bandwidth * factor),
        }
        place = replace(cluster, device=device, **links)
        plan = Plan(dp=16, framework=bare)
        return prediction(name, plan, policy, cluster=place, corrections=NO_CORRECTIONS)

    assert scaled(k).step_seconds == pytest.approx(scaled(1.0).step_seconds / k, rel=1e-6)


@LAW
@given(NAMES, PLANS, st.integers(1, 3))
def test_memory_grows_with_the_batch(name, plan, times):
    small = prediction(name, plan)
    large = prediction(name, plan, batch=16 * 2**times)
    assert large.memory.total_bytes >= small.memory.total_bytes
    assert large.memory.weights_bytes == small.memory.weights_bytes


@LAW
@given(NAMES, st.integers(1, 3), st.sampled_from([1, 2, 4, 8]))
def test_memory_never_rises_with_the_shard_degree(name, zero, nodes):
    def total(count):
        plan = Plan(dp=8 * count, zero=zero)
        memory = predict(NETWORKS[name], CLUSTER.with_nodes(count), plan).memory
        return memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes

    assert total(2 * nodes) <= total(nodes)
    unsharded = predict(NETWORKS[name], CLUSTER.with_nodes(nodes), Plan(dp=8 * nodes)).memory
    assert total(nodes) <= (
        unsharded.weights_bytes + unsharded.gradients_bytes + unsharded.optimizer_bytes
    )


@LAW
@given(NAMES, PLANS)
def test_more_jitter_means_more_waiting(name, plan):
    workload, cluster = NETWORKS[name], CLUSTER.with_nodes(2)
    plan = possible(plan, workload)
    calm = predict(workload, cluster, plan, evidence=Evidence(spread=0.0))
    some = predict(workload, cluster, plan, evidence=Evidence(spread=0.05))
    assert some.step_seconds > calm.step_seconds
    assert some.waiting_seconds > 0 == calm.waiting_seconds
