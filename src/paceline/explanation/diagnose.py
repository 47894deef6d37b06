"""Findings: what slows a step down, the evidence, and the gain of a remedy."""

import math
from collections.abc import Iterable, Iterator

from paceline.constants import number
from paceline.explanation.diagnose_comm import (
    MeasuredExchange,
    MessageCost,
    copying_seconds,
    with_usual_rate,
    with_usual_start,
)
from paceline.explanation.diagnose_host import host_findings
from paceline.explanation.finding import Cause, Diagnosis, DiagnosisInput, least_share_saved
from paceline.explanation.measured_configuration import computing_seconds
from paceline.step import Phase
from paceline.step.step_profile import StepProfile
from paceline.units import format_bytes, format_seconds

_LARGER_BATCH = 8


def diagnoses(case: DiagnosisInput) -> tuple[Diagnosis, ...]:
    """Findings whose remedy saves enough of the step, the most expensive first.

    "Too many processes" follows from the others, so it comes last.
    """
    found = [
        *_batch(case),
        *host_findings(case),
        *_stragglers(case),
        *_messages(case),
    ]
    ordered = [*sorted(found, key=lambda one: -one.seconds), *_processes(case)]
    return reportable(ordered, case.step_seconds)


def reportable(found: Iterable[Diagnosis], step_seconds: float) -> tuple[Diagnosis, ...]:
    """Findings whose remedy saves enough of the step to be reported."""
    least = least_share_saved() * step_seconds
    return tuple(one for one in found if one.saved_seconds > least)


