"""A published configuration in the terms of the predictor: workload, cluster, plan, framework.

What a row leaves open is filled in here, and nowhere else: each assumption is a function that
says what is assumed and why.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.measurement import Configuration
from paceline.analyse.validation.workloads import graph_of
from paceline.errors import PacelineError, UnknownNameError
from paceline.hardware import Cluster, Device, Link, catalogue
from paceline.plan.plan import Plan, Recompute
from paceline.plan.synchronisation import Exchange, Policy, Synchronisation
from paceline.predictor.frameworks import FrameworkProfile as Framework
from paceline.predictor.frameworks import framework
from paceline.workload.graph import Graph
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

USUAL_FRAMEWORK = "torch-ddp"
USUAL_INNER_LINK = "pcie3_x16"
USUAL_OUTER_LINK = "eth_10g"
_ASSUMED_PARAMETERS = 25e6
_MOST_PASSES = 200_000
_FUSED_ATTENTION_SINCE = 2022
_FUSED_FRAMEWORKS = frozenset({"torch-fsdp"})
_POLICIES = {
    "none": Policy.ONE_MESSAGE,
    "per_tensor": Policy.PER_TENSOR,
    "bucketed": Policy.MERGED,
}


@dataclass(frozen=True)
class Job:
    """What ran: a workload (None where it is a black box) on a cluster under a plan.

    A black box is a model that the zoo lacks, or one on a device that the catalogue lacks.

    ``parameters`` is the number of trainable numbers, ``units_per_sample`` what throughput
    counts per sample of the batch (tokens of a sequence), ``assumptions`` what the row does
    not say.
    """

    workload: Workload | None
    cluster: Cluster
    plan: Plan
    framework: Framework
    parameters: float
    units_per_sample: float
    assumptions: tuple[str, ...]


def job_of(configuration: Configuration) -> Job:
    """The job of a row. Never fails: what is not known is assumed, and said so."""
    return _job(configuration.unnamed)


@lru_cache(maxsize=8192)
def _job(configuration: Configuration) -> Job:
    assumptions: list[str] = []
    graph = graph_of(configuration)
    if (
        isinstance(graph, Graph)
        and graph.name.startswith("gpt_h")
        and "_h" not in configuration.model
    ):
        assumptions.append(f"model '{configuration.model}' taken as {graph.name}")
    profile = _framework(configuration, assumptions)
    cluster = _cluster(configuration, assumptions)
    plan = _plan(configuration, profile, cluster.device, assumptions)
    workload = None
    if isinstance(graph, Graph) and device_obstacle(configuration) is None:
        workload = Workload(
            graph,
            max(1, round(configuration.global_batch / plan.dp)),
            configuration.sequence,
            configuration.precision,
            optimiser_of(configuration),
        )
    return Job(
        workload,
        cluster,
        plan,
        profile,
        _parameters(configuration, graph, assumptions),
        _units_per_sample(configuration, graph),
        tuple(assumptions),
    )


def cold_obstacle(configuration: Configuration) -> Skipped | None:
    """Why a row cannot be predicted without a baseline; None if it can."""
    graph = graph_of(configuration)
    if isinstance(graph, Skipped):
        return graph
    unknown = device_obstacle(configuration)
    if unknown is not None:
        return unknown
    if configuration.throughput_unit == "tokens" and graph.sequence is None:
        return Skipped("throughput in tokens of a batch whose length is not known")
    if (configuration.pp or 1) * (configuration.micro_batches or 1) > _MOST_PASSES:
        return Skipped("its pipeline has more micro-batches than can be scheduled")
    return None


def device_obstacle(configuration: Configuration) -> Skipped | None:
    """Why layers cannot be timed on the row's device in its precision; None if they can."""
    try:
        device = catalogue.device(configuration.device)
        device.peak(precision(configuration.precision).compute)
        _ = device.known_memory_bandwidth
    except PacelineError as problem:
        return Skipped(problem.message)
    return None


def optimiser_of(configuration: Configuration) -> str:
    """Images are trained by momentum SGD, text by Adam: no source says which."""
    return "sgd_momentum" if configuration.batch_unit == "images" else "adam"


