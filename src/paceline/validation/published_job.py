"""A published configuration in the terms of the predictor: workload, cluster, plan, program.

Missing fields of a row are filled in here only: each assumption is a function with its reason and
the amount by which it widens the interval.
"""

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from paceline.errors import PacelineError, UnknownNameError
from paceline.hardware import Cluster, Device, Link, catalogue
from paceline.hardware.usual_links import with_default_links
from paceline.predictor.framework_profiles import FrameworkProfile, framework
from paceline.predictor.memory.fit_probability import fits_probability
from paceline.predictor.memory.offload import has_fast_host
from paceline.predictor.plan.interleaving import largest_interleave
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ExpertDispatch, LossKernel, Offload, Recompute
from paceline.predictor.plan.sync_policy import Exchange, Policy, Synchronisation
from paceline.predictor.plan.validate_for_model import check_experts
from paceline.predictor.predict import predict
from paceline.predictor.uncertainty.covariates import Program, Tuning
from paceline.validation.forecast import Skipped
from paceline.validation.published_row import Configuration
from paceline.validation.published_workload import black_box, graph_of, tokens_per_sample
from paceline.workload.graph import Graph
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

USUAL_FRAMEWORK = "torch-ddp"
_ASSUMED_PARAMETERS = 25e6
_MOST_PASSES = 200_000
_FUSED_ATTENTION_SINCE = 2022
_FUSED_FRAMEWORKS = frozenset({"torch-fsdp", "torchtitan", "nanotron"})
_POLICIES = {
    "none": Policy.ONE_MESSAGE,
    "per_tensor": Policy.PER_TENSOR,
    "bucketed": Policy.MERGED,
}
_NOMINAL_RATES = {"fp32": 1e14, "tf32": 1e14, "fp16": 1e14, "bf16": 1e14, "fp8": 1e14}
_NOMINAL_BANDWIDTH = 1e12
_NOT_STATED = ("", "unknown")


@dataclass(frozen=True)
class PublishedJob:
    """A workload on a cluster under a plan, run by a program.

    ``cold_obstacle`` is the reason why a cold prediction is impossible (an unknown network or
    device); empty if it is possible. ``units_per_sample`` is the number of units of throughput
    per sample (tokens of a sequence), ``samples`` the global batch in samples. ``assumptions``
    replace fields that the row leaves empty.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    program: Program
    units_per_sample: float
    samples: float
    cold_obstacle: str
    assumptions: tuple[str, ...]


def job_of(configuration: Configuration) -> PublishedJob:
    """The job of a row; assumptions about unknown fields are listed in it."""
    return _job(configuration.unnamed)


@lru_cache(maxsize=16384)
def _job(configuration: Configuration) -> PublishedJob:
    assumptions: list[str] = []
    graph = graph_of(configuration)
    device, unknown_device = _device(configuration, assumptions)
    obstacle = unknown_device
    if isinstance(graph, Skipped):
        obstacle = graph.reason
    elif graph.name.startswith("gpt_h") and "_h" not in configuration.model:
        assumptions.append(f"model '{configuration.model}' treated as {graph.name}")
    profile = _framework(configuration, assumptions)
    cluster = _cluster(configuration, device, assumptions)
    units = tokens_per_sample(configuration, graph)
    samples = configuration.global_batch
    if configuration.batch_unit == "tokens":
        samples /= _length(configuration, graph)
    if configuration.throughput_unit == "tokens" and units == 1.0:
        obstacle = obstacle or "throughput in tokens with an unknown sequence length"
    plan = _plan(configuration, samples, profile, cluster.device, assumptions)
    if isinstance(graph, Graph):
        plan = replace(plan, ep=_expert_degree(configuration, plan, graph, assumptions))
    if plan.pp * (plan.micro_batches or 1) > _MOST_PASSES:
        obstacle = "its pipeline has too many micro-batches"
    workload = Workload(
        graph if isinstance(graph, Graph) else black_box(_parameters(configuration, assumptions)),
        max(1, round(samples / plan.dp)),
        configuration.sequence if isinstance(graph, Graph) else None,
        _precision(configuration, cluster.device),
        optimizer_of(configuration),
    )
    job = PublishedJob(
        workload,
        cluster,
        plan if isinstance(graph, Graph) else _data_parallel_part(plan),
        program_of(configuration),
        units,
        samples,
        obstacle,
        tuple(assumptions),
    )
    states_memory = configuration.zero is not None or configuration.recompute not in _NOT_STATED
    if obstacle or states_memory or not profile.usual_zero:
        return job
    return _as_fits(job, assumptions)


def program_of(configuration: Configuration) -> Program:
    """The tuning and the compiler of a row's program."""
    method = configuration.method
    compiler = "xla" if "XLA on" in method else "plain" if "XLA off" in method else ""
    return Program(_tuning(configuration), compiler)


