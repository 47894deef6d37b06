"""Options of workload, cluster and plan: the keywords of predictions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from paceline.errors import InputError
from paceline.hardware import Cluster, catalogue
from paceline.naming import look_up
from paceline.predictor.comm.compression import Compression
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.uncertainty.covariates import Program, Tuning
from paceline.spec.resolve_model import batch_of, graph_of
from paceline.units import parse_bandwidth
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload
from paceline.workload.zoo.sizes import ADAPTER_RANK

if TYPE_CHECKING:
    from paceline.measurement.probe.allreduce_curves import CollectiveCurve
    from paceline.step.layer_trace import LayerTrace

Model = str | Path | Graph | Workload


class WorkloadOptions(TypedDict, total=False):
    """Options of the workload.
    ``batch`` is samples per replica and step [32; 1 per device above 1 B parameters],
    ``global_batch`` samples of all replicas instead; ``seq`` tokens per sample [as published];
    ``precision`` [that of config.json, else bf16 where the device has it, else fp32];
    ``inputs`` shapes of a file's inputs, batch first; ``trace`` layer times to replay: a name, a
    CSV file or a `LayerTrace`. ``lora`` trains adapters of that rank with frozen weights, which
    ``qlora`` stores in 4 bits.
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


class TopologyOptions(TypedDict, total=False):
    """Options of the cluster.
    ``device`` stands for a cluster of one kind of device; ``link`` overrides the network between
    nodes (a name, or a rate per NIC such as "400gbit") and ``intra_link`` the link inside a node;
    ``cards`` is NICs per node; ``nodes`` is the number of nodes [that of the cluster],
    ``processes`` the number per node, one per device [all devices]. ``scale`` multiplies rates of
    flops, memory or link: "flops=2,memory=1.5".
    """

    device: str | None
    link: str | None
    intra_link: str | None
    cards: int | None
    scale: str | Mapping[str, float] | None
    nodes: int | None
    processes: int | None