def _framework(configuration: Configuration, assumptions: list[str]) -> Framework:
    """The profile of the method where it has one (WFBP, BSP, ...), else of the framework."""
    for name in (configuration.method, configuration.framework):
        profile = _known_framework(name)
        if profile is not None:
            return profile
    assumptions.append(f"framework '{configuration.framework}' taken as {USUAL_FRAMEWORK}")
    return framework(USUAL_FRAMEWORK)


@lru_cache(maxsize=512)
def _known_framework(name: str) -> Framework | None:
    try:
        return framework(name) if name else None
    except UnknownNameError:
        return None


def _cluster(configuration: Configuration, assumptions: list[str]) -> Cluster:
    try:
        device = catalogue.device(configuration.device)
    except PacelineError:
        device = Device(configuration.device, "", "gpu", {})
        assumptions.append(f"device '{configuration.device}' is not in the catalogue")
    inner = outer = None
    if configuration.devices_per_node > 1:
        inner = _link(configuration.intra_link, USUAL_INNER_LINK, "in a node", assumptions)
    if configuration.nodes > 1 or configuration.inter_link:
        outer = _link(configuration.inter_link, USUAL_OUTER_LINK, "between nodes", assumptions)
    return Cluster(
        "published",
        device,
        configuration.devices_per_node,
        configuration.nodes,
        inner,
        outer,
        nics_per_node=configuration.nics_per_node or 1,
    )


def _link(name: str, usual: str, where: str, assumptions: list[str]) -> Link:
    try:
        link = catalogue.link(name or usual)
    except PacelineError:
        link = catalogue.link(usual)
    if link.bandwidth is None:
        link = catalogue.link(usual)
    if not name or link.name == usual != name:
        assumptions.append(f"link {where} '{name or 'not stated'}' taken as {usual}")
    return link


def _plan(
    configuration: Configuration, profile: Framework, device: Device, assumptions: list[str]
) -> Plan:
    tp, pp, cp = configuration.tp or 1, configuration.pp or 1, configuration.cp or 1
    dp = configuration.dp or max(1, configuration.devices // (tp * pp * cp))
    if dp * tp * pp * cp != configuration.devices:
        assumptions.append("its degrees do not multiply to its devices: taken as data parallel")
        dp, tp, pp, cp = configuration.devices, 1, 1, 1
    batch = max(1, round(configuration.global_batch / dp))
    count = configuration.micro_batches or 1
    return Plan(
        dp=dp,
        tp=tp,
        pp=pp,
        cp=cp,
        zero=configuration.zero or 0,
        micro_batches=count if batch % count == 0 else None,
        recompute=_recompute(configuration),
        fused_attention=has_fused_attention(profile, device),
        synchronisation=_synchronisation(configuration, profile),
        framework=profile.name,
    )


def has_fused_attention(profile: Framework, device: Device) -> bool:
    """Whether attention keeps its scores on the chip.

    Such kernels became usual in 2022: devices since then, and frameworks that appeared with
    them, are taken to use them.
    """
    recent = device.year is not None and device.year >= _FUSED_ATTENTION_SINCE
    return recent or profile.name in _FUSED_FRAMEWORKS


def _recompute(configuration: Configuration) -> Recompute:
    try:
        return Recompute(configuration.recompute)
    except ValueError:
        return Recompute.NONE


def _synchronisation(configuration: Configuration, profile: Framework) -> Synchronisation:
    """The profile's, with the policy and the exchange that the row states."""
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


def _parameters(
    configuration: Configuration, graph: Graph | Skipped, assumptions: list[str]
) -> float:
    if configuration.n_params is not None:
        return configuration.n_params
    if isinstance(graph, Graph):
        return float(graph.cost(1).parameters)
    assumptions.append(f"number of parameters not known: {_ASSUMED_PARAMETERS:.0f} assumed")
    return _ASSUMED_PARAMETERS


def _units_per_sample(configuration: Configuration, graph: Graph | Skipped) -> float:
    """Tokens of a sequence where throughput is in tokens and the batch in sequences."""
    if configuration.throughput_unit == configuration.batch_unit:
        return 1.0
    length = configuration.sequence
    if length is None and isinstance(graph, Graph):
        length = graph.sequence
    return float(length or 1)
