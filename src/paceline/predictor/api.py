"""Public functions predict, whatif and sweep: resolve names and options, then predict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor import predict as predictor
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.kernels.layer_times import executed_flop_share
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.spec.defaults import complete_job, complete_workload
from paceline.spec.job_options import (
    JobOptions,
    Model,
    PlanOptions,
    cluster_of,
    curve_of,
    parse_job_options,
    program_of,
    trace_of,
    workload_of,
)
from paceline.spec.plan_options import plan_of
from paceline.units import format_seconds, parse_seconds
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.parallel_map import Workers
    from paceline.predictor.sweep import SweepComparison
    from paceline.predictor.target_efficiency import BandwidthNeeded
    from paceline.predictor.whatif import WhatIf
    from paceline.study import Study

Axes = Mapping[str, Sequence[float]] | Iterable[str] | str


def predict(
    model: Model | None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Evidence | Study | None" = None,
    **options: Unpack[JobOptions],
) -> Prediction:
    """Predict one training step: seconds, samples per second, bytes of memory, with intervals.

    ``model`` is a network of the zoo, FILE.py:FUNCTION, FILE.onnx, config.json, a `Graph` or a
    `Workload`; ``cluster`` a name ('paceline hardware clusters'), a TOML file or a `Cluster`. A
    ``plan`` is used as given; without one, its fields are keywords: ``dp``, ``tp``, ``pp``, ``cp``,
    ``context_form`` (ring, ring_in_order, gather, ulysses), ``ep``, ``expert_imbalance``, ``zero``,
    ``shard_group``, ``optimiser_state`` (fp32, bf16, 8bit), ``offload``, ``tp_overlap``,
    ``micro_batch`` (samples), ``micro_batches``, ``interleave``, ``pipeline``, ``stage_layers``,
    ``recompute`` (none, selective, op, full, every:2), ``sequence_parallel``, ``fused_attention``,
    ``framework``, ``overlap``, ``bucket`` (bytes, "25MiB"), ``compression``. Further keywords:
    ``batch`` (samples per replica), ``global_batch``, ``seq`` (tokens per sample), ``precision``,
    ``optimiser``, ``lora`` (rank), ``qlora``, ``inputs``, ``trace``; ``device``, ``link``,
    ``intra_link``, ``cards``, ``scale``, ``nodes``, ``processes`` (on each node); ``measured_step``
    and ``input_time`` (seconds, "253ms"), ``jitter``, ``curve`` (a file of all-reduce times by
    message size); ``tuning`` (plain, reference, tuned). ``evidence`` holds measurements of the job,
    or is a study of it. Without a cluster, device or trace, `predict_local` predicts for this
    machine.
    """
    options = parse_job_options(options)
    has_target = cluster is not None or options.get("device") or options.get("trace") is not None
    if not has_target and not isinstance(evidence, Evidence):
        from paceline.calibration.predict_local import predict_local

        topology = (options.get("nodes") or 1, options.get("processes") or 1)
        store = None if evidence is None else evidence.path
        return predict_local(model, [topology], store=store, **options).comparisons[0].prediction
    prepared, note = _completed(model, cluster, plan, options, evidence)
    found = _noted(predictor.predict_job(prepared), note)
    if evidence is None or isinstance(evidence, Evidence):
        return found
    return _with_note(found, evidence)


@dataclass(frozen=True)
class WhatIfs:
    """A prediction and the step time under changes of resources or plan."""

    base: Prediction
    changes: "tuple[WhatIf, ...]"

    def __str__(self) -> str:
        from paceline.predictor.prediction_tables import whatif_table

        tables = (whatif_table(self.changes, kind) for kind in ("resource", "optimisation"))
        return "\n\n".join(map(str, (self.base, *tables)))

    __repr__ = __str__


def whatif(
    model: Model | None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Evidence | Study | None" = None,
    **options: Unpack[JobOptions],
) -> WhatIfs:
    """Predict a step with each resource twice as fast or free, and with other plans.

    Arguments as in `predict`. A free resource bounds the gain of any improvement of it; other
    plans are predicted in full.
    """
    from paceline.predictor.whatif import what_if

    prepared, note = _completed(model, cluster, plan, parse_job_options(options), evidence)
    return WhatIfs(_noted(predictor.predict_job(prepared), note), tuple(what_if(prepared)))


def bandwidth_for(
    model: Model | None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    target_efficiency: float,
    evidence: "Evidence | Study | None" = None,
    **options: Unpack[JobOptions],
) -> "list[BandwidthNeeded]":
    """The bandwidth of each link (bytes/s) with which a plan reaches an efficiency (0 to 1).

        Arguments as in `predict`. Links are changed one at a time; None where no bandwidth is
    sufficient.
    """
    from paceline.predictor.target_efficiency import bandwidth_needed

    prepared, _ = _completed(model, cluster, plan, parse_job_options(options), evidence)
    return bandwidth_needed(prepared, target_efficiency)


def sweep(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    axes: Axes = "link=1gbit..100gbit",
    *,
    compare: str | Sequence[str] = ("dp", "mp"),
    workers: "Workers" = 1,
    **options: Unpack[JobOptions],
) -> "SweepComparison":
    """Step seconds of data and model parallelism along one or two of five axes.

    ``axes`` are strings such as "link=1gbit..100gbit:40" or "nodes=2..64", or increasing values
    by name (batch in samples, flops in FLOP/s, memory and link in bytes per second, nodes). Other
    axes keep the values of workload and cluster. ``compare`` is dp, mp or both. Values of a second
    axis are distributed over ``workers``: processes, or the address of a cluster
    (tcp://host:8786 of Dask, ray://host:10001). Results are identical.
    """
    from paceline.predictor.sweep.parallel_sweep import compare_by_workers

    options = parse_job_options(options)
    for name in sorted(PlanOptions.__annotations__.keys() - {"framework", "overlap"}):
        if options.get(name) not in (None, False, "none"):
            raise InputError(
                f"sweep does not support {name}",
                "omit it, or use 'paceline predict' for each point",
            )
    given = _axes(axes)
    ways = compare.split(",") if isinstance(compare, str) else compare
    plan = plan_of(
        None, 1, {"framework": options.get("framework"), "overlap": options.get("overlap")}
    )
    return compare_by_workers(
        swept_workload(model, cluster, **options),
        cluster_of(cluster, options),
        given,
        list(dict.fromkeys(way.strip() for way in ways)),
        workers=workers,
        plan=plan,
        global_batch=options.get("global_batch"),
    )


def swept_workload(
    model: Model, cluster: str | Path | Cluster | None = None, **options: Unpack[JobOptions]
) -> Workload:
    """The workload of each replica in a `sweep`, with the defaults of `predict`."""
    job = parse_job_options(options)
    if job.get("trace") is not None:
        raise InputError(
            "sweep does not support --trace", "give a network instead: --model alexnet"
        )
    if job.pop("global_batch", None) is not None and job.get("batch") is not None:
        raise InputError("--batch and --global-batch are mutually exclusive", "give only one")
    return complete_workload(model, cluster_of(cluster, job), job)


def _completed(
    model: Model | None,
    cluster: str | Path | Cluster | None,
    plan: Plan | None,
    options: JobOptions,
    evidence: "Evidence | Study | None",
) -> tuple[PredictionInputs, str]:
    """The job with defaults filled in, and a note that lists them."""
    job = complete_job(model, cluster_of(cluster, options), options, plan)
    return prepared_job(job.model, cluster, plan, job.words, evidence), job.note


def _noted(prediction: Prediction, note: str) -> Prediction:
    """The prediction with ``note`` as its first note."""
    return replace(prediction, notes=(note, *prediction.notes)) if note else prediction


def prepared_job(
    model: Model | None,
    cluster: str | Path | Cluster | None,
    plan: Plan | None,
    options: JobOptions,
    evidence: "Evidence | Study | None",
) -> PredictionInputs:
    """Resolve all names and options, and prepare the step.

    Defaults are fp32, 32 samples and data parallelism, as in published studies.
    """
    target = cluster_of(cluster, options)
    chosen = plan_of(plan, target.devices, options)
    workload = workload_of(model, chosen.dp, options)
    check_recomputation(chosen, workload.graph)
    known, curve = _evidence(options, evidence), curve_of(options.get("curve"))
    if curve is not None:
        from paceline.calibration.curve_evidence import with_curve

        known = with_curve(known, curve, chosen.holders)
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
    if options.get("measured_step") is not None:
        _check_below_peak(prepared, known.alone_seconds or 0.0)
    return prepared


def _check_below_peak(prepared: PredictionInputs, seconds: float) -> None:
    """Reject a measured step that is shorter than its arithmetic at peak rate."""
    device, workload = prepared.cluster.device, prepared.workload
    parts = predictor.model_step(prepared).parts
    peak = device.peak_flops.get(parts.precision.compute)
    flops = float(workload.cost.training_flops) * executed_flop_share(parts)
    if peak is not None and seconds * peak < flops:
        raise InputError(
            f"a measured step of {format_seconds(seconds)} is shorter than its arithmetic at peak: "
            f"{format_seconds(flops / peak)} on {device.name} ({peak / 1e12:.3g} TFLOP/s)",
            "give the step of one device that trains the whole model on --batch samples, and its "
            "--precision",
        )


def _evidence(options: JobOptions, evidence: "Evidence | Study | None") -> Evidence:
    """Evidence from keywords, else ``evidence``.

    Launches of a study ran on this machine, so they are no evidence for another device.
    """
    trace, step = trace_of(options.get("trace")), options.get("measured_step")
    known = evidence if isinstance(evidence, Evidence) else NO_EVIDENCE
    if trace is not None:
        from paceline.predictor.kernels.layer_traces import trace_evidence

        known = trace_evidence(trace)
    if step is not None:
        known = replace(known, alone_seconds=parse_seconds(step))
    spread = options.get("jitter")
    return known if spread is None else replace(known, spread=spread)


def _with_note(prediction: Prediction, study: "Study") -> Prediction:
    machines = {str(one.environment.get("cpu_model", "this machine")) for one in study.launches}
    note = (
        f"the launches of study {study.name} ran on {', '.join(sorted(machines)) or 'nothing'}, "
        f"not on {prediction.cluster.device.name}, so this prediction does not use them"
    )
    return replace(prediction, notes=(*prediction.notes, note))


def _axes(axes: Axes) -> dict[str, Sequence[float]]:
    from paceline.spec.axis_options import parse_axis

    if isinstance(axes, Mapping):
        return dict(axes)
    texts = [axes] if isinstance(axes, str) else list(axes)
    given: dict[str, Sequence[float]] = {}
    for name, values in map(parse_axis, texts):
        if name in given:
            raise InputError(f"duplicate axis '{name}'", "give each axis once")
        given[name] = values
    return given
