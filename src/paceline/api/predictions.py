"""predict, whatif, sweep: predictions from names and numbers as people write them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from paceline.api.plan_words import plan_of
from paceline.api.requests import (
    JobWords,
    Model,
    cluster_of,
    curve_of,
    job_words,
    program_of,
    trace_of,
    workload_of,
)
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.possible import check_recomputation
from paceline.predictor import predict as predictor
from paceline.predictor.evidence import NO_EVIDENCE, Evidence
from paceline.predictor.prediction import Prediction
from paceline.predictor.prepared import PreparedStep
from paceline.units import parse_seconds

if TYPE_CHECKING:
    from paceline.analyse.sharing_out import Workers
    from paceline.predictor.sweeps import SweepComparison
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
    **words: Unpack[JobWords],
) -> Prediction:
    """Predict one training step: seconds, samples per second, bytes of memory, with intervals.

    ``model`` is a network of the zoo, FILE.py:FUNCTION, FILE.onnx, config.json, a `Graph` or a
    `Workload`; ``cluster`` a name ('paceline hardware clusters'), a TOML file or a `Cluster`.
    A ``plan`` is taken as it is; without one, degrees are keywords: ``dp``, ``tp``, ``pp``,
    ``cp``, ``context_form`` (ring, ring_in_order, gather, ulysses), ``ep``, ``expert_imbalance``,
    ``zero``, ``shard_group``, ``optimiser_state`` (fp32, bf16, 8bit), ``offload``, ``tp_overlap``,
    ``micro_batch`` (samples), ``micro_batches``, ``interleave``,
    ``pipeline``, ``stage_layers``, ``recompute`` (none, selective, op, full, every:2),
    ``sequence_parallel``, ``fused_attention``,
    ``framework``, ``overlap``, ``bucket`` (bytes, "25MiB"), ``compression``. Further keywords:
    ``batch`` (samples per replica), ``global_batch``, ``seq`` (tokens per sample),
    ``precision``, ``optimiser``, ``lora`` (rank), ``qlora``, ``inputs``, ``trace``; ``device``,
    ``link``, ``intra_link``, ``cards``, ``scale``, ``nodes``, ``processes`` (on each node);
    ``measured_step`` and ``input_time`` (seconds, "253ms"), ``jitter``, ``curve`` (a file with
    all-reduce by bytes); ``tuning`` (plain, reference, tuned). ``evidence`` is what was measured
    of the job, or a study of it. Without a cluster, device or trace the place is this machine
    (`predict_here`).
    """
    words = job_words(words)
    somewhere = cluster is not None or words.get("device") or words.get("trace") is not None
    if not somewhere and not isinstance(evidence, Evidence):
        from paceline.api.this_machine import predict_here

        place = (words.get("nodes") or 1, words.get("processes") or 1)
        store = None if evidence is None else evidence.path
        return predict_here(model, [place], store=store, **words).comparisons[0].prediction
    found = predictor.prediction_of(prepared_job(model, cluster, plan, words, evidence))
    if evidence is None or isinstance(evidence, Evidence):
        return found
    return _with_note(found, evidence)


@dataclass(frozen=True)
class WhatIfs:
    """A prediction, and what changes to its resources or plan would give; seconds per step."""

    base: Prediction
    changes: "tuple[WhatIf, ...]"

    def __str__(self) -> str:
        from paceline.report.tables.predictions import whatif_table

        tables = (whatif_table(self.changes, kind) for kind in ("resource", "optimisation"))
        return "\n\n".join(map(str, (self.base, *tables)))

    __repr__ = __str__


def whatif(
    model: Model | None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    evidence: "Evidence | Study | None" = None,
    **words: Unpack[JobWords],
) -> WhatIfs:
    """What a step would gain if a resource were twice as fast or free, or the plan another.

    Takes what `predict` takes. A free resource bounds what any improvement of it can give;
    other plans are predicted in full.
    """
    from paceline.predictor.whatif import what_if

    prepared = prepared_job(model, cluster, plan, job_words(words), evidence)
    return WhatIfs(predictor.prediction_of(prepared), tuple(what_if(prepared)))


def bandwidth_for(
    model: Model | None,
    cluster: str | Path | Cluster | None = None,
    plan: Plan | None = None,
    *,
    target_efficiency: float,
    evidence: "Evidence | Study | None" = None,
    **words: Unpack[JobWords],
) -> "list[BandwidthNeeded]":
    """The bandwidth of each link (bytes/s) with which a plan reaches an efficiency (0 to 1).

    Takes what `predict` takes. Each link is changed alone; None where no bandwidth of it is
    enough.
    """
    from paceline.predictor.target_efficiency import bandwidth_needed

    prepared = prepared_job(model, cluster, plan, job_words(words), evidence)
    return bandwidth_needed(prepared, target_efficiency)


def sweep(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    axes: Axes = "link=1gbit..100gbit",
    *,
    compare: str | Sequence[str] = ("dp", "mp"),
    workers: "Workers" = 1,
    **words: Unpack[JobWords],
) -> "SweepComparison":
    """Step seconds of data and model parallelism along one or two of five axes.

    ``axes`` are texts such as "link=1gbit..100gbit:40" or "nodes=2..64", or rising values by
    name (batch in samples, flops in FLOP/s, memory and link in bytes per second, nodes). What is
    no axis stays as workload and cluster have it. ``compare`` is dp, mp or both. The values of a
    second axis are shared out to ``workers``: processes, or a cluster by its address
    (tcp://host:8786 of Dask, ray://host:10001); the answer does not depend on it.
    """
    from paceline.analyse.shared_sweep import compare_by_workers

    words = job_words(words)
    if words.get("trace") is not None:
        raise InputError("a trace holds for one device only", "name the network: --model alexnet")
    given = _axes(axes)
    ways = compare.split(",") if isinstance(compare, str) else compare
    plan = plan_of(None, 1, {"framework": words.get("framework"), "overlap": words.get("overlap")})
    whole = words.pop("global_batch", None)
    if whole is not None and words.get("batch") is not None:
        raise InputError("both --batch and --global-batch", "give one of them")
    return compare_by_workers(
        workload_of(model, 1, words),
        cluster_of(cluster, words),
        given,
        list(dict.fromkeys(way.strip() for way in ways)),
        workers=workers,
        plan=plan,
        global_batch=whole,
    )


def prepared_job(
    model: Model | None,
    cluster: str | Path | Cluster | None,
    plan: Plan | None,
    words: JobWords,
    evidence: "Evidence | Study | None",
) -> PreparedStep:
    """The one call of the predictor for a place: everything named is resolved here."""
    place = cluster_of(cluster, words)
    chosen = plan_of(plan, place.devices, words)
    workload = workload_of(model, chosen.dp, words)
    check_recomputation(chosen, workload.graph)
    known, curve = _evidence(words, evidence), curve_of(words.get("curve"))
    if curve is not None:
        from paceline.analyse.curve_evidence import with_curve

        known = with_curve(known, curve, chosen.holders)
    preparing = words.get("input_time")
    return predictor.prepare(
        workload,
        place,
        chosen,
        evidence=known,
        program=program_of(words),
        input_seconds=0.0 if preparing is None else parse_seconds(preparing),
    )


def _evidence(words: JobWords, evidence: "Evidence | Study | None") -> Evidence:
    """What was measured: ``evidence``, and what keywords say before it.

    Launches of a study are of this machine and say nothing of another device's times.
    """
    trace, step = trace_of(words.get("trace")), words.get("measured_step")
    known = evidence if isinstance(evidence, Evidence) else NO_EVIDENCE
    if trace is not None:
        from paceline.predictor.traces import trace_evidence

        known = trace_evidence(trace)
    if step is not None:
        known = replace(known, alone_seconds=parse_seconds(step))
    spread = words.get("jitter")
    return known if spread is None else replace(known, spread=spread)


def _with_note(prediction: Prediction, study: "Study") -> Prediction:
    machines = {str(one.environment.get("cpu_model", "this machine")) for one in study.launches}
    note = (
        f"the launches of study {study.name} ran on {', '.join(sorted(machines)) or 'nothing'}, "
        f"not on {prediction.cluster.device.name}: nothing of them is used here"
    )
    return replace(prediction, notes=(*prediction.notes, note))


def _axes(axes: Axes) -> dict[str, Sequence[float]]:
    from paceline.api.axes import parse_axis

    if isinstance(axes, Mapping):
        return dict(axes)
    texts = [axes] if isinstance(axes, str) else list(axes)
    given: dict[str, Sequence[float]] = {}
    for name, values in map(parse_axis, texts):
        if name in given:
            raise InputError("the same axis twice", "give each --axis another name")
        given[name] = values
    return given
