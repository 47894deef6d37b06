"""predict: the only road from a workload, a cluster, a plan and evidence to a predicted step."""

from dataclasses import replace

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.tensor_parallel import check_divisible
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.fitted.domain import domain_notes
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.plan_memory import plan_memory
from paceline.predictor.prediction import Prediction
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.step_corrections import StepCorrections
from paceline.predictor.uncertainty import interval
from paceline.workload.workload import Workload

DEFAULT_FRAMEWORK = "torch-ddp"


def predict(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    evidence: Evidence | None = None,
    corrections: StepCorrections | None = None,
    input_seconds: float = 0.0,
    efficiency: Efficiency | None = None,
) -> Prediction:
    """Predict one training step of ``workload`` on ``cluster`` under ``plan``.

    ``evidence`` is what was measured: it goes before what the model says. ``corrections`` are
    what experience adds to the model; unless given, what is known of the cluster.
    ``input_seconds`` is what reading and preparing a batch takes.
    """
    return prediction_of(
        prepare(
            workload,
            cluster,
            plan,
            evidence=evidence,
            corrections=corrections,
            input_seconds=input_seconds,
            efficiency=efficiency,
        )
    )


def prepare(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    evidence: Evidence | None = None,
    corrections: StepCorrections | None = None,
    input_seconds: float = 0.0,
    efficiency: Efficiency | None = None,
) -> PreparedStep:
    """What `predict` schedules, checked: a workload that the plan can divide on the cluster."""
    plan.check_devices(cluster.devices)
    check_divisible(workload.graph, plan.tp)
    profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
    if plan.zero == 0 and profile.shard_stage > 0:
        plan = replace(plan, zero=profile.shard_stage)
    known = evidence or NO_EVIDENCE
    replica = Replica(workload, cluster, plan, profile, efficiency, known.layers)
    return PreparedStep(replica, known, corrections, input_seconds)


def prediction_of(prepared: PreparedStep) -> Prediction:
    """The prediction of a prepared step."""
    step, ideal = prepared.step(), prepared.ideal_seconds()
    devices = prepared.plan.devices
    return Prediction(
        workload=prepared.workload,
        cluster=prepared.cluster,
        plan=prepared.plan,
        framework=prepared.framework.name,
        step=step,
        memory=plan_memory(prepared.replica, prepared.chunks, prepared.synchronisation),
        ideal_seconds=ideal,
        ideal_input_seconds=prepared.shown_input_seconds,
        sharing_seconds=prepared.sharing_seconds(),
        waiting_seconds=prepared.waiting_seconds(),
        training_flops=float(prepared.workload.cost.training_flops) * prepared.plan.dp,
        interval=interval(prepared, max(0.0, 1.0 - ideal / step.seconds)),
        notes=prepared.notes()
        + domain_notes(prepared.cluster.device.name, prepared.framework.name, devices),
    )
