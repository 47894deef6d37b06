"""predict: a workload on a cluster under a plan, as a scheduled step with its memory."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.tensor_parallel import check_divisible
from paceline.predictor.case import Case
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.fitted.circumstances import kind_of, width_of
from paceline.predictor.fitted.domain import domain_notes
from paceline.predictor.fitted.intervals import BASELINE, COLD
from paceline.predictor.fitted.tables import fitted
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.plan_memory import plan_memory
from paceline.predictor.prediction import Prediction
from paceline.predictor.replica import Replica
from paceline.predictor.step_costs import LayerTime
from paceline.units import format_seconds
from paceline.workload.workload import Workload

DEFAULT_FRAMEWORK = "torch-ddp"


def predict(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    efficiency: Efficiency | None = None,
    measured_layers: Sequence[LayerTime] = (),
    measured_alone_seconds: float | None = None,
    input_seconds: float = 0.0,
    jitter: float | None = None,
    relative_error: float | None = None,
) -> Prediction:
    """Predict one training step of ``workload`` on ``cluster`` under ``plan``.

    ``measured_layers`` (by name, for one micro-batch) replace what the device model says.
    ``measured_alone_seconds`` is a measured step of one device on the same batch: layer times
    are scaled so that it is predicted exactly. ``input_seconds`` is what reading and preparing
    a batch takes. ``jitter`` is the coefficient of variation of workers' times; unless given,
    what is known of the cluster, else none.
    """
    case = prepare(
        workload,
        cluster,
        plan,
        efficiency=efficiency,
        measured_layers=measured_layers,
        measured_alone_seconds=measured_alone_seconds,
        input_seconds=input_seconds,
        jitter=jitter,
    )
    is_measured = bool(measured_layers) or measured_alone_seconds is not None
    return prediction_of(case, relative_error, is_measured=is_measured)


def prepare(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    efficiency: Efficiency | None = None,
    measured_layers: Sequence[LayerTime] = (),
    measured_alone_seconds: float | None = None,
    input_seconds: float = 0.0,
    jitter: float | None = None,
) -> Case:
    """What `predict` schedules, checked: a workload that the plan can divide on the cluster."""
    plan.check_devices(cluster.devices)
    check_divisible(workload.graph, plan.tp)
    profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
    if plan.zero == 0 and profile.shard_stage > 0:
        plan = replace(plan, zero=profile.shard_stage)
    replica = Replica(workload, cluster, plan, profile, efficiency, tuple(measured_layers))
    if measured_alone_seconds is not None:
        replica = replace(replica, scale=_scale_to(replica, measured_alone_seconds))
    return Case(replica, input_seconds, jitter)


def prediction_of(
    case: Case, relative_error: float | None = None, *, is_measured: bool = False
) -> Prediction:
    """The prediction of a prepared case.

    Its standard error, unless given, is that of the predictor on published measurements: on
    rows whose time on one device was known if that ``is_measured`` here, else on those of the
    same kind of samples and width of numbers.
    """
    replica = case.replica
    step, ideal = case.step(), case.ideal_seconds()
    factors = None
    if relative_error is None:
        mode = BASELINE if is_measured else COLD
        kind, width = kind_of(replica.workload), width_of(replica.workload)
        rule = fitted().intervals.plain_rule(mode, kind, width)
        share = max(0.0, 1.0 - ideal / step.seconds)
        relative_error, factors = rule.standard_error(share), rule.bounds(1.0, share)
    return Prediction(
        workload=replica.workload,
        cluster=replica.cluster,
        plan=replica.plan,
        framework=replica.framework.name,
        step=step,
        memory=plan_memory(replica, case.chunks, case.synchronisation),
        ideal_seconds=ideal,
        waiting_seconds=case.waiting_seconds(),
        training_flops=float(replica.workload.cost.training_flops) * replica.plan.dp,
        relative_error=relative_error,
        notes=case.notes()
        + domain_notes(replica.cluster.device.name, replica.framework.name, replica.plan.devices),
        throughput_factors=factors,
    )


def _scale_to(replica: Replica, alone_seconds: float) -> float:
    """The factor on layer times with which one device alone takes ``alone_seconds``."""
    plan = Plan(
        micro_batch=replica.plan.micro_batch,
        micro_batches=replica.plan.micro_batches,
        recompute=replica.plan.recompute,
        fused_attention=replica.plan.fused_attention,
    )
    alone = replace(replica, cluster=replica.cluster.shaped(1, 1), plan=plan)
    layers = sum(x.whole_forward_seconds + x.whole_backward_seconds for x in alone.layers)
    work = alone.micro_batches * layers
    rest = Case(alone, 0.0, 0.0).step().seconds - work
    if alone_seconds <= rest:
        raise InputError(
            f"a step of {format_seconds(alone_seconds)} is shorter than what the framework "
            f"alone takes of it ({format_seconds(rest)})",
            "give the seconds per step of one device",
        )
    return (alone_seconds - rest) / work
