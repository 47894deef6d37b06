"""Experts folded over tensor parallelism: parameters, work and messages by hand count.

Mixtral 8x7B: 32 blocks, width 4,096, 8 experts of three 4,096 x 14,336 matrices, 2 per token.
"""

from dataclasses import replace

import pytest

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.comm.expert_messages import relative_gradient_cost, sent_share
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.framework_profiles import framework
from paceline.predictor.partition.partition import partition
from paceline.predictor.partition.rank_layout import layout_of
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ExpertDispatch
from paceline.predictor.predict import predict
from paceline.workload.workload import Workload

MIXTRAL = Workload.of("mixtral_8x7b", 1, 4096, "bf16", "adam")
H100 = catalogue.cluster("dgx-h100")
EXPERT = 3 * 4096 * 14_336
TOKENS, WIDTH, COPIES, BYTES = 4096, 4096, 2, 2


def experts_of(**degrees):
    plan = Plan(**{"zero": 1, "micro_batch": 1, **degrees})
    cluster = H100.with_devices(plan.devices)
    parts = partition(MIXTRAL, cluster, plan, framework("megatron-lm"))
    return next(part for part in parts.kinds if part.is_expert), parts


@pytest.mark.parametrize(
    ("degrees", "experts"),
    [
        ({"dp": 8, "ep": 8}, 1.0),
        ({"tp": 8, "ep": 8, "sequence_parallel": True}, 1.0),
        ({"tp": 4, "dp": 2, "ep": 8, "sequence_parallel": True}, 1.0),
        ({"tp": 4, "dp": 2, "ep": 2, "etp": 4, "sequence_parallel": True}, 1.0),
        ({"tp": 4, "dp": 4, "ep": 4, "etp": 2, "sequence_parallel": True}, 1.0),
        ({"tp": 4, "dp": 4, "ep": 2, "etp": 2, "sequence_parallel": True}, 2.0),
    ],
)
def test_a_device_holds_its_experts(degrees, experts):
    part, _ = experts_of(**degrees)
    weights = sum(size for name, size in part.profile.tensors if name != "router")
    assert weights == pytest.approx(experts * EXPERT)


@pytest.mark.parametrize("etp", [1, 2, 8])
@pytest.mark.parametrize("ep", [2, 4])
def test_every_division_computes_the_same_share(etp, ep):
    """A device computes the routed copies of its own 1/tp of the tokens."""
    part, _ = experts_of(tp=8, dp=4, ep=ep, etp=etp, sequence_parallel=True)
    flops = sum(float(gemm.flops.per_sample) for gemm in part.profile.forward_gemms[1:])
    assert flops == pytest.approx(2 * TOKENS / 8 * COPIES * EXPERT)


def test_folded_experts_send_tokens_and_sum_nothing():
    """The layer sends 1/tp of its tokens twice in each pass; tensor parallelism adds nothing."""
    part, _ = experts_of(tp=8, dp=2, ep=8, sequence_parallel=True)
    sent = COPIES * TOKENS / 8 * WIDTH * BYTES
    assert [float(m.size.per_sample) for m in part.expert_forward] == [sent, sent]
    assert part.tensor_forward == part.tensor_backward == part.expert_tensor == ()


def test_devices_of_one_expert_gather_its_tokens():
    part, _ = experts_of(tp=8, dp=2, ep=8, etp=2, sequence_parallel=True)
    gathered = 2 * COPIES * TOKENS / 8 * WIDTH * BYTES
    messages = [(m.operation, float(m.size.per_sample)) for m in part.expert_tensor]
    assert messages == [("all_gather", gathered), ("reduce_scatter", gathered)]


def test_copies_of_an_expert_on_other_nodes_share_no_nics():
    """Eight rings of one device per node have one NIC each; one ring over all devices has eight.

    Eight devices of a ring pass 7/8 of 2 M, 64 pass 63/64; NVLink and latency limit the large ring.
    """
    library = framework("megatron-lm").library(H100.device)
    plan = Plan(dp=64, ep=8)
    ratio = relative_gradient_cost(layout_of(plan, 8), H100.with_nodes(8), library)
    assert 5 < ratio <= 8 * (7 / 8) / (63 / 64)


@pytest.mark.parametrize(
    ("group", "reached"),
    [
        (Group(8, 8), 8 * (1 - (7 / 8) ** 4)),  # each device at most once
        (Group(64, 8), 8 * (1 - (7 / 8) ** 4)),  # each of eight nodes at most once
        (Group(2, 2), 2 * (1 - 1 / 16)),
    ],
)
def test_deepep_sends_a_token_once_to_each_destination(group, reached):
    assert sent_share(4, ExpertDispatch.DEEPEP, group) == pytest.approx(reached / 4)
    assert sent_share(4, ExpertDispatch.ALL_TO_ALL, group) == 1.0


def test_overlapped_messages_leave_a_tenth_exposed():
    workload = replace(MIXTRAL, batch=4)
    plan = Plan(dp=8, ep=8, zero=1, micro_batch=1)
    exposed, hidden = (
        predict(workload, H100, replace(plan, ep_overlap=overlap)).losses["links within a replica"]
        for overlap in (False, True)
    )
    assert hidden == pytest.approx(0.1 * exposed, rel=0.1)


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        ({"tp": 2, "dp": 4, "ep": 16}, "does not divide tp x cp x dp = 8"),
        ({"tp": 2, "dp": 4, "ep": 2, "etp": 1}, "needs sequence parallelism"),
        ({"tp": 8, "ep": 2, "sequence_parallel": True}, "4 devices hold the same experts"),
        ({"dp": 8, "ep_overlap": True}, "ep is 1"),
        ({"dp": 4, "pp": 2, "ep": 4, "ep_overlap": True}, "several chunks"),
    ],
)
def test_divisions_that_cannot_be(degrees, message):
    with pytest.raises(InputError, match=message):
        Plan(**degrees)
