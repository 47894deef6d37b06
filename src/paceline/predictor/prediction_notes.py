"""Notes of a prediction: assumptions and unknowns."""

from collections.abc import Iterator
from functools import lru_cache

from paceline.constants import number
from paceline.predictor.comm.fabric import outer_family, through_host
from paceline.predictor.comm.layer_comm import attention_in_parts
from paceline.predictor.partition.partition import Partition, busiest_expert_load
from paceline.predictor.plan.plan_choices import ContextForm, Module, Recompute
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.timeline import Timeline
from paceline.predictor.uncertainty.applied_corrections import variation_of
from paceline.predictor.uncertainty.correction_table import shipped_corrections
from paceline.predictor.uncertainty.intervals import reads_too_fast, samples_read_per_second
from paceline.units import format_bandwidth
from paceline.workload.adapters import adapter_rank
from paceline.workload.capture_notes import capture_notes
from paceline.workload.graph import Graph


def prediction_notes(timeline: Timeline) -> tuple[str, ...]:
    """Sources, unknowns and limits of a prediction."""
    job, parts, corrections = timeline.step.job, timeline.step.parts, timeline.corrections
    notes = []
    if job.evidence.source:
        notes.append(job.evidence.source)
    if job.cluster.assumed:
        notes.append(job.cluster.assumed)
    if reads_too_fast(timeline):
        rate = samples_read_per_second(timeline) / 1e6
        notes.append(
            f"assumes each node reads {rate:.2g} million samples/s: reading often limits "
            "recommenders, so the interval is wider (--input-time)"
        )
    elif job.input_seconds == 0 and job.evidence.input_seconds is None:
        notes.append("assumes the input pipeline keeps up")
    has_jitter = variation_of(job, corrections.step) is not None
    if not has_jitter and corrections.colocated is None and job.plan.devices > 1:
        notes.append("assumes equally fast workers (no measured jitter)")
    if job.workload.cost.training_flops == 0:
        notes.append("FLOP and activations of the layers are unknown: memory is a lower bound")
    if job.plan.tp > 1 and not parts.sharding.divides:
        notes.append("tp divides no layer of this model: every device computes all of them")
    notes += _tcp_limit(parts, corrections.step.bandwidth_factor)
    notes += _choices(parts)
    notes += [*corrections.step.notes, *_graph_notes(job.workload.graph)]
    if job.evidence.launches == 0:
        notes += _outside_domain(job)
    return tuple(notes)


def _tcp_limit(parts: Partition, factor: float) -> Iterator[str]:
    """What a NIC reaches through the host's TCP, if that is less than its line rate."""
    cluster = parts.cluster
    link = cluster.inter
    if cluster.nodes == 1 or link is None or link.per == "node" or outer_family(link) != "tcp":
        return
    line_rate = link.known_bandwidth
    reached = through_host(line_rate, "tcp")
    if not reached < line_rate:
        return
    efficiency = parts.framework.library(cluster.device).efficiency
    tcp = factor * reached * efficiency.get("tcp", 1.0)
    rdma = format_bandwidth(line_rate * efficiency.get("rdma", 1.0))
    yield (
        f"{link.name} over TCP reaches {format_bandwidth(float(tcp))} per NIC, of "
        f"{format_bandwidth(line_rate)}; RDMA (RoCE, InfiniBand) would reach {rdma}"
    )


@lru_cache(maxsize=64)
def _graph_notes(graph: Graph) -> tuple[str, ...]:
    return tuple(capture_notes(graph))


def _choices(parts: Partition) -> Iterator[str]:
    """One note per default that was chosen for the user."""
    plan = parts.plan
    yield from _loss_and_recomputation(parts)
    if parts.framework.adapted_layers and adapter_rank(parts.workload.graph) is not None:
        title = parts.framework.title
        yield f"assumes adapters on the QKV projection only, the default of {title}"
    if plan.cp > 1 and plan.cp_impl is None:
        form, title = parts.cp_impl, parts.framework.title
        yield f"assumes {form} context parallelism, the default of {title} (--cp-impl)"
    if plan.cp > 1 and parts.cp_impl is not ContextForm.ULYSSES:
        yield (
            f"assumes that attention in {plan.cp} parts takes "
            f"{attention_in_parts(plan.cp) - 1:.0%} longer than in one piece (a prior, "
            "included in the interval)"
        )
    if plan.folds_experts and plan.etp is None:
        yield (
            f"assumes experts divided among ep {plan.ep} devices, each expert whole on one of them "
            "(--etp)"
        )
    if plan.assumes_expert_load:
        yield (
            f"assumes {busiest_expert_load(plan):g} times the mean load on the busiest of "
            f"{plan.ep} expert-parallel devices, ± {number('parallelism.experts.spread'):.0%} "
            "(--expert-imbalance)"
        )


def _loss_and_recomputation(parts: Partition) -> Iterator[str]:
    graph, plan = parts.workload.graph, parts.plan
    vocabulary = graph.dimensions.get("vocabulary", 0)
    if plan.loss_kernel is None and vocabulary and parts.workload.sequence is not None:
        kernel, title = parts.framework.loss_kernel, parts.framework.title
        yield f"assumes a {kernel} loss, the default of {title} (--loss-kernel)"
    scores = plan.recompute is Recompute.SELECTIVE and not plan.recompute_modules
    if plan.fused_attention and (scores or Module.CORE_ATTENTION in plan.recompute_modules):
        yield (
            "fused attention keeps no scores, so recomputing it frees only its row statistics and "
            "costs one more forward pass of attention"
        )


def _outside_domain(job: PredictionInputs) -> Iterator[str]:
    """Properties outside the validated domain."""
    published = shipped_corrections()
    outside = [
        f"no {what} '{name}'"
        for what, known, name in (
            ("device", published.devices, job.cluster.device.name),
            ("framework", published.frameworks, job.framework.name),
        )
        if name not in known
    ]
    if job.plan.devices > published.most_devices:
        outside.append(f"no job of more than {published.most_devices} devices")
    if outside:
        missing = ", ".join(outside)
        yield f"outside the validated domain: published measurements have {missing}"