class PlanOptions(TypedDict, total=False):
    """Options of the plan: degrees [dp uses the remaining devices] and synchronisation.

    ``shard_group`` is the size of a shard group [all replicas], ``optimiser_state`` fp32, bf16 or
    8bit, ``context_form`` ring, ring_in_order, gather or ulysses [that of the framework],
    ``expert_imbalance`` the load of the busiest expert-parallel device over the mean [a prior],
    ``offload`` state to move to the host: "optimiser,activations". ``micro_batch`` is samples,
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


class MeasuredOptions(TypedDict, total=False):
    """Measurements: a step of one device and the input time of a batch (seconds, or a string
    such as "253ms"), the coefficient of variation of workers' times, and ``curve``, a file of
    all-reduce times by size from 'paceline probe --out', nccl-tests or OSU."""

    curve: "str | Path | CollectiveCurve | None"
    measured_step: str | float | None
    input_time: str | float | None
    jitter: float | None


LARGEST_FACTOR = 1e6


class ProgramOptions(TypedDict, total=False):
    """The training program: ``tuning`` is plain (an unmodified script), reference (a maintained
    implementation) or tuned (a record run)."""

    tuning: str | None


class JobOptions(
    WorkloadOptions, TopologyOptions, PlanOptions, MeasuredOptions, ProgramOptions, total=False
):
    """All options of a prediction."""


def parse_job_options(options: Mapping[str, Any]) -> JobOptions:
    """The given options of a prediction; unknown ones are rejected."""
    parts = (WorkloadOptions, TopologyOptions, PlanOptions, MeasuredOptions, ProgramOptions)
    known = {name: None for part in parts for name in part.__annotations__}
    for name in options:
        look_up("option", name, known, f"one of {', '.join(known)}")
    return cast(JobOptions, {name: value for name, value in options.items() if value is not None})


def workload_of(model: Model | None, replicas: int, options: JobOptions) -> Workload:
    """The workload of one of ``replicas``."""
    if isinstance(model, Workload):
        return model
    given, trace = options.get("batch"), trace_of(options.get("trace"))
    inputs, seq = options.get("inputs", ()), options.get("seq")
    if model is not None:
        graph = graph_of(model, inputs, seq)
    elif trace is not None:
        from paceline.predictor.kernels.layer_traces import traced_graph

        graph = traced_graph(trace)
    else:
        raise InputError(
            "no model given", "give one: --model resnet50 ('paceline models' lists all)"
        )
    batch = _global_share(options, replicas)
    if batch is None:
        traced = trace.batch_per_worker if trace is not None else None
        known = [given, _batch_of_micro_batches(options), None if traced is None else int(traced)]
        batch = batch_of(next((one for one in known if one is not None), None), inputs, graph)
    if seq is not None and not graph.uses_sequence:
        raise InputError(f"{graph.name} has no sequence length", "omit --seq")
    optimiser = options.get("optimiser") or ("adam" if graph.uses_sequence else "sgd_momentum")
    frozen_bytes, quantised = None, options.get("qlora", False)
    if quantised or options.get("lora"):
        from paceline.workload.adapters import QUANTISED_BYTES, with_adapters

        graph = with_adapters(graph, options.get("lora") or ADAPTER_RANK)
        frozen_bytes = QUANTISED_BYTES if quantised else None
    return Workload(graph, batch, seq, options.get("precision", "fp32"), optimiser, frozen_bytes)


def cluster_of(cluster: str | Path | Cluster | None, options: JobOptions) -> Cluster:
    """The requested part of a cluster, with overridden links."""
    nodes, processes = options.get("nodes"), options.get("processes")
    base = _scaled(_whole_cluster(cluster, processes, options), options)
    if nodes is None and processes is None:
        return base
    return base.shaped(
        nodes if nodes is not None else (1 if cluster is None else base.nodes),
        processes if processes is not None else base.devices_per_node,
    )


def program_of(options: JobOptions) -> Program:
    """The description of the training program."""
    name = options.get("tuning")
    if name is None:
        return Program()
    known = {str(each): each for each in Tuning}
    return Program(tuning=look_up("tuning", name, known, f"one of {', '.join(known)}"))


def curve_of(curve: "str | Path | CollectiveCurve | None") -> "CollectiveCurve | None":
    """The curve of a file, or the given curve."""
    if not isinstance(curve, str | Path):
        return curve
    from paceline.measurement.probe.allreduce_curves import read_curve

    return read_curve(Path(curve))


def trace_of(trace: "str | Path | LayerTrace | None") -> "LayerTrace | None":
    """The layer-wise trace of a name or file, or the given trace."""
    if not isinstance(trace, str | Path):
        return trace
    if Path(trace).exists():
        from paceline.importers.traces import read_layer_trace

        return read_layer_trace(Path(trace))
    from paceline.predictor.kernels.layer_traces import example_trace

    return example_trace(str(trace))


def _whole_cluster(
    cluster: str | Path | Cluster | None, processes: int | None, options: JobOptions
) -> Cluster:
    link, intra_link, device = options.get("link"), options.get("intra_link"), options.get("device")
    inter = catalogue.link(link) if link and not _is_rate(link) else None
    intra = catalogue.link(intra_link) if intra_link else None
    for named, option, scope in ((inter, "--link", "inter"), (intra, "--intra-link", "intra")):
        if named is not None and named.scope != scope:
            where = {"inter": "between nodes", "intra": "inside a node"}
            is_for = where.get(named.scope, "between host and device")
            raise InputError(
                f"{option} {named.name} is a link {is_for}, not {where[scope]}",
                "list links and their scope with 'paceline hardware links'",
            )
    if cluster is not None:
        if device:
            raise InputError("--cluster and --device are mutually exclusive", "give only one")
        base = cluster if isinstance(cluster, Cluster) else catalogue.cluster(str(cluster))
        return replace(base, inter=inter or base.inter, intra=intra or base.intra)
    if not device and options.get("trace") is not None:
        from paceline.predictor.kernels.layer_traces import TRACED_DEVICE

        return Cluster("traced nodes", TRACED_DEVICE, 1, 1, intra, inter)
    if not device:
        raise InputError(
            "no cluster or device given",
            "give one: --cluster dgx-a100 -j 4x8 ('paceline hardware clusters' lists all), "
            "or --device a100_sxm_80gb",
        )
    from paceline.hardware.usual_links import default_outer_link, with_default_links

    found, nodes = catalogue.device(device), options.get("nodes") or 1
    if inter is None and link:
        inter = default_outer_link(found, processes or 1).link  # `_scaled` sets the stated rate
    return with_default_links(found, nodes, processes or 1, intra, inter)


def _is_rate(link: str) -> bool:
    """Whether a link is given by its rate, as in ``400gbit`` or ``12.5GB/s``."""
    is_name = link.lower().endswith("gbe")  # 10GbE is a link, with all that is known of it
    return not is_name and re.match(r"[\d.]+\s*[a-zA-Z]*(/s)?$", link) is not None


def _scaled(cluster: Cluster, options: JobOptions) -> Cluster:
    """The cluster with other NICs, another network rate, and scaled rates."""
    link, cards = options.get("link"), options.get("cards")
    if link and _is_rate(link):
        from paceline.hardware.usual_links import default_outer_link

        own = cluster.inter or default_outer_link(cluster.device, cluster.devices_per_node).link
        cluster = replace(
            cluster,
            inter=replace(
                own, name=link, bandwidth=parse_bandwidth(link), collective_bandwidth=None
            ),
        )
    if cards is not None:
        cluster = replace(cluster, nics_per_node=cards)
    scale = options.get("scale")
    return cluster if scale is None else _with_faster_parts(cluster, scale)


def _with_faster_parts(cluster: Cluster, given: str | Mapping[str, float]) -> Cluster:
    """The cluster scaled by positive factors such as ``flops=2,link=0.5``."""
    from paceline.hardware.scaled import SCALES, scaled_cluster

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
                f"invalid scale '{part}'", f"use --scale flops=2,link=0.5 ({', '.join(SCALES)})"
            )
        found[name.strip()] = factor
    return scaled_cluster(cluster, found)


def _global_share(options: JobOptions, replicas: int) -> int | None:
    """The share of one replica in the global batch; None if not given."""
    whole = options.get("global_batch")
    if whole is None:
        return None
    if options.get("batch") is not None:
        raise InputError("--batch and --global-batch are mutually exclusive", "give only one")
    if whole % replicas:
        raise InputError(
            f"global batch {whole} is not a multiple of {replicas} replicas",
            f"use a multiple of {replicas}",
        )
    return whole // replicas


def _batch_of_micro_batches(options: JobOptions) -> int | None:
    micro_batch, count = options.get("micro_batch"), options.get("micro_batches")
    return micro_batch * count if micro_batch and count else None