def optimizer_of(configuration: Configuration) -> str:
    """Momentum SGD for images, Adam for text: no source states the optimizer."""
    return "sgd_momentum" if configuration.batch_unit == "images" else "adam"


def _tuning(configuration: Configuration) -> Tuning | None:
    """The value of the row, else that of its source."""
    if configuration.tuning:
        return Tuning(configuration.tuning)
    known = _facts_of_sources().get(configuration.family, {}).get("tuning")
    return Tuning(known) if known else None


@lru_cache(maxsize=1)
def _facts_of_sources() -> dict[str, dict[str, Any]]:
    """What a source says about all of its rows: tuning, link between nodes."""
    file = resources.files("paceline") / "data" / "reference" / "sources.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8"))["source"]
    return {entry["family"]: entry for entry in listed}


def _device(configuration: Configuration, assumptions: list[str]) -> tuple[Device, str]:
    """The device of the catalogue, or a placeholder and the reason why it is needed."""
    try:
        device = catalogue.device(configuration.device)
        device.peak(precision(_precision(configuration, device)).compute)
        _ = device.known_memory_bandwidth
    except PacelineError as problem:
        assumptions.append(f"unknown rates of device '{configuration.device}'")
        return Device(
            configuration.device,
            "",
            "gpu",
            _NOMINAL_RATES,
            memory_bandwidth=_NOMINAL_BANDWIDTH,
            compute_units=100,
        ), problem.message
    return device, ""


def _precision(configuration: Configuration, device: Device) -> str:
    """The precision of the row; "mixed" is fp8 or the 16-bit format of the device.

    Tuned submissions train transformers in fp8 where the device has it (Transformer Engine); their
    logs say only that the precision is mixed.
    """
    if configuration.precision != "mixed":
        return configuration.precision
    tuned = _tuning(configuration) is Tuning.TUNED
    if tuned and "fp8" in device.peak_flops and configuration.batch_unit == "sequences":
        return "fp8"
    return "mixed" if "fp16" in device.peak_flops else "amp_bf16"


def _framework(configuration: Configuration, assumptions: list[str]) -> FrameworkProfile:
    """The profile of the method if it has one (WFBP, BSP, ...), else of the framework."""
    for name in (configuration.method, configuration.framework):
        profile = _known_framework(name)
        if profile is not None:
            return profile
    assumptions.append(f"framework '{configuration.framework}' treated as {USUAL_FRAMEWORK}")
    return framework(USUAL_FRAMEWORK)


@lru_cache(maxsize=512)
def _known_framework(name: str) -> FrameworkProfile | None:
    try:
        return framework(name) if name else None
    except UnknownNameError:
        return None


