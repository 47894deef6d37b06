"""predict, whatif, sweep, advise: predictions from names and numbers as people write them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from paceline.api.plan_words import optimiser_state_of, plan_of
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
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.analyse.sharing_out import Workers
    from paceline.api.training import TrainingWords
    from paceline.predictor.per_layer import PerLayerPlan
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.predictor.target_efficiency import BandwidthNeeded
    from paceline.predictor.training_run import TrainingRun
    from paceline.predictor.vectorised import SweepComparison
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


@dataclass(frozen=True)
class Advised:
    """The best plans of a search and what was searched; prints itself as tables."""

    search: "PlanSearch"
    advice: "Advice"

    @property
    def best(self) -> list[Prediction]:
        """Predictions of the best plans, the fastest first."""
        return [own.prediction for own in self.advice.best]

    def __str__(self) -> str:
        from paceline.report.tables.advice import advice_parts

        return "\n".join(map(str, advice_parts(self.search, self.advice)))

    __repr__ = __str__


def advise(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    nodes: int | Sequence[int] | None = None,
    top: int = 5,
    price: float | None = None,
    precision: str | None = None,
    **words: Any,
) -> Advised:
    """The ``top`` plans for ``global_batch`` samples per step, and why others are worse.

    ``nodes`` are the numbers of nodes to search [the cluster's]; ``price`` is per device and
    hour. ``precision`` is 16 bits for transformers where the device has them, else fp32. Further
    keywords are those of `predict` for a workload and a place, ``framework``,
    ``fused_attention`` and ``optimiser_state``.
    """
    from paceline.predictor.search import advise as search_plans

    search = _search(model, cluster, global_batch, nodes, price, precision, words)
    return Advised(search, search_plans(search, top))


def advise_within(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    nodes: int | Sequence[int] | None = None,
    budget: float | None = None,
    deadline: str | float | None = None,
    precision: str | None = None,
    training: "TrainingWords",
    **words: Any,
) -> "tuple[TrainingRun, ...]":
    """The best plan of each number of nodes that trains all within a budget and a deadline.

    ``training`` says how much is trained and what is known of running it (`Prediction.training`),
    ``budget`` is in the currency of the price, ``deadline`` seconds or text such as "30d". With a
    budget the fastest comes first, else the cheapest.
    """
    from paceline.api.training import asks_for_training, training_of
    from paceline.predictor.search.limits import Limits, within_limits

    if not asks_for_training(training):
        raise InputError(
            "a budget or a deadline is about a whole training",
            "say how much: --tokens 15T or --epochs 90",
        )
    limits = Limits(budget, None if deadline is None else parse_seconds(deadline))
    search = _search(model, cluster, global_batch, nodes, training.get("price"), precision, words)
    return within_limits(search, lambda found: training_of(found, training), limits)


def _search(
    model: Model,
    cluster: str | Path | Cluster | None,
    global_batch: int | None,
    nodes: int | Sequence[int] | None,
    price: float | None,
    precision: str | None,
    words: dict[str, Any],
) -> "PlanSearch":
    """What `advise` searches: everything named is resolved here."""
    from paceline.plan.tensor_parallel import is_transformer
    from paceline.predictor.search import PlanSearch

    job = job_words(words)
    counts = tuple(sorted([nodes] if isinstance(nodes, int) else nodes or ()))
    place = _priced(cluster_of(cluster, job), price)
    place = place.with_nodes(max(counts)) if counts else place
    workload = _searched(model, place, global_batch, precision, job)
    usual = "megatron-lm" if is_transformer(workload.graph) else None
    like = Plan(
        framework=job.get("framework") or usual,
        fused_attention=job.get("fused_attention", True),
        optimiser_state=optimiser_state_of(job),
    )
    return PlanSearch(workload, place, workload.batch, counts, like)


def advise_per_layer(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    precision: str | None = None,
    **words: Any,
) -> "PerLayerPlan":
    """Data or model parallelism for each layer of a network that is no transformer.

    ``global_batch`` is samples per step of all devices; memory is not checked. Keywords as in
    `advise`.
    """
    from paceline.predictor.per_layer import choose_per_layer

    job = job_words(words)
    place = cluster_of(cluster, job)
    workload = _searched(model, place, global_batch, precision, job)
    if workload.batch % place.devices:
        raise InputError(
            f"{workload.batch} samples do not divide among {place.devices} devices",
            f"take a multiple of {place.devices}",
        )
    own = workload.with_batch(workload.batch // place.devices)
    return choose_per_layer(
        own, place, Plan(framework=job.get("framework"), optimiser_state=optimiser_state_of(job))
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


def _priced(cluster: Cluster, price: float | None) -> Cluster:
    if price is None:
        return cluster
    if not 0 < price < float("inf"):
        raise InputError(f"a price of {price:g} is impossible", "give it per device and hour")
    return replace(cluster, price_per_device_hour=price)


def _searched(
    model: Model,
    cluster: Cluster,
    global_batch: int | None,
    precision: str | None,
    job: JobWords,
) -> Workload:
    """The workload of a search, which any plan may divide: its batch is that of all devices."""
    if job.get("trace") is not None:
        raise InputError("a trace holds for one plan only", "name the network: --model resnet50")
    if global_batch is None:
        raise InputError(
            "advice needs the batch of all devices together", "give --global-batch, e.g. 1536"
        )
    job = {**job, "global_batch": global_batch, "precision": precision or "fp32"}
    workload = workload_of(model, 1, job).with_batch(global_batch)
    if precision is None and workload.graph.uses_sequence:
        known = cluster.device.peak_flops
        best = next((name for name in ("bf16", "fp16") if name in known), "fp32")
        workload = replace(workload, precision=best)
    return workload
