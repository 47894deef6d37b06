"""A workload, a place and a plan in the words of a person: the keywords that predictions take."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from paceline.api.models import batch_of, graph_of
from paceline.errors import InputError
from paceline.hardware import Cluster, catalogue
from paceline.naming import look_up
from paceline.plan.compression import Compression
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.corrections.covariates import Program, Tuning
from paceline.units import parse_bandwidth
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload
from paceline.workload.zoo.sizes import ADAPTER_RANK

if TYPE_CHECKING:
    from paceline.measurement.curves import CollectiveCurve
    from paceline.step.layer_trace import LayerTrace

Model = str | Path | Graph | Workload


class WorkloadWords(TypedDict, total=False):
    """What is trained.

    ``batch`` is samples per replica and step [32], ``global_batch`` samples of all replicas
    instead; ``seq`` tokens per sample [as published]; ``inputs`` shapes of a file's inputs, the
    batch first; ``trace`` layer times to replay: a name, a CSV file or a `LayerTrace`. ``lora``
    trains adapters of that rank beside frozen weights, which ``qlora`` holds in 4 bits.
    """

    batch: int | None
    global_batch: int | None
    seq: int | None
    precision: str
    optimiser: str | None
    lora: int | None
    qlora: bool
    inputs: Sequence[str]
    trace: "str | Path | LayerTrace | None"


class PlaceWords(TypedDict, total=False):
    """Where it is trained.

    ``device`` stands for a cluster of devices of one kind; ``link`` is the network between
    nodes (a name, or a rate such as "400gbit" of each card) and ``intra_link`` that inside a node,
    in place of the cluster's; ``cards`` is network cards per node; ``nodes`` is how many [the
    cluster's], ``processes`` how many on each, one per device [all devices of a node]. ``scale``
    makes flops, memory or link so many times as fast: "flops=2,memory=1.5".
    """

    device: str | None
    link: str | None
    intra_link: str | None
    cards: int | None
    scale: str | Mapping[str, float] | None
    nodes: int | None
    processes: int | None


class PlanWords(TypedDict, total=False):
    """How it is spread: degrees [dp takes what the others leave], and how gradients travel.

    ``shard_group`` devices share out what ``zero`` shards [all], ``optimiser_state`` is fp32, bf16
    or 8bit, ``context_form`` ring, ring_in_order, gather or ulysses [as the framework does],
    ``expert_imbalance`` the load of the busiest expert-parallel device over the mean [a prior],
    ``offload`` what leaves the device: "optimiser,activations". ``micro_batch`` is samples,
    ``bucket`` bytes or text such as "25MiB", ``stage_layers`` blocks of each pipeline chunk,
    ``compression`` none, fp16, top_k or "top_k:0.01".
    """

    dp: int | None
    tp: int
    pp: int
    cp: int
    ep: int
    context_form: str | None
    expert_imbalance: float | None
    offload: str | Sequence[str] | None
    tp_overlap: bool
    zero: int
    shard_group: int | None
    optimiser_state: str
    micro_batch: int | None
    micro_batches: int | None
    interleave: int
    pipeline: str
    stage_layers: str | Sequence[int] | None
    recompute: str
    sequence_parallel: bool
    fused_attention: bool
    framework: str | None
    overlap: str | Synchronisation | None
    bucket: str | float | None
    compression: str | Compression | None


class MeasuredWords(TypedDict, total=False):
    """What was measured: a step of one device and reading a batch (seconds, or text such as
    "253ms"), the coefficient of variation of workers' times, and ``curve``, a file with seconds
    of all-reduce by bytes: of 'paceline probe --out', nccl-tests or OSU."""

    curve: "str | Path | CollectiveCurve | None"
    measured_step: str | float | None
    input_time: str | float | None
    jitter: float | None


LARGEST_FACTOR = 1e6


class ProgramWords(TypedDict, total=False):
    """Which program trains: ``tuning`` is plain (a script as it comes), reference (a maintained
    implementation) or tuned (a record run)."""

    tuning: str | None


class JobWords(WorkloadWords, PlaceWords, PlanWords, MeasuredWords, ProgramWords, total=False):
    """Every keyword that a prediction takes."""


def job_words(words: Mapping[str, Any]) -> JobWords:
    """``words`` as keywords of a prediction; one that means nothing is refused."""
    parts = (WorkloadWords, PlaceWords, PlanWords, MeasuredWords, ProgramWords)
    known = {name: None for part in parts for name in part.__annotations__}
    for word in words:
        look_up("option", word, known, f"one of {', '.join(known)}")
    return cast(JobWords, words)


def workload_of(model: Model | None, replicas: int, words: JobWords) -> Workload:
    """What one of ``replicas`` trains."""
    if isinstance(model, Workload):
        return model
    given, trace = words.get("batch"), trace_of(words.get("trace"))
    inputs, seq = words.get("inputs", ()), words.get("seq")
    if model is not None:
        graph = graph_of(model, inputs, seq)
    elif trace is not None:
        from paceline.predictor.traces import traced_graph

        graph = traced_graph(trace)
    else:
        raise InputError(
            "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
        )
    batch = _global_share(words, replicas)
    if batch is None:
        traced = trace.batch_per_worker if trace is not None else None
        known = [given, _batch_of_micro_batches(words), None if traced is None else int(traced)]
        batch = batch_of(next((one for one in known if one is not None), None), inputs, graph)
    if seq is not None and not graph.uses_sequence:
        raise InputError(f"{graph.name} has no sequence", "leave --seq out")
    optimiser = words.get("optimiser") or ("adam" if graph.uses_sequence else "sgd_momentum")
    frozen_bytes, quantised = None, words.get("qlora", False)
    if quantised or words.get("lora"):
        from paceline.workload.adapters import QUANTISED_BYTES, with_adapters

        graph = with_adapters(graph, words.get("lora") or ADAPTER_RANK)
        frozen_bytes = QUANTISED_BYTES if quantised else None
    return Workload(graph, batch, seq, words.get("precision", "fp32"), optimiser, frozen_bytes)


def cluster_of(cluster: str | Path | Cluster | None, words: JobWords) -> Cluster:
    """The part of a cluster that is asked for, with other links where they are."""
    nodes, processes = words.get("nodes"), words.get("processes")
    base = _scaled(_whole_cluster(cluster, processes, words), words)
    if nodes is None and processes is None:
        return base
    return base.shaped(
        nodes if nodes is not None else (1 if cluster is None else base.nodes),
        processes if processes is not None else base.devices_per_node,
    )


def program_of(words: JobWords) -> Program:
    """What is said of the program that trains."""
    name = words.get("tuning")
    if name is None:
        return Program()
    known = {str(each): each for each in Tuning}
    return Program(tuning=look_up("tuning", name, known, f"one of {', '.join(known)}"))


def curve_of(curve: "str | Path | CollectiveCurve | None") -> "CollectiveCurve | None":
    """The curve of a file; itself, or None."""
    if not isinstance(curve, str | Path):
        return curve
    from paceline.measurement.curves import read_curve

    return read_curve(Path(curve))


def trace_of(trace: "str | Path | LayerTrace | None") -> "LayerTrace | None":
    """The layer-wise trace of a name or file; itself, or None."""
    if not isinstance(trace, str | Path):
        return trace
    if Path(trace).exists():
        from paceline.measurement.traces import read_layer_trace

        return read_layer_trace(Path(trace))
    from paceline.predictor.traces import example_trace

    return example_trace(str(trace))


def _whole_cluster(
    cluster: str | Path | Cluster | None, processes: int | None, words: JobWords
) -> Cluster:
    link, intra_link, device = words.get("link"), words.get("intra_link"), words.get("device")
    inter = catalogue.link(link) if link and not _is_rate(link) else None
    intra = catalogue.link(intra_link) if intra_link else None
    for named, option, scope in ((inter, "--link", "inter"), (intra, "--intra-link", "intra")):
        if named is not None and named.scope != scope:
            where = {"inter": "between nodes", "intra": "inside a node"}
            is_for = where.get(named.scope, "between host and device")
            raise InputError(
                f"{option} {named.name}: it is a link {is_for}, not {where[scope]}",
                "'paceline hardware links' says where each is used",
            )
    if cluster is not None:
        if device:
            raise InputError("--cluster and --device both say where", "give one of them")
        base = cluster if isinstance(cluster, Cluster) else catalogue.cluster(str(cluster))
        return replace(base, inter=inter or base.inter, intra=intra or base.intra)
    if not device and words.get("trace") is not None:
        from paceline.predictor.traces import TRACED_DEVICE

        return Cluster("traced nodes", TRACED_DEVICE, 1, 1, intra, inter)
    if not device:
        raise InputError(
            "no place to predict for",
            "name one: --cluster dgx-a100 -j 4x8 ('paceline hardware clusters' lists all), "
            "or --device a100_sxm_80gb",
        )
    from paceline.hardware.usual_links import usual_outer_link, with_usual_links

    found, nodes = catalogue.device(device), words.get("nodes") or 1
    if inter is None and link and nodes > 1:
        inter = usual_outer_link(found, processes or 1).link  # its rate is what was stated
    return with_usual_links(found, nodes, processes or 1, intra, inter)


def _is_rate(link: str) -> bool:
    """Whether a link is named by its rate, as in ``400gbit`` or ``12.5GB/s``."""
    is_name = link.lower().endswith("gbe")  # 10GbE is a link, with all that is known of it
    return not is_name and re.match(r"[\d.]+\s*[a-zA-Z]*(/s)?$", link) is not None


def _scaled(cluster: Cluster, words: JobWords) -> Cluster:
    """The cluster with other cards, another rate of its network, and faster parts."""
    link, cards = words.get("link"), words.get("cards")
    if link and _is_rate(link):
        own = cluster.require_network()
        cluster = replace(
            cluster,
            inter=replace(
                own, name=link, bandwidth=parse_bandwidth(link), collective_bandwidth=None
            ),
        )
    if cards is not None:
        cluster = replace(cluster, nics_per_node=cards)
    scale = words.get("scale")
    return cluster if scale is None else _with_faster_parts(cluster, scale)


def _with_faster_parts(cluster: Cluster, given: str | Mapping[str, float]) -> Cluster:
    """The cluster scaled by factors above zero, written as in ``flops=2,link=0.5``."""
    from paceline.hardware.faster import SCALES, scaled_cluster

    if isinstance(given, Mapping):
        return scaled_cluster(cluster, given) if given else cluster
    found = {}
    for part in given.split(","):
        name, _, text = part.partition("=")
        try:
            factor = float(text)
        except ValueError:
            factor = 0.0
        if not 0 < factor < LARGEST_FACTOR:
            raise InputError(
                f"'{part}' is not a scale", f"write --scale flops=2,link=0.5 ({', '.join(SCALES)})"
            )
        found[name.strip()] = factor
    return scaled_cluster(cluster, found)


def _global_share(words: JobWords, replicas: int) -> int | None:
    """The share of one replica in the batch of all, where that was given."""
    whole = words.get("global_batch")
    if whole is None:
        return None
    if words.get("batch") is not None:
        raise InputError("both --batch and --global-batch", "give one of them")
    if whole % replicas:
        raise InputError(
            f"a batch of {whole} does not divide by {replicas} replicas",
            f"take a multiple of {replicas}",
        )
    return whole // replicas


def _batch_of_micro_batches(words: JobWords) -> int | None:
    micro_batch, count = words.get("micro_batch"), words.get("micro_batches")
    return micro_batch * count if micro_batch and count else None
