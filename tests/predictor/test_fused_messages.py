"""Horovod's fusion is greedy: a faster link may send more messages, and lose a cycle by it."""

from itertools import product

import pytest

from paceline.hardware import catalogue
from paceline.hardware.scaled import wider_link
from paceline.predictor.framework_profiles import framework
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS
from paceline.step import Phase
from paceline.workload.workload import Workload

HOROVOD = framework("horovod-torch")
PLACES = (("dgx-h100", 1, 4), ("dgx-1", 1, 8), ("hkbu-v100-pcie", 2, 4))
JOBS = (("resnet50", 64), ("inception_v3", 64), ("mobilenet_v2", 1), ("densenet121", 32))


def step_of(cluster, model, batch, factor):
    """The step with links so many times as fast."""
    faster = {
        name: wider_link(link, factor)
        for name in ("intra", "inter")
        if (link := getattr(cluster, name)) is not None
    }
    plan = Plan(dp=cluster.devices, framework="horovod-torch")
    place = cluster.__class__(**{**vars(cluster), **faster})
    return predict(Workload.of(model, batch), place, plan, corrections=NO_CORRECTIONS).step


def messages(step):
    return sum(task.phase is Phase.COMMUNICATE for task in step.tasks)


@pytest.mark.parametrize(("place", "job"), list(product(PLACES, JOBS)))
def test_a_faster_link_loses_a_cycle_and_what_more_messages_take_at_most(place, job):
    name, nodes, devices = place
    cluster = catalogue.cluster(name).shaped(nodes, devices)
    slow = step_of(cluster, *job, 1.0)
    for factor in (1.25, 4.0, 100.0):
        fast = step_of(cluster, *job, factor)
        more = max(0, messages(fast) - messages(slow))
        launches = 2 * more * HOROVOD.message_overhead_seconds
        assert fast.seconds <= slow.seconds + HOROVOD.message_latency_seconds + launches
