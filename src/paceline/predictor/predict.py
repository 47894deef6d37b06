"""predict: the only road from a workload, a cluster, a plan and evidence to a predicted step."""

from dataclasses import replace

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.possible import check_context_form, check_possible, check_sharding
from paceline.predictor.corrections.covariates import Program, covariates_of
from paceline.predictor.corrections.model import CorrectionModel, Taught, taught_by
from paceline.predictor.corrections.table import shipped_corrections
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.notes import prediction_notes
from paceline.predictor.offload import check_offload
from paceline.predictor.plan_memory import plan_memory
from paceline.predictor.prediction import Prediction
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.step_corrections import StepCorrections, cluster_corrections
from paceline.predictor.uncertainty import interval
from paceline.workload.workload import Workload

DEFAULT_FRAMEWORK = "torch-ddp"


def predict(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    evidence: Evidence | None = None,
    program: Program | None = None,
    corrections: StepCorrections | None = None,
    input_seconds: float = 0.0,
    efficiency: Efficiency | None = None,
    model: CorrectionModel | None = None,
) -> Prediction:
    """Predict one training step of ``workload`` on ``cluster`` under ``plan``.

    ``evidence`` is what was measured: it goes before what the model says. ``program`` is what is
    known of the program that trains. Published measurements correct the step (``model``; those
    that come with the package unless given); ``corrections`` are taken instead as they are.
    ``input_seconds`` is what reading and preparing a batch takes.
    """
    return prediction_of(
        prepare(
            workload,
            cluster,
            plan,
            evidence=evidence,
            program=program,
            corrections=corrections,
            input_seconds=input_seconds,
            efficiency=efficiency,
            model=model,
        )
    )


def prepare(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    evidence: Evidence | None = None,
    program: Program | None = None,
    corrections: StepCorrections | None = None,
    input_seconds: float = 0.0,
    efficiency: Efficiency | None = None,
    model: CorrectionModel | None = None,
) -> PreparedStep:
    """What `predict` schedules, checked: a workload that the plan can divide on the cluster."""
    known = evidence or NO_EVIDENCE
    replica = replica_of(workload, cluster, plan, known, efficiency)
    return prepared_on(
        replica,
        evidence=known,
        program=program,
        corrections=corrections,
        input_seconds=input_seconds,
        model=model,
    )


def replica_of(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    evidence: Evidence = NO_EVIDENCE,
    efficiency: Efficiency | None = None,
) -> Replica:
    """The part of a prepared step that neither corrections nor a measured step change."""
    plan.check_devices(cluster.devices)
    check_possible(plan, workload.graph, workload.sequence)
    profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
    check_context_form(plan, plan.context_form or profile.context_form, workload.graph)
    if plan.zero == 0 and profile.shard_stage > 0:
        plan = replace(plan, zero=profile.shard_stage)
    check_sharding(plan)
    check_offload(plan, cluster)
    return Replica(workload, cluster, plan, profile, efficiency, evidence.layers)


def prepared_on(
    replica: Replica,
    *,
    evidence: Evidence = NO_EVIDENCE,
    program: Program | None = None,
    corrections: StepCorrections | None = None,
    input_seconds: float = 0.0,
    model: CorrectionModel | None = None,
) -> PreparedStep:
    """As `prepare`, for a replica that is already there."""
    taught, cluster = None, replica.cluster
    if corrections is None and not cluster.device.is_processor:
        covariates = covariates_of(replica.workload, cluster, replica.framework.name, program)
        taught = taught_by(model or shipped_corrections(), covariates, cluster.bandwidth_spread)
        corrections = _with_cluster(taught, cluster.name)
    return PreparedStep(replica, evidence, corrections, input_seconds, taught=taught)


def _with_cluster(taught: Taught, cluster: str) -> StepCorrections:
    """What was taught, less what was measured of the very cluster."""
    own = cluster_corrections(cluster).unhidden_share
    return taught.corrections if own is None else replace(taught.corrections, unhidden_share=own)


def prediction_of(prepared: PreparedStep) -> Prediction:
    """The prediction of a prepared step."""
    return Prediction(
        workload=prepared.workload,
        cluster=prepared.cluster,
        plan=prepared.plan,
        framework=prepared.framework.name,
        step_seconds=prepared.seconds(),
        schedule=prepared.step,
        memory=plan_memory(prepared.replica, prepared.chunks, prepared.synchronisation),
        ideal_seconds=prepared.ideal_seconds(),
        ideal_input_seconds=prepared.shown_input_seconds,
        sharing_seconds=prepared.sharing_seconds(),
        waiting_seconds=prepared.waiting_seconds(),
        training_flops=float(prepared.workload.cost.training_flops) * prepared.plan.dp,
        interval=interval(prepared),
        division_seconds=prepared.division_seconds(),
        recomputing_seconds=_recomputing_seconds(prepared),
        notes=prediction_notes(prepared),
    )


def _recomputing_seconds(prepared: PreparedStep) -> float:
    """What a device, as the mean one, computes again in a step instead of keeping it."""
    replica = prepared.replica
    kinds = replica.kinds_at(prepared.work_scale, prepared.modelled_factor)
    each = [layer.recompute_seconds for layer in kinds]
    return replica.micro_batches * replica.total(each) / prepared.plan.pp
