"""Findings: what slows a step down, the evidence, and the gain of a remedy."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from paceline.constants import number
from paceline.explanation.core_holders import Holder
from paceline.explanation.diagnose_comm import (
    BUCKETS,
    MeasuredExchange,
    MessageCost,
    copying_seconds,
    gradient_share,
    other_collectives,
    with_usual_rate,
    with_usual_start,
)
from paceline.explanation.diagnose_host import host_findings
from paceline.explanation.diagnose_ranks import rank_findings
from paceline.explanation.finding import Cause, Diagnosis, DiagnosisInput, least_share_saved
from paceline.explanation.launch_states import shards
from paceline.explanation.measured_configuration import computing_seconds
from paceline.predictor.plan.sync_policy import MIB
from paceline.step import Phase
from paceline.step.step_profile import BUFFERS, GRADIENTS
from paceline.units import format_bytes, format_seconds, plural

_LARGER_BATCH = 8
_MOST_OF_IT = 0.5
"""A tensor is most of the gradient above this share."""


def diagnoses(case: DiagnosisInput) -> tuple[Diagnosis, ...]:
    """Findings whose remedy saves enough of the step, the most expensive first.

    What other programs cost comes after what the job can change; a small batch and too many
    processes overlap with the others, so they come last unless the others follow from them.
    """
    found = [*host_findings(case), *rank_findings(case)]
    found += [*_messages(case), *_collectives(case)]
    # Fewer processes, or no shards, are another plan: these follow what the script can change.
    small = case.bottleneck_seconds
    ordered = sorted(
        found,
        key=lambda one: (
            not one.of_the_job,
            one.seconds <= small,
            one.cause in (Cause.MEMORY, Cause.SHARDING),
            -one.seconds,
        ),
    )
    # These overlap with the parts of the step: they say what else follows from it.
    found, batch = list(capped(ordered, case)), list(_batch(case))
    # A larger batch shrinks these too.
    by_batch = (Cause.VOLUME, Cause.COPIES, Cause.EXPOSED, Cause.BUCKETS)
    large = [one for one in found if one.of_the_job and one.seconds > small]
    first = all(one.cause in by_batch for one in large)
    every = [*batch, *found] if first else [*found, *batch]
    return reportable([*every, *_processes(case)], case.own_seconds)


def capped(found: Iterable[Diagnosis], case: DiagnosisInput) -> Iterator[Diagnosis]:
    """Remedies in order, each with at most what the ones before leave of the gap to the ideal."""
    left = case.step_seconds - case.step.parts.compute
    for one in found:
        saved = max(0.0, min(one.saved_seconds, one.seconds, left))
        left -= saved
        yield replace(one, saved_seconds=saved)


def reportable(found: Iterable[Diagnosis], own_seconds: float) -> tuple[Diagnosis, ...]:
    """Findings that cost enough of the step without other programs to be reported."""
    least = least_share_saved() * own_seconds
    return tuple(one for one in found if min(one.seconds, one.saved_seconds) > least)


def _batch(case: DiagnosisInput) -> Iterator[Diagnosis]:
    if case.profile is None:
        return
    usual, batch = case.profile.usual, case.observed.launch.batch_per_rank
    layers = usual.seconds(Phase.FORWARD, Phase.BACKWARD)
    if case.step.parts.batch > 0:
        yield Diagnosis(
            Cause.BATCH,
            case.step.parts.batch,
            case.step.parts.batch,
            f"{plural(batch, 'sample')} per process: too few for efficient computation",
            f"one process takes {format_seconds(case.step.parts.batch)} longer for its share of "
            "the samples than at the larger batch",
            "keep the batch per process and scale the global batch with the processes",
        )
        return
    size = case.profile.message_bytes
    if size <= 0 or layers <= 0 or not _on_cpu(case):
        return
    bandwidth = case.machine.memory_bandwidth if case.machine else number("explain.usual.memory")
    # At any batch size a step reads the weights in both passes, writes gradients and updates them:
    # memory traffic that more samples share.
    fixed = min(layers, number("explain.usual.weight_passes") * size / bandwidth)
    if fixed < number("explain.finding.tiny_batch") * layers:
        return
    by_sample = layers - fixed
    step = case.step_seconds
    larger = (step + (_LARGER_BATCH - 1) * by_sample) / _LARGER_BATCH
    yield Diagnosis(
        Cause.BATCH,
        step - by_sample,
        step - larger,
        f"a batch of {batch} per process is too small: most of the step is independent of it",
        f"reading and writing {format_bytes(size)} of weights takes {fixed / layers:.0%} of the "
        f"{format_seconds(layers)} of forward and backward at any batch size",
        f"a batch of {batch * _LARGER_BATCH}, which needs {format_seconds(larger)} "
        "for the same number of samples",
    )


def _on_cpu(case: DiagnosisInput) -> bool:
    # On a busy machine CPU time is weak evidence, so it is assumed for a few samples.
    assert case.profile is not None
    seen = case.alone or case.observed
    cpu = seen.cpu_seconds.get(0)
    if cpu is None:
        return False
    step = seen.group.step.mean if case.alone else computing_seconds(case.profile.usual)
    at_work = cpu > number("explain.finding.host_at_work") * step
    return case.observed.launch.batch_per_rank <= number("explain.finding.few_samples") or at_work


def _messages(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """Findings about gradients; their costs sum to the time that these add to the step."""
    exchange, launch = case.exchange, case.observed.launch
    if exchange is None:
        yield from _exposed(case, case.seconds("exposed"))
        return
    measured = case.seconds("exposed") + case.seconds("handling")
    measured += gradient_share(launch) * case.seconds("collectives")
    measured += _thread_seconds(case, "exposed")
    same = _synchronised_passes(case)
    part = "collectives" if exchange.blocking else "exposed"
    for one in _communication(case, exchange, measured, same):
        yield replace(one, half_width=case.width(part, one.seconds))


def _thread_seconds(case: DiagnosisInput, name: str) -> float:
    """What communication threads cost by their use of the cores, for messages of one part."""
    seconds = case.holders.by_holder.get(Holder.MESSAGES, 0.0)
    parts = case.step.parts
    both = parts.exposed + parts.handling + parts.collectives
    others = (1.0 - gradient_share(case.observed.launch)) * parts.collectives
    own = others if name == "collectives" else both - others
    return seconds * own / both if both > 0 else 0.0


def _exposed(case: DiagnosisInput, seconds: float) -> Iterator[Diagnosis]:
    """Exposed communication that no schedule of timed messages explains."""
    if seconds > case.bottleneck_seconds:
        yield Diagnosis(
            Cause.EXPOSED,
            seconds,
            seconds,
            "communication is exposed",
            f"ranks wait {format_seconds(seconds)} of each step for messages after the last rank "
            "has arrived",
            "find out why with timed messages (measure --instrument phases, or run)"
            if case.exchange is None
            else "repeat on an idle machine: threads that carry messages need a core",
            case.width("exposed", seconds),
            "all of it can overlap",
        )


def _communication(
    case: DiagnosisInput, exchange: MeasuredExchange, measured: float, same: int
) -> Iterator[Diagnosis]:
    """Divide the measured cost in a fixed order: passes, latency, bandwidth, policy, volume."""
    if same > 1:
        yield _accumulation(same, measured + _buffer_seconds(case))
    # The schedule gives the shares of latency, bandwidth, policy and volume; the measurement gives
    # their sum.
    measured /= same
    added = exchange.added_seconds(exchange.cost)
    quick = with_usual_start(exchange.cost, exchange.expected)
    usual = with_usual_rate(quick, exchange.expected)
    if exchange.too_many or added < number("explain.message.scheduled") * measured:
        yield from _unscheduled(case, exchange, usual, measured)
        return
    if added <= 0:
        return
    factor = measured / added
    started, rated = exchange.added_seconds(quick), exchange.added_seconds(usual)
    yield _slow_start(exchange, factor * (added - started))
    yield _slow_link(exchange, factor * (started - rated), case)
    size, best = exchange.best_buckets(usual)
    best = min(best, rated)
    copies = _copies(case, exchange, factor * best)
    if copies is not None:
        yield copies
    left = factor * best - (copies.seconds if copies is not None else 0.0)
    late = factor * (rated - best)
    whole = exchange.largest_share > _MOST_OF_IT and not exchange.after_backward
    if whole and size <= exchange.size_bytes / len(exchange.messages):
        left, late = left + late, 0.0  # smaller buckets do not divide the tensor
    yield _policy(exchange, late, size, _hideable_seconds(case))
    yield _volume(exchange, size, usual, left)


def _unscheduled(
    case: DiagnosisInput, exchange: MeasuredExchange, cost: MessageCost, measured: float
) -> Iterator[Diagnosis]:
    """Divide a cost that the schedule does not explain, or that is due to many messages."""
    many = exchange.by_number * measured if exchange.too_many else 0.0
    if many > 0:
        yield _number(exchange, many)
    copies = _copies(case, exchange, measured - many)
    if copies is not None:
        yield copies
    left = measured - many - (copies.seconds if copies is not None else 0.0)
    size, _ = exchange.best_buckets(cost)
    volume = _volume(exchange, size, cost, left)
    if volume.saved_seconds > least_share_saved() * case.own_seconds:
        yield volume
    else:
        yield from _exposed(case, left)


def _collectives(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """Blocking collectives that carry no gradients: metrics, barriers, buffers, shards."""
    sharding = shards(case.observed.launch)
    costs = _collective_seconds(case)
    passes = _synchronised_passes(case)
    if BUFFERS in costs:
        costs[BUFFERS] /= passes  # the others are due to accumulation
    sent, limit = other_collectives(case.observed.launch), number("explain.message.small")
    for small in (True, False):
        found = {
            name: own
            for name, own in sent.items()
            if name in costs and name not in sharding and (own[1] < limit) is small
        }
        cost = math.fsum(costs[name] for name in found)
        if cost > 0:
            yield _blocking(case, found, cost, small)
    if sharding:
        yield _sharding(case, sharding, math.fsum(costs.get(name, 0.0) for name in sharding))


def _collective_seconds(case: DiagnosisInput) -> dict[str, float]:
    """Cost of each collective that carries no gradients; the measured wait gives their sum."""
    launch = case.observed.launch
    share = 1.0 - gradient_share(launch)
    seconds = share * case.seconds("collectives") + _thread_seconds(case, "collectives")
    sent = other_collectives(launch)
    whole = math.fsum(own[2] for own in sent.values())
    if seconds <= 0 or whole <= 0:
        return {}
    return {name: seconds * own[2] / whole for name, own in sent.items()}


def _synchronised_passes(case: DiagnosisInput) -> int:
    """Backward passes of a step that send the same gradients, at least 1."""
    return int(case.observed.launch.outcome.facts.get("synchronised_backwards") or 1)


def _buffer_seconds(case: DiagnosisInput) -> float:
    """Cost of the buffers that DDP broadcasts before each pass, not under ``no_sync()``."""
    return _collective_seconds(case).get(BUFFERS, 0.0)


def _sharding(case: DiagnosisInput, sent: dict[str, list[float]], waited: float) -> Diagnosis:
    handled = case.seconds("handling")
    return Diagnosis(
        Cause.SHARDING,
        waited + handled,
        0.5 * (waited + handled),
        "sharding: weights are gathered and gradients scattered in each step",
        f"each step waits {format_seconds(waited)} in {_described(sent)}"
        + _describe_handling(handled, "; copies, hooks and updates of shards take {} of CPU time"),
        "shard fewer and larger modules, reshard_after_forward=False, or DistributedDataParallel "
        "if the model fits into memory",
        math.hypot(case.width("collectives", waited), case.width("handling", handled)),
        "half as many shards take half the time",
    )


def _described(sent: dict[str, list[float]]) -> str:
    return ", ".join(
        f"{own[0]:.3g} {name.replace('_', '-')}"
        + (f" of {format_bytes(own[1])}" if own[1] > 0 else "")
        for name, own in sent.items()
    )


def _blocking(
    case: DiagnosisInput, sent: dict[str, list[float]], seconds: float, small: bool
) -> Diagnosis:
    count = math.fsum(own[0] for own in sent.values())
    many = small and count > 1
    kept = seconds / count if count > 1 else 0.5 * seconds
    remedy, assumes = "send them with async_op=True and wait later, or less often", ""
    if many:
        remedy, assumes = "send them as one message, or every few steps", "one per step stays"
    if set(sent) == {BUFFERS}:
        kept, remedy = 0.0, "broadcast_buffers=False (DistributedDataParallel)"
        assumes = "each rank may keep its own buffers, such as running means"
    return Diagnosis(
        Cause.COLLECTIVES if many else Cause.BLOCKING,
        seconds,
        seconds - kept,
        f"{count:.3g} small blocking collectives in each step"
        if many
        else "blocking collectives stop the ranks in each step",
        f"each step waits {format_seconds(seconds)} in {_described(sent)}, after the last rank "
        "has arrived",
        remedy,
        case.width("collectives", seconds),
        assumes or "half of the wait stays",
    )


def _accumulation(backwards: int, seconds: float) -> Diagnosis:
    """Gradients are sent in each micro-batch, although only the last needs to."""
    saved = seconds * (backwards - 1) / backwards
    return Diagnosis(
        Cause.ACCUMULATION,
        saved,
        saved,
        f"gradients are synchronised in each of the {backwards} backward passes of a step",
        f"{backwards} passes send buckets of the same sizes, which adds {format_seconds(seconds)} "
        "to the step; the update needs only their sum",
        "run all micro-batches but the last under no_sync() (DistributedDataParallel)",
        assumes="all exchanges cost the same",
        trial=f"no_sync={backwards}",
    )


def _slow_start(exchange: MeasuredExchange, saved: float) -> Diagnosis:
    return Diagnosis(
        Cause.START,
        saved,
        saved,
        "collectives have a high latency",
        f"latency of {plural(len(exchange.messages), 'message')}: "
        f"{format_seconds(exchange.cost.start_seconds)} each; expected on this machine: "
        f"{format_seconds(exchange.expected.start_seconds)}",
        "check for late ranks, negotiation and distant hosts; send fewer messages",
    )


def _slow_link(exchange: MeasuredExchange, saved: float, case: DiagnosisInput) -> Diagnosis:
    ranks = case.observed.processes
    verdict = "the link between processes is slow"
    if not exchange.cost.separable:
        verdict += ", or its latency is high (all messages have one size)"
    return Diagnosis(
        Cause.LINK,
        saved,
        saved,
        verdict,
        f"{format_bytes(exchange.size_bytes)} are sent at {_rate(exchange.cost, ranks)}; "
        f"expected on this machine: {_rate(exchange.expected, ranks)}",
        "check the interface in use (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME) and its bandwidth",
    )


def _rate(cost: MessageCost, ranks: int) -> str:
    # Bus bandwidth of nccl-tests (doc/PERFORMANCE.md): independent of the number of ranks.
    if cost.seconds_per_byte <= 0:
        return "a bandwidth too high to measure"
    return f"{format_bytes(2.0 * (ranks - 1) / ranks / cost.seconds_per_byte)}/s"


def _hideable_seconds(case: DiagnosisInput) -> float:
    """Upper bound of what overlap can save: without a free core, messages still cost CPU time."""
    observed = case.observed
    ranks = observed.processes / observed.launch.nodes
    threads = ranks * int(observed.launch.job.get("threads") or 1)
    if not observed.cpu_seconds or observed.available_cores > threads:
        return math.inf
    return max(0.0, case.step_seconds - max(observed.cpu_seconds.values()))


def _policy(exchange: MeasuredExchange, seconds: float, size: float, hideable: float) -> Diagnosis:
    """Gradients are sent too late, or in too few or too many messages.

    Overlap with computation saves at most ``hideable`` seconds.
    """
    count = len(exchange.messages)
    remedy = f"buckets of {format_bytes(size)} (bucket_cap_mb)"
    limit = ""
    if hideable < seconds:
        busy = format_seconds(seconds - hideable)
        limit = f"; no core is free to overlap {busy} of them"
    if exchange.after_backward:
        return Diagnosis(
            Cause.OVERLAP,
            seconds,
            min(seconds, hideable),
            "gradients are sent after the backward pass instead of during it",
            f"the first of {count} messages is sent when backward has ended; backward could "
            f"overlap {format_seconds(exchange.backward_seconds)}{limit}",
            f"send gradients when they are ready, in {remedy}",
        )
    if size > exchange.size_bytes / count:
        return _number(exchange, seconds, size)
    return Diagnosis(
        Cause.BUCKETS,
        seconds,
        min(seconds, hideable),
        "buckets are too large to overlap",
        _describe_messages(exchange) + limit,
        remedy,
        assumes="tensors become ready at an even rate in their order",
        trial=f"bucket_cap_mb={size / MIB:g}",
    )


def _number(exchange: MeasuredExchange, seconds: float, size: float = BUCKETS[-1]) -> Diagnosis:
    """Gradients are sent in too many messages."""
    by_hand = exchange.messages[0].operation == GRADIENTS
    return Diagnosis(
        Cause.BUCKETS,
        seconds,
        seconds,
        "gradients are sent in too many messages",
        _describe_messages(exchange),
        "send them flattened into one tensor, or use DistributedDataParallel"
        if by_hand
        else f"buckets of {format_bytes(size)} (bucket_cap_mb)",
        assumes="fewer messages take the same time per byte",
        trial="" if by_hand else f"bucket_cap_mb={size / MIB:g}",
    )


def _describe_messages(exchange: MeasuredExchange) -> str:
    count = len(exchange.messages)
    size = exchange.size_bytes / count
    return (
        f"{plural(count, 'message')} of {format_bytes(size)} take "
        f"{format_seconds(exchange.cost.seconds(size))} each to send"
        + _describe_handling(exchange.handling_seconds / count, " and {} of the backward pass")
    )


def _copies(case: DiagnosisInput, exchange: MeasuredExchange, left: float) -> Diagnosis | None:
    """Copies of gradients into buckets and back, which views of the buckets save."""
    settings = case.observed.launch.outcome.facts.get("ddp") or {}
    if settings.get("gradient_as_bucket_view", True):
        return None
    copied = copying_seconds(exchange.size_bytes, case.machine)
    seconds = min(copied, case.seconds("handling"), left)
    if seconds <= 0:
        return None
    return Diagnosis(
        Cause.COPIES,
        seconds,
        seconds,
        "gradients are copied into buckets and back",
        f"{format_bytes(exchange.size_bytes)} are copied twice in each step; backward needs "
        f"{format_seconds(case.seconds('handling'))} more CPU time than one process",
        "DistributedDataParallel(..., gradient_as_bucket_view=True)",
        assumes="copies run at the memory bandwidth of the machine",
        trial="gradient_as_bucket_view=1",
    )


def _describe_handling(seconds: float, template: str) -> str:
    return template.format(format_seconds(seconds)) if seconds > 0 else ""


def _volume(
    exchange: MeasuredExchange, size: float, cost: MessageCost, seconds: float
) -> Diagnosis:
    """The volume of gradients, or of the one tensor that is most of them."""
    whole, half = (exchange.added_with_buckets(size, cost, volume) for volume in (1.0, 0.5))
    saved = seconds * max(0.0, 1.0 - half / whole) if whole > 0 else 0.0
    # Exposed time that the schedule does not explain has other reasons than the volume.
    saved = min(saved, (whole - half) / number("explain.message.scheduled"))
    if exchange.largest_share > _MOST_OF_IT:
        largest = max(exchange.tensors)
        return Diagnosis(
            Cause.TENSOR,
            seconds,
            saved,
            f"one tensor of {format_bytes(largest)} is most of the gradient and is sent whole",
            f"it is {largest / exchange.size_bytes:.0%} of {format_bytes(exchange.size_bytes)}; "
            "DDP never divides a tensor, so smaller buckets do not help",
            "split the layer, send it in 16 bits, or shard it (FSDP)",
            assumes="half the bytes take half the time",
        )
    travelling = math.fsum(cost.seconds(m.size_bytes) for m in exchange.messages)
    gradients = f"gradients of {format_bytes(exchange.size_bytes)}"
    return Diagnosis(
        Cause.VOLUME,
        seconds,
        saved,
        f"{gradients} take longer to send than backward can overlap"
        if travelling > exchange.backward_seconds
        else f"{gradients} slow backward down, and the last bucket is sent after it",
        f"backward takes {format_seconds(exchange.backward_seconds)} without messages; messages "
        f"take {format_seconds(travelling)} at the bandwidth of this machine"
        + _describe_handling(exchange.handling_seconds, " and slow backward down by {}"),
        "send 16-bit gradients, or synchronise less often: a larger batch per process, or "
        "gradient accumulation",
        assumes="half the bytes take half the time",
    )


def _processes(case: DiagnosisInput) -> Iterator[Diagnosis]:
    if case.alone is None or case.observed.processes < 2:
        return
    if case.holders.by_holder.get(Holder.OTHERS, 0.0) > case.bottleneck_seconds:
        return  # the load of other programs may differ between the launches
    alone = case.alone.group.step.mean * case.observed.processes
    saved = case.step_seconds - alone
    if saved > case.noise_seconds:
        yield Diagnosis(
            Cause.PROCESSES,
            saved,
            saved,
            f"one process is faster than these {case.observed.processes} together",
            f"it trains on the samples of this step in {format_seconds(alone)} instead of "
            f"{format_seconds(case.step_seconds)}",
            "use one process until the issues above are fixed",
        )
