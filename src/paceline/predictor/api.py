"""Public functions predict, whatif and bandwidth_for: check options, resolve, predict."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Union, Unpack, cast, overload

from paceline.errors import InputError, PacelineError
from paceline.hardware import Cluster
from paceline.predictor import predict as predictor
from paceline.predictor.evidence import NO_EVIDENCE, Baseline, Evidence
from paceline.predictor.kernels.layer_times import executed_flop_share
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.prediction import Prediction, Predictions
from paceline.predictor.prediction_inputs import ModelledStep, PredictionInputs
from paceline.render.result import Part, PublicResult
from paceline.spec.defaults import complete_job
from paceline.spec.job_options import JobLists, JobOptions, Many
from paceline.spec.jobs import JobRequest, has_lists, jobs_of
from paceline.spec.keywords import with_keywords
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_of, program_of
from paceline.spec.resolve_workload import trace_of, workload_of
from paceline.topology import parse_topology
from paceline.units import format_seconds, parse_seconds, parse_share, plural
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.calibration.run_evidence import RunEvidence
    from paceline.predictor.target_efficiency import NeededBandwidths
    from paceline.predictor.whatif import WhatIf
    from paceline.study import Study

Target = str | Path | Cluster
Measured = Union[Evidence, "Study", str, Path]
"""Evidence, a study, its name, or a log or trace of a run."""


@overload
def predict(  # type: ignore[overload-overlap]  # a single value is no list: str is the exception
    model: Model | None,
    cluster: Target | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Unpack[JobOptions],
) -> Prediction: ...


@overload
def predict(
    model: Many[Model] | None,
    cluster: Many[Target] | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Unpack[JobLists],
) -> Predictions: ...


@with_keywords(JobLists)
def predict(
    model: Any,
    cluster: Any = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Any,
) -> Prediction | Predictions:
    """Predict one training step: seconds, samples per second, bytes of memory, with intervals.

    ``model`` is a network of the zoo, FILE.py:FUNCTION, FILE.onnx, config.json, a `Graph` or a
    `Workload`; ``cluster`` a name ('paceline catalog clusters'), a TOML file or a `Cluster`. A
    ``plan`` is used as given; without one, its fields are keywords. ``evidence`` holds
    measurements of the job, or is a study of it, or a log or trace of a run of it on nodes of
    ``cluster`` (as many as the log states, or ``measured_on``). Without a cluster, device or trace,
    the prediction is for this machine. Lists of models, clusters and of the keywords that allow
    lists give one prediction for each combination.
    """
    jobs = jobs_of(model, cluster, options)
    found = [_predict(job, plan, evidence) for job in jobs]
    if has_lists({"model": model, "cluster": cluster, **options}):
        return Predictions(tuple(found))
    return found[0]


def _predict(job: JobRequest, plan: Plan | None, evidence: "Measured | None") -> Prediction:
    options = job.options
    has_target = job.cluster is not None or options.get("device") or options.get("trace")
    if not has_target and not isinstance(evidence, Evidence):
        from paceline.calibration.local_prediction import predict_local

        topology = (options.pop("nodes", None) or 1, options.pop("processes", None) or 1)
        store = None if evidence is None else _study_of(evidence).path
        _refuse_plan(plan)
        local = predict_local(job.model, [topology], store=store, **cast(Any, options))
        return local.comparisons[0].prediction
    prepared, notes = _completed(job.model, job.cluster, plan, options, evidence)
    return noted(predictor.predict_job(prepared), *notes)


def _study_of(evidence: "Measured") -> "Study":
    from paceline.study import Study

    if isinstance(evidence, Study):
        return evidence
    if Path(cast(str, evidence)).is_file():
        raise InputError(
            f"no cluster or device given for the run of {evidence}",
            "add --cluster or --device of the machine that it ran on",
        )
    return Study.load(str(evidence))


def _refuse_plan(plan: Plan | None) -> None:
    if plan is not None:
        raise InputError(
            "a prediction for this machine does not support a plan",
            "give a cluster or a device",
        )


@dataclass(frozen=True, repr=False)
class WhatIfs(PublicResult):
    """A prediction and the step time under changes of resources or plan."""

    schema: ClassVar[str] = "whatif/1"
    base: Prediction
    changes: "tuple[WhatIf, ...]"

    def parts(self) -> list[Part]:
        """The prediction, changes of resources, and other plans."""
        from paceline.predictor.prediction_tables import whatif_table

        resources = whatif_table(self.changes, "resource")
        plans: Part = "Other plans: none that fits saves time."
        if any(change.kind == "optimisation" for change in self.changes):
            plans = whatif_table(self.changes, "optimisation")
        return [str(self.base), "", resources, "", plans]

    def summary(self) -> str:
        """The job and its throughput."""
        return self.base.summary()

    def to_dict(self) -> dict[str, Any]:
        """The prediction, and seconds and gain of each change."""
        from paceline.predictor.prediction_tables import whatif_json

        return whatif_json(self.base, self.changes)


@dataclass(frozen=True, repr=False)
class WhatIfLists(PublicResult):
    """What-ifs of several jobs: one row for each job and change."""

    schema: ClassVar[str] = "whatif/1"
    items: tuple[WhatIfs, ...]

    def parts(self) -> list[Part]:
        """Changes of resources and other plans, with columns for the options that differ."""
        from paceline.predictor.prediction_tables import whatif_lists_table

        found = [(each.base, each.changes) for each in self.items]
        return [whatif_lists_table(found, kind) for kind in ("resource", "optimisation")]

    def to_dict(self) -> dict[str, Any]:
        """The what-ifs of each job."""
        return {"whatif": [each.to_dict() for each in self.items]}


@overload
def whatif(  # type: ignore[overload-overlap]  # as `predict`
    model: Model | None,
    cluster: Target | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Unpack[JobOptions],
) -> WhatIfs: ...


@overload
def whatif(
    model: Many[Model] | None,
    cluster: Many[Target] | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Unpack[JobLists],
) -> WhatIfLists: ...


@with_keywords(JobLists)
def whatif(
    model: Any,
    cluster: Any = None,
    plan: Plan | None = None,
    *,
    evidence: "Measured | None" = None,
    **options: Any,
) -> WhatIfs | WhatIfLists:
    """Predict a step with each resource twice as fast or free, and with other plans.

    Arguments as in `predict`. A free resource bounds the gain of any improvement of it; other
    plans are predicted in full.
    """
    from paceline.predictor.whatif import what_if, worthwhile

    found = []
    for job in jobs_of(model, cluster, options, "whatif"):
        prepared, notes = _completed(job.model, job.cluster, plan, job.options, evidence)
        base = noted(predictor.predict_job(prepared), *notes)
        found.append(WhatIfs(base, tuple(worthwhile(what_if(prepared), base.fits))))
    if has_lists({"model": model, "cluster": cluster, **options}):
        return WhatIfLists(tuple(found))
    return found[0]


@with_keywords(JobLists)
def bandwidth_for(
    model: Many[Model] | None,
    cluster: Many[Target] | None = None,
    plan: Plan | None = None,
    *,
    target_efficiency: str | float,
    evidence: "Measured | None" = None,
    **options: Unpack[JobLists],
) -> "NeededBandwidths":
    """The bandwidth of each link (bytes/s) with which a plan reaches an efficiency (0 to 1, or %).

    Arguments as in `predict`. Links are changed one at a time; None where no bandwidth is
    sufficient.
    """
    from paceline.predictor.target_efficiency import NeededBandwidths, bandwidth_needed

    target = parse_share(target_efficiency)
    found = []
    for job in jobs_of(model, cluster, options, "bandwidth_for"):
        prepared, _ = _completed(job.model, job.cluster, plan, job.options, evidence)
        links = tuple(bandwidth_needed(prepared, target))
        found.append((predictor.predict_job(prepared), links))
    return NeededBandwidths(target, tuple(found))


def _completed(
    model: Model | None,
    cluster: str | Path | Cluster | None,
    plan: Plan | None,
    options: JobOptions,
    evidence: "Measured | None",
) -> tuple[PredictionInputs, tuple[str, ...]]:
    """The job with defaults filled in, and notes on them and on the evidence."""
    target = cluster_of(cluster, options)
    run, used = None, {}
    if evidence is not None and not isinstance(evidence, Evidence):
        run = _run_of(evidence)
        used = run.options(options)
        options = cast(JobOptions, {**used, **options})
    job = complete_job(model, target, options, plan)
    known = evidence if isinstance(evidence, Evidence) else run
    prepared = prepared_job(job.model, cluster, plan, job.options, known)
    notes = (job.note, "" if run is None else run.note(target.device.name, used))
    return prepared, notes


def _run_of(evidence: "Study | str | Path") -> "RunEvidence":
    """The run of a study, of a study's name, or of a log or trace."""
    from paceline.calibration.run_evidence import run_of_file, run_of_launches
    from paceline.study import Study

    if not isinstance(evidence, Study) and Path(evidence).is_file():
        return run_of_file(Path(evidence))
    try:
        study = evidence if isinstance(evidence, Study) else Study.load(str(evidence))
    except PacelineError as error:
        raise InputError(
            f"no file or study '{evidence}'", f"give a log, a trace or a study ({error.message})"
        ) from None
    return run_of_launches(study.name, study.launches)