def _batch(case: DiagnosisInput) -> Iterator[Diagnosis]:
    usual, batch = case.profile.usual, case.observed.launch.batch_per_rank
    layers = usual.seconds(Phase.FORWARD, Phase.BACKWARD)
    if case.overheads.batch > 0:
        yield Diagnosis(
            Cause.BATCH,
            case.overheads.batch,
            case.overheads.batch,
            f"{batch} samples per process are too few for efficient computation",
            f"one process takes {format_seconds(case.overheads.batch)} longer for its share of the "
            "samples than at the larger batch",
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
    seen = case.alone or case.observed
    cpu = seen.cpu_seconds.get(0)
    if cpu is None:
        return False
    step = seen.group.step.mean if case.alone else computing_seconds(case.profile.usual)
    at_work = cpu > number("explain.finding.host_at_work") * step
    return case.observed.launch.batch_per_rank <= number("explain.finding.few_samples") or at_work


def _stragglers(case: DiagnosisInput) -> Iterator[Diagnosis]:
    profile, overheads = case.profile, case.overheads
    slowest, usual = profile.slowest, profile.usual
    recurrent = slowest.last_share >= number("explain.finding.recurrent")
    sure = overheads.straggler > profile.straggling_noise_seconds
    if sure and recurrent and len(profile.ranks) > 1:
        excess = {
            phase: seconds - usual.phases.get(phase, 0.0)
            for phase, seconds in slowest.phases.items()
            if phase not in (Phase.COMMUNICATE, Phase.WAIT)
        }
        where = max(excess, key=lambda phase: excess[phase])
        yield Diagnosis(
            Cause.STRAGGLER,
            overheads.straggler,
            overheads.straggler,
            f"straggler: rank {slowest.rank} is slow in {where}, and the other ranks wait for it",
            f"its {where} takes {format_seconds(excess[where])} longer than on rank {usual.rank}, "
            f"and it arrives last in {slowest.last_share:.0%} of the steps" + _more_work(case),
            _equal_ranks(case, where),
        )
    if overheads.jitter > number("explain.finding.uneven") * case.step_seconds:
        yield Diagnosis(
            Cause.JITTER,
            overheads.jitter,
            overheads.jitter,
            "jitter: the slowest rank changes from step to step",
            "the slowest rank of a step computes "
            f"{format_seconds(overheads.jitter)} longer than the slowest in the mean; most often "
            f"last: rank {_most_often_last(profile)}{_oversubscription(case)}",
            "check for other programs, uneven samples and garbage collection",
        )


def _equal_ranks(case: DiagnosisInput, where: Phase) -> str:
    """The remedy for a straggler."""
    if _more_samples(case):
        return "give all ranks the same number of samples (DistributedSampler, one batch size)"
    if where is Phase.INPUT:
        return "check the data of that rank"
    return "check the host, device and code of that rank; if none differs, give it less work"


def _more_samples(case: DiagnosisInput) -> tuple[float, float] | None:
    """Samples per step of the straggler and of the typical rank if it has more, else None."""
    slowest, usual = case.profile.slowest.rank, case.profile.usual.rank
    samples = case.observed.launch.outcome.facts.get("samples") or ()
    if max(slowest, usual) < len(samples) and samples[slowest] > samples[usual]:
        return samples[slowest], samples[usual]
    return None


def _oversubscription(case: DiagnosisInput) -> str:
    crowding = case.observed.crowding
    if crowding < number("explain.finding.crowded"):
        return ""
    return f"; the cores were oversubscribed: {crowding:.1f} runnable programs per core"


def _more_work(case: DiagnosisInput) -> str:
    """Whether the straggler does more work, or the same work more slowly."""
    slowest, usual = case.profile.slowest.rank, case.profile.usual.rank
    more_samples = _more_samples(case)
    if more_samples is not None:
        return "; it trains on {:g} samples per step instead of {:g}".format(*more_samples)
    cpu = case.observed.cpu_seconds
    if slowest not in cpu or usual not in cpu:
        return ""
    more = cpu[slowest] - cpu[usual]
    if more > number("explain.finding.more_work") * case.overheads.straggler:
        return f"; its CPU time is {format_seconds(more)} longer: it does more work"
    return "; its CPU time is not longer: it waits, or its core is slow"


def _most_often_last(profile: StepProfile) -> str:
    rank = max(profile.ranks, key=lambda one: one.last_share)
    return f"{rank.rank} ({rank.last_share:.0%})"


def _messages(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """Findings about communication; their costs sum to the time that it adds to the step.

    Times of the schedule are scaled to the measured ones; with oversubscribed cores to no more
    than copying gradients may add, since other programs delay messages there.
    """
    exchange = case.exchange
    if exchange is None:
        return
    added = exchange.added_seconds(exchange.cost)
    if added <= 0:
        return
    measured = case.overheads.exposed + case.overheads.handling
    if _oversubscription(case):
        copying = exchange.crowding * copying_seconds(exchange.size_bytes, case.machine)
        measured = min(measured, added + copying)
    same = int(case.observed.launch.outcome.facts.get("synchronised_backwards") or 1)
    if same > 1:
        yield _accumulation(same, measured)
    # The schedule gives the shares of latency, bandwidth, policy and volume; the measurement gives
    # their sum.
    factor = measured / same / added
    quick = with_usual_start(exchange.cost, exchange.expected)
    usual = with_usual_rate(quick, exchange.expected)
    started, rated = exchange.added_seconds(quick), exchange.added_seconds(usual)
    yield _slow_start(exchange, factor * (added - started))
    yield _slow_link(exchange, factor * (started - rated), case)
    size, best = exchange.best_buckets(usual)
    yield _policy(exchange, factor * (rated - best), size, _hideable_seconds(case))
    yield _volume(exchange, factor, size, min(best, rated), usual)


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
    )


def _slow_start(exchange: MeasuredExchange, saved: float) -> Diagnosis:
    return Diagnosis(
        Cause.START,
        saved,
        saved,
        "collectives have a high latency",
        f"{len(exchange.messages)} messages have a latency of "
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
        f"expected on this machine: {_rate(exchange.expected, ranks)}{_oversubscription(case)}",
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
    many = size > exchange.size_bytes / count
    return Diagnosis(
        Cause.BUCKETS,
        seconds,
        seconds if many else min(seconds, hideable),
        "gradients are sent in too many messages" if many else "buckets are too large to overlap",
        f"{count} messages of {format_bytes(exchange.size_bytes / count)} take "
        f"{format_seconds(exchange.cost.seconds(exchange.size_bytes / count))} each to send"
        + _describe_handling(exchange.handling_seconds / count, " and {} of the backward pass")
        + ("" if many else limit),
        remedy,
    )


def _describe_handling(seconds: float, template: str) -> str:
    return template.format(format_seconds(seconds)) if seconds > 0 else ""


def _volume(
    exchange: MeasuredExchange, factor: float, size: float, left: float, cost: MessageCost
) -> Diagnosis:
    saved = left - min(exchange.added_with_buckets(size, cost, volume=0.5), left)
    travelling = math.fsum(cost.seconds(m.size_bytes) for m in exchange.messages)
    gradients = f"gradients of {format_bytes(exchange.size_bytes)}"
    return Diagnosis(
        Cause.VOLUME,
        factor * left,
        factor * saved,
        f"{gradients} take longer to send than backward can overlap"
        if travelling > exchange.backward_seconds
        else f"{gradients} slow backward down, and the last bucket is sent after it",
        f"backward takes {format_seconds(exchange.backward_seconds)} without messages; messages "
        f"take {format_seconds(travelling)} at the bandwidth of this machine"
        + _describe_handling(exchange.handling_seconds, " and slow backward down by {}"),
        "send 16-bit gradients, or synchronise less often: a larger batch per process, or "
        "gradient accumulation",
    )


def _processes(case: DiagnosisInput) -> Iterator[Diagnosis]:
    if case.alone is None or case.observed.processes < 2:
        return
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
