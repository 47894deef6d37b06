"""predict: a workload, a cluster and a plan to a predicted step, in six stages.

1. `partition`: what one device holds and exchanges of each layer.
2. `layer_times`: seconds of each layer, measured or modelled.
3. `communication`: what travels, on which links, how long.
4. `apply_corrections`: factors from measurements and from effects fitted to published rows.
5. `schedule`: layers and messages in time; DDP, FSDP or pipeline.
6. `stage_memories` and `interval`: bytes of each pipeline stage, and the 90 % interval.

`model_step` runs stages 1 to 3, which corrections do not change, `predict_step` the others.
docs/explanation/predictor.md walks through one prediction with the values of each stage.
"""

from dataclasses import replace
from typing import TypedDict, Unpack

from paceline.hardware import Cluster
from paceline.predictor.comm.communication import communication
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.kernels.copy_and_update import stage_update_seconds
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.layer_times import layer_times
from paceline.predictor.memory.offload import check_offload
from paceline.predictor.memory.peak_memory import fullest, stage_memories
from paceline.predictor.partition.partition import partition
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.validate_for_model import (
    check_cp_impl,
    check_possible,
    check_sharding,
)
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import ModelledStep, PredictionInputs
from paceline.predictor.prediction_notes import prediction_notes
from paceline.predictor.schedule.timeline import Timeline
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
from paceline.predictor.uncertainty.measured_scale import alone_job, corrected_timeline
from paceline.predictor.uncertainty.step_corrections import StepCorrections, cluster_corrections
from paceline.workload.workload import Workload

DEFAULT_FRAMEWORK = "torch-ddp"


class Settings(TypedDict, total=False):
    """What a prediction knows besides workload, cluster and plan.

    ``evidence`` holds measurements, which take precedence over the model. ``program`` describes
    the training program. Corrections fitted to published measurements (``model``, default: the
    shipped ones) are applied; ``corrections`` replaces them. ``input_seconds`` is the time to read
    and prepare a batch.
    """

    evidence: Evidence | None
    program: Program | None
    corrections: StepCorrections | None
    input_seconds: float
    efficiency: Efficiency | None
    model: CorrectionModel | None


def predict(
    workload: Workload, cluster: Cluster, plan: Plan, **settings: Unpack[Settings]
) -> Prediction:
    """Predict one training step of ``workload`` on ``cluster`` under ``plan``."""
    return predict_job(prepare(workload, cluster, plan, **settings))


def predict_job(job: PredictionInputs) -> Prediction:
    """Predict one training step from all its inputs."""
    return predict_step(model_step(job))


def model_step(job: PredictionInputs) -> ModelledStep:
    """Stages 1 to 3: the step as modelled, before any correction."""
    measured = job.evidence.layers
    parts = partition(job.workload, job.cluster, job.plan, job.framework, each_layer=bool(measured))
    layers = layer_times(parts, job.efficiency, measured)
    messages = communication(parts, layers, job.evidence.all_reduce)
    updates = stage_update_seconds(
        parts, messages.stage_counts, job.efficiency, job.evidence.update_seconds
    )
    return ModelledStep(job, parts, layers, messages, updates)


def predict_step(step: ModelledStep) -> Prediction:
    """Stages 4 to 6: the corrected schedule of a modelled step, its memory and interval."""
    job, parts = step.job, step.parts
    reference = reference_step(job)
    timeline = corrected_timeline(step, job.corrections, reference)
    memories = stage_memories(parts, step.communication.stage_counts)
    return Prediction(
        workload=job.workload,
        cluster=job.cluster,
        plan=job.plan,
        framework=job.framework.name,
        timeline=timeline,
        step_seconds=timeline.seconds,
        stage_memories=memories,
        memory=fullest(memories),
        training_flops=float(job.workload.cost.training_flops) * job.plan.dp,
        interval=interval(timeline, reference),
        notes=prediction_notes(timeline),
    )