def noted(prediction: Prediction, *notes: str) -> Prediction:
    """The prediction with ``notes`` before its own."""
    return replace(prediction, notes=(*filter(None, notes), *prediction.notes))


def prepared_job(
    model: Model | None,
    cluster: str | Path | Cluster | None,
    plan: Plan | None,
    options: JobOptions,
    evidence: "Evidence | RunEvidence | None",
) -> PredictionInputs:
    """Resolve all names and options, and prepare the step.

    Defaults are fp32, 32 samples and data parallelism, as in published studies.
    """
    target = cluster_of(cluster, options)
    chosen = plan_of(plan, target.devices, options)
    workload = workload_of(model, chosen.dp, options)
    check_recomputation(chosen, workload.graph)
    known, curve = _evidence(options, evidence), options.get("allreduce_curve")
    run = None if isinstance(evidence, Evidence) else evidence
    if run is not None and run.seconds is not None:
        topology = run.topology(options.get("measured_on"), target.devices_per_node)
        known = _measured_elsewhere(workload, target, chosen, topology, known, run)
    elif options.get("measured_on") is not None:
        stated = parse_topology(str(options.get("measured_on")))
        known = _measured_elsewhere(workload, target, chosen, stated, known)
    if curve is not None:
        from paceline.calibration.machine_evidence import with_curve
        from paceline.measurement.probe.allreduce_curves import read_curve

        measured = read_curve(Path(curve)) if isinstance(curve, str | Path) else curve
        known = with_curve(known, measured, chosen.holders)
    preparing = options.get("input_time")
    seconds = 0.0 if preparing is None else parse_seconds(preparing)
    prepared = predictor.prepare(
        workload,
        target,
        chosen,
        evidence=known,
        program=program_of(options),
        input_seconds=seconds,
    )
    if known.alone_seconds is not None and options.get("measured_step") is not None:
        _check_below_peak(predictor.model_step(prepared), 1, known.alone_seconds)
    return prepared


