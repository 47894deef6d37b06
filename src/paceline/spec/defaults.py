"""Defaults of a job: precision, batch and plan.

Large models have a usual global batch and the plan that `default_plan` chooses for it. Otherwise
plans are tried from the simplest to the one with the least memory; the first that fits is used.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import Cluster, Device
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.memory.fit_probability import LIKELY, room_bytes
from paceline.predictor.memory.offload import has_fast_host
from paceline.predictor.memory.peak_memory import fullest, stage_memories
from paceline.predictor.partition.tensor_parallel import common_size, is_transformer
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.predict import job_of, model_step
from paceline.predictor.prediction_text import CHOSEN
from paceline.spec.default_batch import given_global_batch, sequence_of, usual_global_batch
from paceline.spec.job_options import JobOptions
from paceline.spec.program_defaults import DDP, FSDP, MEGATRON, recommended
from paceline.spec.resolve_model import DEFAULT_BATCH, Model, graph_of, is_large
from paceline.spec.resolve_plan import plan_of, plan_options
from paceline.spec.resolve_workload import inputs_of, workload_of
from paceline.units import format_count, plural
from paceline.workload.blocks import blocks
from paceline.workload.graph import RECORDED_BATCH, Graph
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

TORCHREC = "torchrec"
_TITLES = {TORCHREC: "TorchRec", DDP: "DDP", FSDP: "FSDP", MEGATRON: "Megatron-LM"}
_DEGREES = ("tp", "pp", "cp", "ep")
_STATED = (*_DEGREES, "zero")
_PLAN_OPTIONS = (
    *("framework", "dp", *_DEGREES, "zero", "shard_group", "interleave", "stage_layers"),
    *("pipeline", "offload", "overlap", "bucket", "compression"),
)
"""Options of a plan: if one is given, no other plan is chosen."""
_LEAST_SEQUENCE = 128
"""Tokens; sequences that fit are multiples of it."""
_LARGEST_FITTED = 2**24
_TENSOR_CORES = 4.0
"""Least rate of fp16 over that of fp32 with tensor cores; twice the rate needs none (P100)."""
_PARTIAL = (8, 4, 2)
"""Recomputation of one block in 8, 4, 2: programs recompute as many blocks as memory requires."""
_LARGEST_TP = 8
"""Devices per node of common clusters: larger tp would communicate between nodes."""


@dataclass(frozen=True)
class CompleteJob:
    """A job with all defaults filled in, and a note that lists them ("" for none)."""

    model: Model | None
    options: JobOptions
    note: str = ""


def default_precision(graph: Graph, device: Device) -> str:
    """The dtype of config.json if the device supports it, else bf16 if supported, else fp32.

    Large models on devices with tensor cores for fp16 alone (V100, T4) use mixed precision.
    """
    rates = device.peak_flops
    if graph.dtype and precision(graph.dtype).compute in rates:
        return precision(graph.dtype).name
    if "bf16" in rates:
        return "bf16"
    tensor_cores = rates.get("fp16", 0.0) >= _TENSOR_CORES * rates.get("fp32", math.inf)
    return "amp_fp16" if tensor_cores and is_large(graph) else "fp32"


def complete_job(
    model: Model | None, cluster: Cluster, options: JobOptions, plan: Plan | None = None
) -> CompleteJob:
    """The job with defaults for options that ``options`` and ``plan`` do not set.

    ``fit`` sets the largest batch or sequence that likely fits.
    """
    what = options.get("fit")
    if what is None:
        return _complete(model, cluster, options, plan)
    alone = cast(JobOptions, {name: value for name, value in options.items() if name != "fit"})
    if model is None or plan is not None or isinstance(model, Workload):
        raise InputError("--fit needs a model and no plan object", "omit --fit")
    return _largest(model, cluster, alone, what)


def refuse_fit(options: JobOptions, function: str) -> None:
    """Reject ``fit`` for a function that compares plans."""
    if options.get("fit") is not None:
        raise InputError(
            f"{function} does not support --fit: the largest batch depends on the plan",
            "omit --fit, or use 'paceline predict'",
        )


def _largest(
    model: str | Path | Graph, cluster: Cluster, options: JobOptions, what: str
) -> CompleteJob:
    """The job with the largest batch or sequence with which the plan of the smallest fits."""
    taken = ("batch", "global_batch", "micro_batches") if what == "batch" else ("seq",)
    given = [name for name in taken if options.get(name) is not None]
    if given:
        option = given[0].replace("_", "-")
        raise InputError(f"--fit {what} finds --{option}", f"omit --{option} or --fit")
    graph = graph_of(model, inputs_of(options), options.get("seq"))
    if what == "seq" and not graph.uses_sequence:
        raise InputError(f"{graph.name} has no sequence length", "use --fit batch")
    usual = {} if what == "batch" or options.get("global_batch") else {"batch": 1}
    first = 1 if what == "batch" else _LEAST_SEQUENCE
    least = _complete(model, cluster, cast(JobOptions, {**usual, **options, what: first}), None)
    room = room_bytes(cluster.device.known_memory_bytes, LIKELY)

    def sized(size: int) -> JobOptions:
        return cast(JobOptions, {**least.options, what: size})

    def fits(size: int) -> bool:
        known = graph if what == "batch" else graph_of(model, inputs_of(options), size)
        return _memory_bytes(known, cluster, sized(size)) <= room

    step = 1 if what == "batch" else _LEAST_SEQUENCE
    if not fits(first):
        raise InputError(
            f"not even a {'batch of 1' if what == 'batch' else f'sequence of {first} tokens'} fits",
            "use --recompute full, --qlora, more devices, or devices with more memory",
        )
    low, high = 1, 2
    while high * step <= _LARGEST_FITTED and fits(high * step):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * step) else (low, middle)
    found = graph if what == "batch" else graph_of(model, inputs_of(options), low * step)
    unit = "samples per replica" if what == "batch" else "tokens per sample"
    note = f"{CHOSEN}{low * step:,} {unit}, the most that likely fit"
    rest = least.note.removeprefix(CHOSEN)
    return CompleteJob(found, sized(low * step), f"{note}; plan of the smallest: {rest}")


def _complete(
    model: Model | None, cluster: Cluster, options: JobOptions, plan: Plan | None
) -> CompleteJob:
    if model is None or options.get("trace") is not None:
        return CompleteJob(model, options)
    known: Graph | Workload
    if isinstance(model, Workload):
        graph, known, usual = model.graph, model, {}
    else:
        known = graph = graph_of(model, inputs_of(options), options.get("seq"))
        usual = {"precision": default_precision(graph, cluster.device)}
        samples = given_global_batch(options, graph, cluster.devices)
        if samples is not None:
            options = {**options, "global_batch": samples}
        if plan is None and _plan_is_chosen(graph, options):
            chosen = _chosen(graph, cluster, options, usual)
            if chosen is not None:
                return chosen
    if plan is not None:
        usual |= _batch(graph, {**options, "micro_batch": plan.micro_batch})
        job = cast(JobOptions, {**usual, **options})
        return CompleteJob(known, job, _note(job, {**options, "framework": ""}, cluster, graph))
    tried: list[tuple[float, JobOptions]] = []
    room = cluster.device.memory_bytes
    for rung in _rungs(graph, cluster, options, has_batch=isinstance(model, Workload)):
        job = cast(JobOptions, {**usual, **rung, **options})
        try:
            needed = _memory_bytes(known, cluster, job)
        except InputError:
            if not tried:
                raise
            continue
        tried.append((needed, job))
        if room is None or needed <= room_bytes(room):
            break
    else:
        leanest = min(tried, key=lambda one: one[0])[1]
        found = "" if len(tried) == 1 else "no plan fits, showing the one with the least memory: "
        return CompleteJob(known, leanest, _note(leanest, options, cluster, graph, found))
    return CompleteJob(known, job, _note(job, options, cluster, graph))


def _plan_is_chosen(graph: Graph, given: Mapping[str, Any]) -> bool:
    """Whether a plan is searched for: of large models without a batch per replica.

    A named program with stated degrees takes its other options from its documentation.
    """
    if given.get("framework") and any(given.get(name) is not None for name in _STATED):
        return False
    stated = any(given.get(name) for name in ("batch", "input", "micro_batches"))
    alone = not stated or given.get("global_batch") is not None
    return is_large(graph) and alone and RECORDED_BATCH not in graph.dimensions


def _chosen(
    graph: Graph, cluster: Cluster, options: JobOptions, usual: Mapping[str, Any]
) -> CompleteJob | None:
    """The job with the plan that `choose_plan` finds; None if no plan is possible."""
    from paceline.spec.default_plan import choose_plan

    samples = options.get("global_batch") or usual_global_batch(graph, options, cluster.devices)
    named = options.get("framework")
    again = find_framework(named).usual_recompute if named else ""
    known = cast(JobOptions, {**usual, **({"recompute": again} if again else {}), **options})
    found = choose_plan(graph, cluster, known, cast(int, samples))
    if found is None:
        return None
    plan = {name: value for name, value in plan_options(found.plan).items() if value is not None}
    if found.plan.tp > 1:
        plan["sequence_parallel"] = found.plan.sequence_parallel
    batch = {} if "global_batch" in options else {"batch": cast(int, samples) // found.plan.dp}
    job = cast(JobOptions, {**plan, **usual, **batch, **options})
    before = "" if found.fits else "no plan fits, showing the one with the least memory: "
    return CompleteJob(graph, job, _note(job, options, cluster, graph, before))


def complete_workload(model: Model, cluster: Cluster, options: JobOptions) -> Workload:
    """The workload of one replica, for functions that compare plans."""
    if isinstance(model, Workload):
        return model
    graph = graph_of(model, inputs_of(options), options.get("seq"))
    job: JobOptions = {"precision": default_precision(graph, cluster.device), **options}
    return workload_of(graph, 1, job)


def _rungs(
    graph: Graph, cluster: Cluster, given: JobOptions, *, has_batch: bool
) -> Iterator[dict[str, Any]]:
    """Options of plans, from the simplest to the one with the least memory."""
    spreads = list(_spreads(graph, cluster, given))
    halved = [DEFAULT_BATCH >> power for power in range(DEFAULT_BATCH.bit_length())]
    rungs = [(spreads[0], size) for size in halved]
    sparse = int(number("operation.batch.recommender_samples"))
    rungs += [(each, sparse if each.get("framework") == TORCHREC else 1) for each in spreads]
    before = None
    for spread, size in rungs:
        replica = math.prod(spread.get(name, given.get(name, 1)) for name in ("tp", "pp", "cp"))
        batch = {} if has_batch else _batch(graph, given, replica, size)
        if (rung := {**spread, **batch}) != before:
            yield rung
        before = rung


def _spreads(graph: Graph, cluster: Cluster, given: JobOptions) -> Iterator[dict[str, Any]]:
    """Plans to try: framework, degrees, sharding and recomputation."""
    transformer, again = is_transformer(graph), {"recompute": "full"}
    divisible = transformer or is_large(graph)
    divided = any(cast(Mapping[str, int], given).get(name, 1) > 1 for name in _DEGREES)
    named = given.get("framework")
    if any(name in given for name in _PLAN_OPTIONS):
        usual: dict[str, Any] = {}
        if not named:
            usual["framework"] = _framework_of(given, transformer, divided)
        profile = find_framework(named or usual["framework"])
        if not divisible:
            yield usual
            return
        usual |= recommended(profile, graph, cluster, given) if is_large(graph) else {}
        yield usual
        is_megatron = "megatron" in profile.name
        if is_megatron and cluster.devices > 1:
            usual = {**usual, "zero": 1}
            yield usual
        if named and given.get("pp", 1) == 1 and has_fast_host(cluster):
            yield {**usual, "offload": "activations"}
        if usual.get("recompute") != "full":
            for every in _PARTIAL if named else ():
                yield {**usual, "recompute": f"every:{every}"}
        yield {**usual, **again}
        if is_megatron and not divided:
            yield from _megatron(graph, cluster)
        whole = all(cast(Mapping[str, int], given).get(name, 1) == 1 for name in ("tp", "pp", "ep"))
        if divided and whole and not named and cluster.devices > 1:
            yield {"framework": FSDP, "zero": 3, **again}
        return
    yield {"framework": DDP}
    if graph.profile(None, "fp32").has_sparse_gradients and cluster.devices > 1:
        yield {"framework": TORCHREC}
    if not divisible:
        return
    if cluster.devices == 1:
        yield {"framework": DDP, **again}
        return
    yield {"framework": FSDP, "zero": 3}
    yield {"framework": FSDP, "zero": 3, **again}
    for spread in _megatron(graph, cluster):
        yield {"framework": MEGATRON, **spread}


def _framework_of(given: JobOptions, transformer: bool, divided: bool) -> str:
    """The default framework of a plan: FSDP for ZeRO-3, Megatron-LM for divided transformers."""
    if given.get("zero") == 3 and given.get("tp", 1) == given.get("pp", 1) == 1:
        return FSDP
    return MEGATRON if transformer and divided else DDP


def _megatron(graph: Graph, cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Tensor parallelism inside a node, then 1, 2, 4, ... pipeline stages."""
    tp = math.gcd(common_size(graph), cluster.devices_per_node, _LARGEST_TP)
    if tp == 1 or not is_transformer(graph):
        return
    spread = {"tp": tp, "zero": 1, "sequence_parallel": True}
    pp = 1
    while pp <= min(cluster.devices // tp, len(blocks(graph))):
        if cluster.devices % (tp * pp) == 0:
            for recompute in ("none", "full"):
                yield {**spread, "pp": pp, "recompute": recompute}
        pp *= 2


def _batch(
    graph: Graph, given: Mapping[str, Any], replica: int = 1, size: int = DEFAULT_BATCH
) -> dict[str, Any]:
    """Batch of a replica of ``replica`` devices: 1 per device for a large model, else ``size``."""
    micro_batch, large = given.get("micro_batch"), is_large(graph)
    if given.get("global_batch") is not None:
        return {"micro_batch": 1} if large and given.get("micro_batches") is None else {}
    stated = any(given.get(name) for name in ("batch", "input", "micro_batches"))
    if stated or RECORDED_BATCH in graph.dimensions:
        return {}
    if not large and micro_batch is None:
        return {"batch": replica * size}
    batch = {"batch": replica * (micro_batch or 1)}
    return batch if replica == 1 else {**batch, "micro_batch": micro_batch or 1}


def _memory_bytes(model: Graph | Workload, cluster: Cluster, job: JobOptions) -> float:
    """Memory of the fullest device."""
    plan = plan_of(None, cluster.devices, job)
    workload = workload_of(model, plan.dp, job)
    check_recomputation(plan, workload.graph)
    step = model_step(job_of(workload, cluster, plan))
    return float(fullest(stage_memories(step.parts, step.communication.stage_counts)).total_bytes)


def _note(
    job: JobOptions, given: Mapping[str, Any], cluster: Cluster, graph: Graph, before: str = ""
) -> str:
    """The note of chosen defaults and the options that override them."""
    stated, values = set(given), cast(Mapping[str, Any], job)
    spread = {"framework", "tp", "pp", "zero", "shard_group"} & (set(values) - stated)
    texts = {
        "micro_batch": f"micro-batch {job.get('micro_batch')}",
        "batch": _batch_text(job, graph, cluster),
        "precision": job.get("precision") or "",
        "recompute": f"{job.get('recompute')} recomputation",
        "interleave": f"{job.get('interleave')} chunks per stage",
        "offload": f"{job.get('offload')} offloaded to the host",
        "tp_overlap": "overlapped tensor-parallel communication",
    }
    names = [name for name in texts if name in values and name not in stated]
    names = [name for name in names if values[name] != "none"]
    shown = bool(spread) and cluster.devices > 1
    chosen = [_spread_text(job, cluster)] if shown else []
    chosen += [texts[name] for name in names if texts[name]]
    if not chosen:
        return ""
    ep = ("ep",) if values.get("ep", 1) > 1 else ()
    degrees = ("framework", "tp", "pp", *ep, "zero") if shown else ()
    options = [*(name for name in degrees if name not in stated), *names]
    if job.get("micro_batch") is not None:
        options = ["global-batch" if name == "batch" else name for name in options]
    override = ", ".join(f"--{name.replace('_', '-')}" for name in options)
    return f"{CHOSEN}{before}{', '.join(chosen)}; override with {override}"


def _batch_text(job: JobOptions, graph: Graph, cluster: Cluster) -> str:
    """``global batch 256 (2.10 M tokens)``, or the batch of a replica if it is one micro-batch."""
    batch, sequence = job.get("batch") or 0, sequence_of(graph, job)
    if job.get("micro_batch") is None:
        return f"batch {batch} per {_replica_text(job)}"
    samples = batch * plan_of(None, cluster.devices, job).dp
    tokens = f" ({format_count(samples * sequence)} tokens)" if sequence else ""
    return f"global batch {samples}{tokens}"


def _replica_text(job: JobOptions) -> str:
    degrees = cast(Mapping[str, int], job)
    return "replica" if any(degrees.get(name, 1) > 1 for name in ("tp", "pp", "cp")) else "device"


def _spread_text(job: JobOptions, cluster: Cluster) -> str:
    plan = plan_of(None, cluster.devices, job)
    name = job.get("framework") or DDP
    title = "HSDP" if name == FSDP and plan.shard_copies > 1 else _TITLES.get(name, name)
    sharded = f", ZeRO-{plan.zero}" if plan.zero and name != FSDP else ""
    divided = plan.dp != plan.devices or plan.ep > 1
    degrees = f"{plan.label} on" if divided else "over"
    return f"{title} {degrees} {plural(cluster.devices, 'device')}{sharded}"