def schedule_job(job: PredictionInputs) -> Timeline:
    """Stages 1 to 5: the scheduled step of a job."""
    return corrected_timeline(model_step(job), job.corrections, reference_step(job))


def reference_step(job: PredictionInputs) -> ModelledStep | None:
    """The modelled step whose duration was measured: one device alone, or a baseline."""
    if job.evidence.alone_seconds is not None:
        return model_step(alone_job(job))
    return None if job.evidence.baseline is None else job.evidence.baseline.step


def prepare(
    workload: Workload, cluster: Cluster, plan: Plan, **settings: Unpack[Settings]
) -> PredictionInputs:
    """The validated inputs of `predict`, with the corrections that apply."""
    job = job_of(
        workload,
        cluster,
        plan,
        settings.get("evidence"),
        settings.get("efficiency"),
        settings.get("input_seconds", 0.0),
    )
    return with_corrections(
        job, settings.get("program"), settings.get("corrections"), settings.get("model")
    )


def job_of(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    evidence: Evidence | None = None,
    efficiency: Efficiency | None = None,
    input_seconds: float = 0.0,
) -> PredictionInputs:
    """The validated inputs of a prediction, with the corrections of the cluster alone."""
    plan.check_devices(cluster.devices)
    check_possible(plan, workload.graph, workload.sequence)
    framework = find_framework(plan.framework or DEFAULT_FRAMEWORK)
    check_cp_impl(plan, plan.cp_impl or framework.cp_impl, workload.graph)
    if plan.zero == 0 and framework.shard_stage > 0:
        plan = replace(plan, zero=framework.shard_stage)
    check_sharding(plan)
    check_offload(plan, cluster)
    return PredictionInputs(
        workload,
        cluster,
        plan,
        framework,
        efficiency,
        evidence or NO_EVIDENCE,
        cluster_corrections(cluster.name),
        input_seconds=input_seconds,
    )


def with_corrections(
    job: PredictionInputs,
    program: Program | None = None,
    corrections: StepCorrections | None = None,
    model: CorrectionModel | None = None,
) -> PredictionInputs:
    """The job with ``corrections``, else with those fitted to published measurements.

    CPUs are not among the published measurements, so only the cluster's corrections apply.
    """
    if corrections is not None:
        return replace(job, corrections=corrections, fitted=None)
    if job.cluster.device.is_processor:
        return replace(job, corrections=cluster_corrections(job.cluster.name), fitted=None)
    usual = _usual_tuning(job.framework, job.workload, program)
    known = program if usual is None else replace(program or Program(), tuning=usual)
    covariates = covariates_of(job.workload, job.cluster, job.framework.name, known)
    fitted = corrections_for(
        model or shipped_corrections(), covariates, job.cluster.bandwidth_spread
    )
    corrections = _with_cluster(fitted, job.cluster.name)
    evidence = job.evidence
    if usual is not None and evidence.alone_seconds is None and evidence.baseline is None:
        title = job.framework.title
        note = f"assumes tuning {usual}, the default of {title}; change with --tuning"
        corrections = replace(corrections, notes=(*corrections.notes, note))
    return replace(job, corrections=corrections, fitted=fitted)


def _usual_tuning(
    framework: FrameworkProfile, workload: Workload, program: Program | None
) -> Tuning | None:
    """Default tuning of a program by its name; None if given or unknown.

    Only for causal decoders: published rows of tuned encoders and image networks are MLPerf
    submissions (BERT without padding), which no other program reaches.
    """
    stated = program is not None and program.tuning is not None
    if stated or not framework.tuning or kind_of(workload) != DECODER:
        return None
    return Tuning(framework.tuning)


def _with_cluster(fitted: FittedCorrections, cluster: str) -> StepCorrections:
    """The fitted corrections, with the measured unhidden share of the cluster if there is one."""
    own = cluster_corrections(cluster).unhidden_share
    return fitted.corrections if own is None else replace(fitted.corrections, unhidden_share=own)