def _measured_elsewhere(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    topology: tuple[int, int],
    known: Evidence,
    run: "RunEvidence | None" = None,
) -> Evidence:
    """The measured step as that of the same plan with the replicas of ``topology``."""
    seconds = known.alone_seconds if run is None else run.seconds
    text = f"{topology[0]}x{topology[1]}"
    if seconds is None:
        raise InputError(
            f"--measured-on {text} needs --measured-step or --evidence",
            "add --measured-step, such as 5.2s",
        )
    small = cluster.shaped(*topology)
    replica = plan.devices // plan.dp
    if small.devices % replica:
        raise InputError(
            f"--measured-on {text} has {plural(small.devices, 'device')}, but a replica needs "
            f"{replica} ({plan.label})",
            f"measure on a multiple of {replica} devices",
        )
    replicas = small.devices // replica
    measured = replace(plan, dp=replicas, shard_group=None)
    if replicas == 1 and plan.cp == 1:
        measured = replace(measured, zero=0)
    if run is not None and run.global_batch:
        workload = workload.with_batch(max(1, round(run.global_batch / replicas)))
    step = predictor.model_step(predictor.job_of(workload, small, measured))
    _check_below_peak(step, replica, seconds)
    return replace(known, alone_seconds=None, baseline=Baseline(step, seconds))


def _check_below_peak(step: ModelledStep, devices: int, seconds: float) -> None:
    """Reject a measured step of ``devices`` that is shorter than its arithmetic at peak rate."""
    device, workload, parts = step.job.cluster.device, step.job.workload, step.parts
    peak = device.peak_flops.get(parts.precision.compute)
    flops = float(workload.cost.training_flops) * executed_flop_share(parts) / devices
    if peak is not None and seconds * peak < flops:
        raise InputError(
            f"a measured step of {format_seconds(seconds)} is shorter than its arithmetic at peak: "
            f"{format_seconds(flops / peak)} on {device.name} ({peak / 1e12:.3g} TFLOP/s)",
            "give the step of one device that trains the whole model on --batch samples, or state "
            "the devices of the measurement with --measured-on, and its --precision",
        )


def _evidence(options: JobOptions, evidence: "Evidence | RunEvidence | None") -> Evidence:
    """Evidence from keywords, else ``evidence``."""
    trace, step = trace_of(options.get("trace")), options.get("measured_step")
    known = evidence if isinstance(evidence, Evidence) else NO_EVIDENCE
    if trace is not None:
        from paceline.predictor.kernels.layer_traces import trace_evidence

        known = trace_evidence(trace)
    if step is not None:
        known = replace(known, alone_seconds=parse_seconds(step))
    spread = options.get("jitter")
    return known if spread is None else replace(known, spread=spread)
