"""predict: workload, cluster, plan and evidence to a predicted step."""

from dataclasses import replace

from paceline.hardware import Cluster
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.memory.offload import check_offload
from paceline.predictor.memory.peak_memory import plan_memory
from paceline.predictor.partition.replica import Replica
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.validate_for_model import (
    check_context_form,
    check_possible,
    check_sharding,
)
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_notes import prediction_notes
from paceline.predictor.step_model import StepModel
from paceline.predictor.uncertainty.correction_model import (
    CorrectionModel,
    FittedCorrections,
    corrections_for,
)
from paceline.predictor.uncertainty.correction_table import shipped_corrections
from paceline.predictor.uncertainty.covariates import (
    DECODER,
    Program,
    Tuning,
    covariates_of,
    kind_of,
)
from paceline.predictor.uncertainty.intervals import interval
from paceline.predictor.uncertainty.step_corrections import StepCorrections, cluster_corrections
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

    ``evidence`` holds measurements, which take precedence over the model. ``program`` describes
    the training program. Corrections fitted to published measurements (``model``, default: the
    shipped ones) are applied; ``corrections`` replaces them. ``input_seconds`` is the time to read
    and prepare a batch.
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
) -> StepModel:
    """The validated step model that `predict` schedules."""
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
    """The part of a step model that does not depend on corrections or a measured step."""
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
) -> StepModel:
    """As `prepare`, for an existing replica."""
    fitted, cluster = None, replica.cluster
    if corrections is None and not cluster.device.is_processor:
        name, usual = replica.framework.name, _usual_tuning(replica, program)
        known = program if usual is None else replace(program or Program(), tuning=usual)
        covariates = covariates_of(replica.workload, cluster, name, known)
        fitted = corrections_for(
            model or shipped_corrections(), covariates, cluster.bandwidth_spread
        )
        corrections = _with_cluster(fitted, cluster.name)
        if usual is not None and evidence.alone_seconds is None and evidence.baseline is None:
            title = replica.framework.title
            note = f"assumes tuning {usual}, the default of {title}; change with --tuning"
            corrections = replace(corrections, notes=(*corrections.notes, note))
    return StepModel(replica, evidence, corrections, input_seconds, fitted=fitted)


def _usual_tuning(replica: Replica, program: Program | None) -> Tuning | None:
    """Default tuning of a program by its name; None if given or unknown.

    Only for causal decoders: published rows of tuned encoders and image networks are MLPerf
    submissions (BERT without padding), which no other program reaches.
    """
    stated = program is not None and program.tuning is not None
    known = replica.framework.tuning if kind_of(replica.workload) == DECODER else ""
    return None if stated or not known else Tuning(known)


def _with_cluster(fitted: FittedCorrections, cluster: str) -> StepCorrections:
    """The fitted corrections, with the measured unhidden share of the cluster if there is one."""
    own = cluster_corrections(cluster).unhidden_share
    return fitted.corrections if own is None else replace(fitted.corrections, unhidden_share=own)


def prediction_of(prepared: StepModel) -> Prediction:
    """The prediction of a step model."""
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
        executed_share=prepared.replica.executed_share,
        interval=interval(prepared),
        division_seconds=prepared.division_seconds(),
        recomputing_seconds=recomputing_seconds(prepared),
        notes=prediction_notes(prepared),
    )


def recomputing_seconds(prepared: StepModel) -> float:
    """Recomputation time per step of the mean device."""
    replica = prepared.replica
    kinds = replica.kinds_at(prepared.work_scale, prepared.modelled_factor)
    each = [layer.recompute_seconds for layer in kinds]
    return replica.micro_batches * replica.total(each) / prepared.plan.pp
