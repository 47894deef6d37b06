"""A step taken apart: computing alone, exchange that is not hidden, exchange if none were hidden.

Everything comes from the predictor (`paceline.predict`); a model that the zoo lacks is a chain
of equal layers with the row's number of parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.analyse.validation.jobs import Job
from paceline.plan.plan import Plan
from paceline.predictor.collectives import Group, collective_cost
from paceline.predictor.exchange import gradient_exchange
from paceline.predictor.fitted.circumstances import base_of
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.replica_step import replica_step
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

_BLACK_BOX_LAYERS = 20
_FORWARD_SHARE = 1.0 / 3.0
_LEAST_WORK = 0.05


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


@dataclass(frozen=True)
class _Alone:
    """One device on its own: its layers for a micro-batch, and what else a step costs."""

    layers: tuple[LayerTime, ...]
    micro_batches: int
    costs: StepCosts
    tensors: int
    seconds: float

    @property
    def work_seconds(self) -> float:
        """Layers of all micro-batches."""
        return self.micro_batches * sum(
            layer.whole_forward_seconds + layer.whole_backward_seconds for layer in self.layers
        )


class StepTaker:
    """Takes steps apart; remembers what one device does, which many rows share."""

    def __init__(self) -> None:
        self._alone: dict[tuple[object, ...], _Alone] = {}
        self._whole: dict[int, tuple[Job, float]] = {}

    def predicted_alone_seconds(self, job: Job) -> float:
        """Step without gradient exchange as the catalogue predicts it.

        Of a job that `takes_whole_step` it is the whole step. The job must have a workload.
        """
        if not takes_whole_step(job):
            return self._one_device(job).seconds
        if id(job) not in self._whole:
            self._whole[id(job)] = (job, _whole_case(job).step().seconds)
        return self._whole[id(job)][1]

    def parts(self, job: Job, alone_seconds: float) -> StepParts:
        """The parts of a step when the device alone takes ``alone_seconds`` of it."""
        if job.plan.dp == 1:
            return StepParts(alone_seconds, 0.0, 0.0)
        if job.workload is None or divides_model(job):
            return _black_box(job, alone_seconds)
        if job.plan.zero > 0 or job.framework.shard_stage > 0:
            return self._sharded(job, alone_seconds)
        alone = self._one_device(job)
        layers = _scaled(alone, alone_seconds)
        plan = replace(job.plan, micro_batches=alone.micro_batches)
        replica = Replica(_workload(job), job.cluster, plan, job.framework)
        assert plan.synchronisation is not None
        exchange = gradient_exchange(replica, plan.synchronisation)
        assert exchange is not None
        overhead = job.framework.overhead_seconds(alone.tensors, plan.shard_degree)
        costs = replace(alone.costs, overhead_seconds=overhead)
        step = replica_step(layers, exchange, costs, micro_batches=alone.micro_batches)
        return _parts(alone_seconds, step.seconds, exchange, layers)

    def _sharded(self, job: Job, alone_seconds: float) -> StepParts:
        """As `parts` where replicas share out their state: the whole case, scaled."""
        case = _whole_case(job)
        alone = self._one_device(job)
        scale = _scale(alone, alone_seconds)
        case = case.with_scale(scale)
        assert case.exchange is not None
        return _parts(alone_seconds, case.step().seconds, case.exchange, case.layers)

    def _one_device(self, job: Job) -> _Alone:
        plan = Plan(
            micro_batches=job.plan.micro_batches,
            recompute=job.plan.recompute,
            fused_attention=job.plan.fused_attention,
            framework=job.framework.name,
        )
        key = (_workload(job), plan, job.cluster.device.name)
        if key not in self._alone:
            cluster = job.cluster.shaped(1, 1)
            case = PreparedStep(Replica(_workload(job), cluster, plan, job.framework))
            self._alone[key] = _Alone(
                tuple(case.layers),
                case.replica.micro_batches,
                case.costs,
                sum(len(part.profile.tensors) for part in case.replica.parts),
                case.step().seconds,
            )
        return self._alone[key]


def divides_model(job: Job) -> bool:
    """Whether a replica spreads over several devices."""
    return job.plan.tp * job.plan.pp * job.plan.cp > 1


def takes_whole_step(job: Job) -> bool:
    """Whether the predicted step is taken as it is, without what scaling curves add.

    Those curves are of data-parallel programs. Jobs that divide the model, and all layouts of
    frameworks made for that, are compared with each other on the scheduler's word alone.
    """
    return divides_model(job) or base_of(job.framework.name) == "megatron"


def _whole_case(job: Job) -> PreparedStep:
    plan = job.plan
    if plan.zero == 0 and job.framework.shard_stage > 0:
        plan = replace(plan, zero=job.framework.shard_stage)
    return PreparedStep(Replica(_workload(job), job.cluster, plan, job.framework))


def _parts(
    alone_seconds: float,
    step_seconds: float,
    exchange: GradientExchange,
    layers: Sequence[LayerTime],
) -> StepParts:
    size = sum(layer.gradient_bytes for layer in layers)
    whole = float(exchange.message(size))
    if exchange.pull is not None:
        whole += float(exchange.pull(size))
    return StepParts(alone_seconds, max(0.0, step_seconds - alone_seconds), whole)


def _scale(alone: _Alone, alone_seconds: float) -> float:
    """Factor on the layers with which the device alone takes ``alone_seconds``."""
    rest = alone.seconds - alone.work_seconds
    return max(alone_seconds - rest, _LEAST_WORK * alone_seconds) / alone.work_seconds


def _scaled(alone: _Alone, alone_seconds: float) -> list[LayerTime]:
    scale = _scale(alone, alone_seconds)
    return [
        replace(
            layer,
            forward_seconds=scale * layer.forward_seconds,
            backward_seconds=scale * layer.backward_seconds,
            recompute_seconds=scale * layer.recompute_seconds,
        )
        for layer in alone.layers
    ]


def _black_box(job: Job, alone_seconds: float) -> StepParts:
    """Equal layers, each with its share of the parameters."""
    count = job.plan.micro_batches or 1
    micro_seconds = alone_seconds / count
    model_devices = job.plan.tp * job.plan.pp * job.plan.cp
    width = precision(job.workload.precision).gradient_bytes if job.workload else 4
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
    library = job.framework.library(job.cluster.device)
    sharing = min(model_devices, job.cluster.devices_per_node)
    in_node = max(1, job.cluster.devices_per_node // model_devices)
    group = Group(float(job.plan.dp), float(in_node), float(sharing))
    message = collective_cost("all_reduce", group, job.cluster, library)
    costs = StepCosts(
        message_overhead_seconds=job.framework.message_overhead_seconds
        + library.message_overhead_seconds,
        interference=library.interference,
    )
    assert job.plan.synchronisation is not None
    exchange = GradientExchange(job.plan.synchronisation, message)
    step = replica_step(layers, exchange, costs)
    return _parts(alone_seconds, step.seconds + alone_seconds - micro_seconds, exchange, layers)


def _workload(job: Job) -> Workload:
    assert job.workload is not None
    return job.workload
