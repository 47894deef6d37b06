"""Both sides of every check of a plan, and its derived numbers."""

from dataclasses import replace

import pytest

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan, plan_for
from paceline.predictor.plan.plan_choices import Module, Offload, PipelineSchedule, Recompute
from paceline.predictor.plan.sync_policy import MIB, Policy, Synchronisation
from paceline.predictor.plan.validate_for_model import check_possible, check_recomputation
from paceline.predictor.target_efficiency import _least_factor
from paceline.workload import zoo

GPIPE, ZB_H1 = PipelineSchedule.GPIPE, PipelineSchedule.ZERO_BUBBLE
DUALPIPE = PipelineSchedule.DUALPIPE


@pytest.mark.parametrize(
    ("fits", "wrong"),
    [
        ({"dp": 1}, {"dp": 0}),
        ({"micro_batch": 1}, {"micro_batch": 0}),
        ({"recompute": Recompute.FULL, "recompute_every": 1}, {"recompute_every": 0}),
        ({"recompute": Recompute.FULL, "recompute_every": 2}, {"recompute_every": 2}),
        ({"zero": 3}, {"zero": 4}),
        ({"zero": 0}, {"zero": -1}),
        ({"dp": 2, "cp": 2, "ep": 4}, {"dp": 2, "cp": 2, "ep": 3}),
        ({"pp": 2, "interleave": 2}, {"pp": 1, "interleave": 2}),
        ({"pp": 2, "pipeline": GPIPE}, {"pp": 2, "pipeline": GPIPE, "interleave": 2}),
        ({"pp": 2, "stage_layers": (3, 1)}, {"pp": 2, "stage_layers": (3, 1, 1)}),
        (
            {"pp": 2, "interleave": 2, "stage_layers": (1, 1, 1, 2)},
            {"pp": 2, "interleave": 2, "stage_layers": (1, 1)},
        ),
        ({"pp": 2, "pipeline": ZB_H1}, {"pp": 1, "pipeline": ZB_H1}),
        ({"pp": 2, "pipeline": ZB_H1}, {"pp": 2, "pipeline": ZB_H1, "interleave": 2}),
        (
            {"pp": 2, "pipeline": DUALPIPE, "interleave": 2},
            {"pp": 2, "pipeline": DUALPIPE, "interleave": 1},
        ),
        (
            {"pp": 2, "pipeline": ZB_H1, "dp": 2, "zero": 1},
            {"pp": 2, "pipeline": ZB_H1, "dp": 2, "zero": 2},
        ),
        ({"dp": 8, "shard_group": 2}, {"dp": 8, "shard_group": 1}),
        ({"dp": 8, "shard_group": 4}, {"dp": 8, "shard_group": 3}),
        ({"dp": 4, "cp": 2, "shard_group": 4}, {"dp": 9, "cp": 2, "shard_group": 3}),
        ({"dp": 8, "ep": 2, "shard_group": 8}, {"dp": 8, "ep": 2, "shard_group": 4}),
        ({"dp": 4, "ep": 4, "expert_imbalance": 1.0}, {"dp": 4, "expert_imbalance": 1.0}),
        (
            {"dp": 4, "ep": 4, "expert_imbalance": 4.0},
            {"dp": 4, "ep": 4, "expert_imbalance": 4.1},
        ),
        (
            {"dp": 4, "ep": 4, "expert_imbalance": 1.0},
            {"dp": 4, "ep": 4, "expert_imbalance": 0.9},
        ),
        (
            {"offload": (Offload.ACTIVATIONS,)},
            {"pp": 2, "offload": (Offload.ACTIVATIONS,)},
        ),
        ({"tp": 2, "sequence_parallel": True, "tp_overlap": True}, {"tp": 2, "tp_overlap": True}),
        (
            {"tp": 2, "sequence_parallel": True, "tp_overlap": True},
            {"tp": 1, "sequence_parallel": True, "tp_overlap": True},
        ),
    ],
)
def test_both_sides(fits, wrong):
    Plan(**fits)
    with pytest.raises(InputError):
        Plan(**wrong)


def test_derived_numbers():
    plan = Plan(dp=4, tp=2, pp=3, cp=2, interleave=5, zero=3, shard_group=4)
    assert (plan.devices, plan.chunks, plan.holders) == (48, 15, 8)
    assert (plan.shard_degree, plan.shard_copies) == (4, 2)
    assert plan.label == "dp 4 x tp 2 x pp 3 x cp 2 x shard 4"
    assert Plan().label == "dp 1"
    assert Plan(dp=4, ep=2).label == "dp 4 x ep 2"
    assert Plan(dp=4).shard_copies == 1
    assert Plan(recompute=Recompute.FULL, recompute_every=3).format_recompute == "every:3"
    assert Plan(recompute=Recompute.FULL).format_recompute == "full"


@pytest.mark.parametrize(
    ("fields", "batch", "expected"),
    [
        ({}, 12, (12, 1)),
        ({"micro_batch": 4}, 12, (4, 3)),
        ({"micro_batches": 4}, 12, (3, 4)),
        ({"micro_batch": 2, "micro_batches": 6}, 12, (2, 6)),
        ({"micro_batch": 5}, 12, None),
        ({"micro_batch": 24}, 12, None),
        ({"micro_batches": 24}, 12, None),
        ({"micro_batch": 3, "micro_batches": 3}, 12, None),
    ],
)
def test_micro_batches(fields, batch, expected):
    if expected is None:
        with pytest.raises(InputError):
            Plan(**fields).batches(batch)
    else:
        assert Plan(**fields).batches(batch) == expected