def _cluster(configuration: Configuration, device: Device, assumptions: list[str]) -> Cluster:
    """The machine; links not stated by row or source are the usual ones of the device."""
    source = {} if configuration.inter_link else _facts_of_sources().get(configuration.family, {})
    found = with_default_links(
        device,
        configuration.nodes,
        configuration.devices_per_node,
        _link(configuration.intra_link),
        _link(source.get("inter_link", configuration.inter_link)),
        source.get("nics_per_node", configuration.nics_per_node),
    )
    for name in (configuration.intra_link, configuration.inter_link):
        if name and _link(name) is None:
            assumptions.append(f"link '{name}' is not in the catalogue")
    if found.assumed:
        assumptions.append(found.assumed)
    return replace(found, name="published", assumed="")


def _link(name: str) -> Link | None:
    try:
        link = catalogue.link(name) if name else None
    except PacelineError:
        return None
    return None if link is None or link.bandwidth is None else link


def _plan(
    configuration: Configuration,
    samples: float,
    profile: FrameworkProfile,
    device: Device,
    assumptions: list[str],
) -> Plan:
    tp, pp, cp = configuration.tp or 1, configuration.pp or 1, configuration.cp or 1
    dp = configuration.dp or max(1, configuration.devices // (tp * pp * cp))
    if dp * tp * pp * cp != configuration.devices:
        assumptions.append("its degrees do not multiply to its devices: treated as data parallel")
        dp, tp, pp, cp = configuration.devices, 1, 1, 1
    batch = max(1, round(samples / dp))
    sequence_parallel = tp > 1 and _has_sequence_parallelism(configuration, profile)
    count = _micro_batches(configuration, batch, pp, assumptions)
    return Plan(
        dp=dp,
        tp=tp,
        pp=pp,
        cp=cp,
        zero=_zero(configuration, profile, dp, assumptions),
        micro_batches=count if batch % count == 0 else None,
        interleave=_interleave(configuration, pp, count, profile, assumptions),
        recompute=_recompute(configuration, profile),
        sequence_parallel=sequence_parallel,
        tp_overlap=sequence_parallel and profile.usual_tp_overlap,
        fused_attention=has_fused_attention(profile, device),
        synchronisation=_synchronisation(configuration, profile),
        framework=profile.name,
        loss_kernel=_loss_kernel(configuration),
        ep_impl=profile.usual_ep_impl if (configuration.ep or 1) > 1 else ExpertDispatch.ALL_TO_ALL,
    )


def _zero(
    configuration: Configuration, profile: FrameworkProfile, dp: int, assumptions: list[str]
) -> int:
    """Sharding of the row, else what the documentation of its program recommends.

    Tables without these settings have 0 and an unknown recomputation.
    """
    stated = bool(configuration.zero) or configuration.recompute not in _NOT_STATED
    if stated or not profile.usual_zero or dp == 1:
        return configuration.zero or 0
    assumptions.append(f"sharding not stated: ZeRO-{profile.usual_zero}, as the program recommends")
    return profile.usual_zero


def _as_fits(job: PublishedJob, assumptions: list[str]) -> PublishedJob:
    """The job with the least recomputation that fits, as users of a program choose it."""
    changes: list[dict[str, Any]] = [{}]
    if has_fast_host(job.cluster) and job.plan.pp == 1:
        changes.append({"offload": (Offload.ACTIVATIONS,)})
    full = {"recompute": Recompute.FULL}
    changes += [{**full, "recompute_every": every} for every in (8, 4, 2, 1)]
    for change in changes:
        tried = replace(job, plan=replace(job.plan, **change))
        if (fits_probability(predict(tried.workload, tried.cluster, tried.plan)) or 1.0) >= 0.5:
            if change:
                assumptions.append("activations recomputed or offloaded as far as memory requires")
            return replace(tried, assumptions=tuple(assumptions))
    return job


def _micro_batches(
    configuration: Configuration, batch: int, pp: int, assumptions: list[str]
) -> int:
    """Micro-batches per step: from the row, else of one sample in a pipeline."""
    if configuration.micro_batches is not None or pp == 1:
        return configuration.micro_batches or 1
    if configuration.micro_batch is not None:
        return max(1, round(batch / configuration.micro_batch))
    assumptions.append("micro-batch not stated: one sample, as 'paceline predict' assumes")
    return batch


def _expert_degree(
    configuration: Configuration, plan: Plan, graph: Graph, assumptions: list[str]
) -> int:
    """Expert-parallel degree, if the network has experts and the row states it."""
    stated = configuration.ep or 1
    try:
        expert_parallel = replace(plan, ep=stated)
        check_experts(expert_parallel, graph)
    except PacelineError as problem:
        assumptions.append(f"ep {stated} left out: {problem.message}")
        return 1
    return expert_parallel.ep


def _data_parallel_part(plan: Plan) -> Plan:
    """The plan of a black box: data parallel, since its layers are unknown."""
    return replace(plan, dp=plan.devices, tp=1, pp=1, cp=1, zero=0, recompute=Recompute.NONE)


def has_fused_attention(profile: FrameworkProfile, device: Device) -> bool:
    """Whether a fused attention kernel is assumed.

    FlashAttention (Dao et al., arXiv:2205.14135) appeared in May 2022: later devices, and
    frameworks that appeared after it, are assumed to use such kernels.
    """
    recent = device.year is not None and device.year >= _FUSED_ATTENTION_SINCE
    return recent or profile.name in _FUSED_FRAMEWORKS


def _interleave(
    configuration: Configuration,
    pp: int,
    count: int,
    profile: FrameworkProfile,
    assumptions: list[str],
) -> int:
    """Chunks per stage: from the row, else from the recipes of the framework."""
    if pp == 1:
        return 1
    layers = configuration.layers or 0
    if configuration.interleave or not layers or not profile.interleaves or count % pp:
        return configuration.interleave or 1
    assumptions.append("interleaving not stated: as many chunks as the blocks allow")
    return largest_interleave(layers, pp)


def _has_sequence_parallelism(configuration: Configuration, profile: FrameworkProfile) -> bool:
    """Whether tensor parallelism includes sequence parallelism, by row or framework."""
    stated = re.split(r"[;,+ ]+", configuration.method.lower())
    return profile.sequence_parallel or "sp" in stated


def _recompute(configuration: Configuration, profile: FrameworkProfile) -> Recompute:
    """Recomputation of the row; selective by operation where the program does so (torchtitan)."""
    if configuration.recompute == "selective" and profile.usual_recompute == Recompute.OPERATION:
        return Recompute.OPERATION
    try:
        return Recompute(configuration.recompute)
    except ValueError:
        return Recompute.NONE


def _loss_kernel(configuration: Configuration) -> LossKernel | None:
    """The loss of the source's scripts; None is that of the framework."""
    stated = _facts_of_sources().get(configuration.family, {}).get("loss_kernel")
    return LossKernel(stated) if stated else None


def _synchronisation(configuration: Configuration, profile: FrameworkProfile) -> Synchronisation:
    """Synchronisation of the profile, with policy and exchange of the row if stated."""
    own = profile.synchronisation
    policy = _POLICIES.get(configuration.overlap, own.policy)
    if configuration.sync != "ps":
        return replace(own, policy=policy)
    servers = configuration.extra_server_nodes or None
    return replace(
        own,
        policy=policy,
        exchange=Exchange.PARAMETER_SERVER,
        servers=servers if configuration.nodes > 1 else None,
        servers_on_workers=servers is None or configuration.nodes == 1,
    )


def _parameters(configuration: Configuration, assumptions: list[str]) -> float:
    if configuration.n_params is not None:
        return configuration.n_params
    assumptions.append(f"number of parameters unknown: {_ASSUMED_PARAMETERS:.0f} assumed")
    return _ASSUMED_PARAMETERS


def _length(configuration: Configuration, graph: Graph | Skipped) -> float:
    length = configuration.sequence
    if length is None and isinstance(graph, Graph):
        length = graph.sequence
    return float(length or 1)
