"""A step taken apart: computing alone, exchange that is not hidden, exchange if none were hidden.

Everything comes from the predictor (`paceline.predict`); a model that the zoo lacks is a chain
of equal layers with the row's number of parameters.
"""

from dataclasses import dataclass, replace

from paceline.analyse.validation.jobs import Job
from paceline.predict.case import Case
from paceline.predict.collectives import Group, collective_cost
from paceline.predict.efficiency import Efficiency
from paceline.predict.replica import Replica
from paceline.predict.replica_step import replica_step
from paceline.predict.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.workload.precision import precision

_BLACK_BOX_LAYERS = 20
_FORWARD_SHARE = 1.0 / 3.0


@dataclass(frozen=True, slots=True)
class StepParts:
    """Seconds of a step by cause.

    ``alone_seconds`` is the step without other replicas, ``exposed_seconds`` what exchanging
    gradients adds under the framework's policy, ``message_seconds`` what it would add if
    nothing of it were hidden.
    """

    alone_seconds: float
    exposed_seconds: float
    message_seconds: float


def cold_parts(job: Job, efficiency: Efficiency | None = None) -> StepParts:
    """The parts as the catalogue predicts them. The job must have a workload."""
    case = _case(job, efficiency)
    if case.plan.pp > 1 or case.plan.tp > 1 or case.exchange is None:
        return StepParts(case.step().seconds, 0.0, 0.0)
    return _parts(case)


def parts_from_alone(job: Job, alone_seconds: float) -> StepParts:
    """The parts when one device alone is known to take ``alone_seconds`` per step."""
    if job.plan.devices == 1:
        return StepParts(alone_seconds, 0.0, 0.0)
    if job.workload is None or job.plan.pp > 1 or job.plan.tp > 1:
        return _black_box_parts(job, alone_seconds)
    case = _case(job, None)
    work = case.replica.micro_batches * sum(
        layer.whole_forward_seconds + layer.whole_backward_seconds for layer in case.replica.layers
    )
    rest = _alone_seconds(case) - work
    scale = max(alone_seconds - rest, 0.05 * alone_seconds) / work
    parts = _parts(Case(replace(case.replica, scale=scale), 0.0, 0.0))
    return replace(parts, alone_seconds=alone_seconds)


def _case(job: Job, efficiency: Efficiency | None) -> Case:
    assert job.workload is not None
    plan = job.plan
    if plan.zero == 0 and job.framework.shard_stage > 0:
        plan = replace(plan, zero=job.framework.shard_stage)
    return Case(Replica(job.workload, job.cluster, plan, job.framework, efficiency), 0.0, 0.0)


def _parts(case: Case) -> StepParts:
    alone = _alone_seconds(case)
    assert case.exchange is not None
    size = sum(layer.gradient_bytes for layer in case.layers)
    exposed = max(0.0, case.step().seconds - alone)
    whole = float(case.exchange.message(size))
    if case.exchange.pull is not None:
        whole += float(case.exchange.pull(size))
    return StepParts(alone, exposed, whole)


def _alone_seconds(case: Case) -> float:
    step = replica_step(case.layers, None, case.costs, micro_batches=case.replica.micro_batches)
    return step.seconds


def _black_box_parts(job: Job, alone_seconds: float) -> StepParts:
    count = job.plan.micro_batches or 1
    micro_seconds = alone_seconds / count
    model_devices = job.plan.tp * job.plan.pp
    width = precision(job.workload.precision).gradient_bytes if job.workload else 4.0
    size = job.parameters * width / model_devices
    layers = [
        LayerTime(
            f"part {number}",
            micro_seconds * _FORWARD_SHARE / _BLACK_BOX_LAYERS,
            micro_seconds * (1.0 - _FORWARD_SHARE) / _BLACK_BOX_LAYERS,
            size / _BLACK_BOX_LAYERS,
        )
        for number in range(_BLACK_BOX_LAYERS)
    ]
    if job.plan.dp == 1:
        return StepParts(alone_seconds, 0.0, 0.0)
    library = job.framework.library(job.cluster.device)
    in_node = max(1.0, job.cluster.devices_per_node / model_devices)
    group = Group(
        float(job.plan.dp), in_node, float(min(model_devices, job.cluster.devices_per_node))
    )
    message = collective_cost("all_reduce", group, job.cluster, library)
    costs = StepCosts(
        message_overhead_seconds=job.framework.message_overhead_seconds
        + library.message_overhead_seconds,
        interference=library.interference,
    )
    assert job.plan.synchronisation is not None
    exchange = GradientExchange(job.plan.synchronisation, message)
    step = replica_step(layers, exchange, costs)
    exposed = max(0.0, step.seconds - micro_seconds)
    return StepParts(alone_seconds, exposed, float(message(size)))
