"""Context parallelism by hand: ring attention (Liu et al. 2023), gathering, Ulysses (2023)."""

import numpy as np
import pytest

from paceline.constants import number
from paceline.hardware import Device
from paceline.predictor.comm.layer_comm import (
    ContextCost,
    ContextLinks,
    ReplicaMessages,
    attention_in_parts,
    context_cost,
)
from paceline.predictor.partition.sharding import ContextTensors
from paceline.predictor.plan.plan_choices import ContextForm
from paceline.workload.cost import Affine

DEVICE = Device("d", "nvidia", "gpu", {}, 80e9, 1e12)
TENSORS = ContextTensors(Affine(0, 1e9), Affine(0, 2e9), Affine(0, 4e9), 8, True, 1)
MERGE = number("parallelism.context.merge_passes")
PARTS = attention_in_parts(4)


class Rate:
    """A message at a rate in bytes/s."""

    def __init__(self, rate):
        self.rate = rate

    def seconds(self, size):
        return size / self.rate


RATES = {"all_to_all": 1e9, "all_gather": 2e9, "reduce_scatter": 4e9}


def cost(form, degree=4, samples=2.0, tensors=TENSORS):
    links = ContextLinks(degree, (Rate(10e9), Rate(5e9)), lambda name: Rate(RATES[name]))
    return context_cost(tensors, form, links, samples, 2.0, DEVICE)


def merging(steps):
    """fp32 sums of the results (forward) and of the gradients of queries (backward)."""
    passes = (steps - 1) * MERGE * 4 / 2
    return pytest.approx((passes * 8e9 / 1e12, passes * 2e9 / 1e12))


def test_ring():
    """3 hops of 4 GB over the slower link, hidden; backward twice as much, then gradients home."""
    own = cost(ContextForm.RING)
    assert (own.steps, own.hidden) == (4, 3)
    assert own.each == pytest.approx((4e9 / 5e9, 8e9 / 5e9))
    assert own.exposed == pytest.approx((0.0, 4e9 / 5e9))
    assert own.slowdown == PARTS
    assert own.merging == merging(4)


def test_ring_in_order_waits_for_the_last_device():
    """With a causal mask the last of 4 devices computes 7 of 4 x 4 / 4 parts."""
    assert cost(ContextForm.RING_IN_ORDER).slowdown == pytest.approx(PARTS * 7 / 4)
    plain = ContextTensors(*(Affine(0, 1e9),) * 3, 8, False, 1)
    assert cost(ContextForm.RING_IN_ORDER, tensors=plain).slowdown == PARTS
    assert cost(ContextForm.RING).slowdown == PARTS


def test_many_parts_are_slower_than_few():
    """Attention in 4 parts or more has its own factor (a prior)."""
    few, many = (number(f"parallelism.context.{name}") for name in ("in_parts", "in_many_parts"))
    assert 1 < few < many
    assert [cost(ContextForm.RING, degree).slowdown for degree in (2, 4, 8)] == [few, many, many]


def test_gathering():
    """All of 4 x 4 GB are gathered under the first part; gradients are scattered at the end."""
    own = cost(ContextForm.GATHER)
    assert own.hidden == 1
    assert own.each == pytest.approx((16e9 / 2e9, 16e9 / 2e9))
    assert own.exposed == pytest.approx((0.0, 16e9 / 4e9))
    assert own.merging == merging(4)


@pytest.mark.parametrize(
    ("degree", "kv_heads", "tp", "copies"), [(4, 8, 1, 1), (8, 8, 1, 1), (8, 2, 1, 4), (8, 8, 2, 2)]
)
def test_ulysses(degree, kv_heads, tp, copies):
    """Queries and keys and values there, results back; few key-value heads are copied."""
    tensors = ContextTensors(Affine(0, 1e9), Affine(0, 2e9), Affine(0, 4e9), kv_heads, True, tp)
    own = cost(ContextForm.ULYSSES, degree, tensors=tensors)
    seconds = (2e9 + copies * 4e9) / 1e9 + 8e9 / 1e9
    assert own == ContextCost(exposed=(pytest.approx(seconds), pytest.approx(seconds)))


def test_messages_hide_under_parts_of_attention():
    own = ContextCost(4, 1.5, (0.5, 0.25), 3, (1.0, 2.0), (0.0, 0.1))
    assert own.computing(2.0, 0) == pytest.approx(3.5)
    assert own.computing(2.0, 1) == pytest.approx(3.25)
    # 8 s in 4 parts hide 1 s each; 2 s in 4 parts leave half of each of 3 messages.
    assert own.waiting(8.0, 1.0, 0) == 0.0
    assert own.waiting(2.0, 1.0, 0) == pytest.approx(3 * 0.5)
    assert own.waiting(2.0, 0.5, 0) == pytest.approx(3 * 1.5)
    assert own.waiting(4.0, 1.0, 1) == pytest.approx(0.1 + 3 * 1.0)


def test_messages_of_layers():
    own = ReplicaMessages(
        tensor=np.array([[1.0, 0.0], [2.0, 0.0]]),
        experts=np.array([[0.0, 0.5], [0.0, 0.5]]),
        hidden_share=0.5,
        context={1: ContextCost(2, 2.0, (1.0, 1.0), 1, (3.0, 3.0))},
    )
    computing = own.computing(np.array([4.0, 1.0]), 0)
    assert computing == pytest.approx([4.0, 3.0])
    assert own.exposed(computing, 1.0, 0) == pytest.approx([0.5, 0.5 + 1.5])
    # At half the bandwidth; half of the tensor message hides, at most the computing.
    assert own.exposed(np.array([0.25, 3.0]), 0.5, 0) == pytest.approx([1.75, 1.0 + 4.5])
    assert own.exposed(computing, 1.0, 1)[0] == pytest.approx(1.0)