def test_plans_for_devices():
    assert plan_for(16, tp=2, pp=2).dp == 4
    assert plan_for(16, tp=2, pp=2, dp=4, ep=2).ep == 2
    with pytest.raises(InputError, match="cannot be divided"):
        plan_for(10, tp=4)
    with pytest.raises(InputError, match="has 16 devices"):
        plan_for(16, tp=2, dp=4)


def test_reduced_plans():
    plan = Plan(
        dp=4,
        tp=2,
        pp=2,
        cp=2,
        ep=2,
        micro_batch=1,
        sequence_parallel=True,
        tp_overlap=True,
        recompute=Recompute.FULL,
        recompute_every=2,
        zero=1,
        fused_attention=False,
    )
    alone = plan.on_one_device()
    assert alone == Plan(
        micro_batch=1, recompute=Recompute.FULL, recompute_every=2, fused_attention=False
    )
    whole = plan.undivided()
    assert (whole.dp, whole.tp, whole.pp, whole.cp, whole.ep) == (4, 1, 2, 1, 2)
    assert whole.expert_imbalance == 1.0
    assert replace(plan, dp=1, ep=4).undivided().ep == 1, (
        "one replica has no devices to divide over"
    )
    assert not whole.sequence_parallel
    assert not whole.tp_overlap
    assert whole.recompute_every == 2


def test_synchronisation_sizes():
    """PyTorch DDP: 1 MiB, then 25 MiB; ByteScheduler's pieces of 4 MiB."""
    usual = Synchronisation()
    assert (usual.first_bytes, usual.bucket_bytes, usual.piece_bytes) == (
        1 * 2**20,
        25 * 2**20,
        4 * 2**20,
    )
    small = usual.with_bucket(2 * MIB)
    assert small.first_bytes == small.bucket_bytes == small.piece_bytes == 2 * 2**20
    late = {policy for policy in Policy if Synchronisation(policy).leaves_after_backward}
    assert late == {Policy.NONE, Policy.ONE_MESSAGE}
    timed = {policy for policy in Policy if Synchronisation(policy).groups_by_times}
    assert timed == {Policy.FUSED, Policy.MERGED}
    for field in ("first_bytes", "bucket_bytes", "piece_bytes"):
        with pytest.raises(InputError):
            Synchronisation(**{field: 0.0})
    for field in ("every_steps", "servers"):
        Synchronisation(**{field: 1})
        with pytest.raises(InputError):
            Synchronisation(**{field: 0})


@pytest.mark.parametrize(
    ("model", "sequence", "fits", "wrong"),
    [
        ("gpt2", 1024, {"tp": 4}, {"tp": 8}),
        ("gpt2", 1024, {"cp": 4}, {"cp": 3}),
        ("resnet50", None, {"tp": 2}, {"cp": 2}),
        ("mixtral_8x7b", 128, {"dp": 8, "ep": 8}, {"dp": 16, "ep": 16}),
        ("mixtral_8x7b", 128, {"dp": 4, "ep": 4}, {"dp": 3, "ep": 3}),
        ("gpt2", 1024, {"dp": 2}, {"dp": 2, "ep": 2}),
    ],
)
def test_degrees_for_a_network(model, sequence, fits, wrong):
    graph = zoo.build(model)
    check_possible(Plan(**fits), graph, sequence)
    with pytest.raises(InputError):
        check_possible(Plan(**wrong), graph, sequence)


FULL = {"recompute": Recompute.FULL}
SELECTIVE = {"recompute": Recompute.SELECTIVE}


@pytest.mark.parametrize(
    ("model", "fits", "wrong"),
    [
        ("gpt2", SELECTIVE, {**SELECTIVE, "recompute_modules": (Module.MOE,)}),
        ("gpt2", {**FULL, "recompute_every": 12}, {**FULL, "recompute_every": 13}),
        ("resnet50", FULL, {**SELECTIVE, "fused_attention": False}),
        ("fcn5", {}, FULL),
    ],
)
def test_recomputation_of_a_network(model, fits, wrong):
    graph = zoo.build(model)
    check_recomputation(Plan(**fits), graph)
    with pytest.raises(InputError):
        check_recomputation(Plan(**wrong), graph)


@pytest.mark.parametrize(("target", "factor"), [(0.5, 1.0), (0.8, 4.0), (0.1, 1 / 9)])
def test_least_bandwidth_for_an_efficiency(target, factor):
    """Efficiency x / (1 + x) reaches e at x = e / (1 - e)."""
    found, reached = _least_factor(lambda x: x / (1 + x), target)
    assert found == pytest.approx(factor, rel=1e-6)
    assert reached == pytest.approx(target, rel=1e-6)


def test_efficiencies_out_of_reach():
    assert _least_factor(lambda x: 0.5 * x / (1 + x), 0.6) == (None, pytest.approx(0.5, rel=1e-5))
