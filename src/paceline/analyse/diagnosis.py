"""Findings in plain words: what makes a step slow, the evidence, and what a remedy would gain."""

import math
from collections.abc import Iterable, Iterator

from paceline.analyse.finding import Case, Cause, Diagnosis, least_share_saved
from paceline.analyse.host_causes import host_findings
from paceline.analyse.message_causes import (
    MeasuredExchange,
    MessageCost,
    copying_seconds,
    with_usual_rate,
    with_usual_start,
)
from paceline.analyse.observed import computing_seconds
from paceline.constants import number
from paceline.step import Phase, StepProfile
from paceline.units import format_bytes, format_seconds

_LARGER_BATCH = 8


def diagnoses(case: Case) -> tuple[Diagnosis, ...]:
    """Findings whose remedy saves enough of the step to be worth a word, what costs most first.

    That fewer processes would do is a consequence of the others, and comes last.
    """
    found = [
        *_batch(case),
        *host_findings(case),
        *_stragglers(case),
        *_messages(case),
    ]
    ordered = [*sorted(found, key=lambda one: -one.seconds), *_processes(case)]
    return worth_a_word(ordered, case.step_seconds)


def worth_a_word(found: Iterable[Diagnosis], step_seconds: float) -> tuple[Diagnosis, ...]:
    """Those whose remedy saves enough of the step."""
    least = least_share_saved() * step_seconds
    return tuple(one for one in found if one.saved_seconds > least)


def _batch(case: Case) -> Iterator[Diagnosis]:
    usual, batch = case.profile.usual, case.observed.launch.batch_per_rank
    layers = usual.seconds(Phase.FORWARD, Phase.BACKWARD)
    if case.losses.batch > 0:
        yield Diagnosis(
            Cause.BATCH,
            case.losses.batch,
            case.losses.batch,
            f"{batch} samples per process are too few to compute efficiently",
            f"one process takes {format_seconds(case.losses.batch)} longer for its share of the "
            "samples than with the larger batch",
            "keep the batch per process: raise the global batch with the processes",
        )
        return
    size = case.profile.message_bytes
    if size <= 0 or layers <= 0 or not _on_cpu(case):
        return
    bandwidth = case.machine.memory_bandwidth if case.machine else number("explain.usual.memory")
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
        f"a batch of {batch} per process is too small: most of the step does not depend on it",
        f"moving {format_bytes(size)} of weights takes {fixed / layers:.0%} of the "
        f"{format_seconds(layers)} of forward and backward, whatever the batch",
        f"a batch of {batch * _LARGER_BATCH} takes {format_seconds(larger)} for as many samples",
    )


def _on_cpu(case: Case) -> bool:
    """Whether the host computes the layers: its CPU time is nearly that of the step.

    Of a handful of samples that is taken for granted; on a busy machine CPU time tells little.
    """
    seen = case.alone or case.observed
    cpu = seen.cpu_seconds.get(0)
    if cpu is None:
        return False
    step = seen.group.step.mean if case.alone else computing_seconds(case.profile.usual)
    at_work = cpu > number("explain.finding.host_at_work") * step
    return case.observed.launch.batch_per_rank <= number("explain.finding.handful") or at_work


def _stragglers(case: Case) -> Iterator[Diagnosis]:
    profile, losses = case.profile, case.losses
    slowest, usual = profile.slowest, profile.usual
    recurrent = slowest.last_share >= number("explain.finding.recurrent")
    sure = losses.straggler > profile.straggling_noise_seconds
    if sure and recurrent and len(profile.ranks) > 1:
        excess = {
            phase: seconds - usual.phases.get(phase, 0.0)
            for phase, seconds in slowest.phases.items()
            if phase not in (Phase.COMMUNICATE, Phase.WAIT)
        }
        where = max(excess, key=lambda phase: excess[phase])
        yield Diagnosis(
            Cause.STRAGGLER,
            losses.straggler,
            losses.straggler,
            f"rank {slowest.rank} is slow in {where}: the others wait for it",
            f"it takes {format_seconds(excess[where])} longer there than rank {usual.rank}, and "
            f"comes last to the messages in {slowest.last_share:.0%} of the steps"
            + _more_work(case),
            _equal_ranks(case, where),
        )
    if losses.jitter > number("explain.finding.uneven") * case.step_seconds:
        yield Diagnosis(
            Cause.JITTER,
            losses.jitter,
            losses.jitter,
            "steps wait for the slowest rank, another one each time",
            f"the slowest of a step computes {format_seconds(losses.jitter)} longer than any rank "
            f"does in the mean; most often last: rank {_most_often_last(profile)}{_crowd(case)}",
            "look for other programs, uneven samples and garbage collection",
        )


def _equal_ranks(case: Case, where: Phase) -> str:
    """What would make a straggler as quick as the others."""
    if _more_samples(case):
        return "give every rank as many samples (DistributedSampler, one batch size)"
    if where is Phase.INPUT:
        return "look at that rank's data"
    return "look at that rank's host, device and code; if none differs, give it less work"


def _more_samples(case: Case) -> tuple[float, float] | None:
    """Samples a step of a straggler and of the usual rank, where it has more; None otherwise."""
    slowest, usual = case.profile.slowest.rank, case.profile.usual.rank
    samples = case.observed.launch.outcome.facts.get("samples") or ()
    if max(slowest, usual) < len(samples) and samples[slowest] > samples[usual]:
        return samples[slowest], samples[usual]
    return None


def _crowd(case: Case) -> str:
    """That the machine was crowded, where it was."""
    crowding = case.observed.crowding
    if crowding < number("explain.finding.crowded"):
        return ""
    return f"; the machine was crowded: {crowding:.1f} programs wanted each core"


def _more_work(case: Case) -> str:
    """Whether a straggler does more, or the same more slowly."""
    slowest, usual = case.profile.slowest.rank, case.profile.usual.rank
    more_samples = _more_samples(case)
    if more_samples is not None:
        return "; it trains on {:g} samples a step instead of {:g}".format(*more_samples)
    cpu = case.observed.cpu_seconds
    if slowest not in cpu or usual not in cpu:
        return ""
    more = cpu[slowest] - cpu[usual]
    if more > number("explain.finding.more_work") * case.losses.straggler:
        return f"; its CPU time is {format_seconds(more)} more: it has more to do"
    return "; its CPU time is not longer: it waits or its core is slow"


def _most_often_last(profile: StepProfile) -> str:
    rank = max(profile.ranks, key=lambda one: one.last_share)
    return f"{rank.rank} ({rank.last_share:.0%})"


def _messages(case: Case) -> Iterator[Diagnosis]:
    """Findings about communication; together they are what it adds to the step.

    Seconds of the schedule are scaled to those that were measured; on a crowded machine to no more
    than copying gradients may add, since other programs delay messages there.
    """
    exchange = case.exchange
    if exchange is None:
        return
    added = exchange.added_seconds(exchange.cost)
    if added <= 0:
        return
    measured = case.losses.exposed + case.losses.handling
    if _crowd(case):
        copying = exchange.crowding * copying_seconds(exchange.size_bytes, case.machine)
        measured = min(measured, added + copying)
    same = int(case.observed.launch.outcome.facts.get("synchronised_backwards") or 1)
    if same > 1:
        yield _accumulation(same, measured)
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
    """Gradients that each micro-batch sends, of which the last alone would have to."""
    saved = seconds * (backwards - 1) / backwards
    return Diagnosis(
        Cause.ACCUMULATION,
        saved,
        saved,
        f"gradients are exchanged in each of the {backwards} backward passes of a step",
        f"{backwards} passes send buckets of the same sizes, which adds {format_seconds(seconds)} "
        "to the step; the sum of them is all that the update needs",
        "all but the last micro-batch under no_sync() of the model (DistributedDataParallel)",
    )


def _slow_start(exchange: MeasuredExchange, saved: float) -> Diagnosis:
    return Diagnosis(
        Cause.START,
        saved,
        saved,
        "each collective takes long to start",
        f"{len(exchange.messages)} messages take {format_seconds(exchange.cost.start_seconds)} "
        f"each beside their bytes; usual here: {format_seconds(exchange.expected.start_seconds)}",
        "look for a late rank, negotiation or a long way between hosts; send fewer messages",
    )


def _slow_link(exchange: MeasuredExchange, saved: float, case: Case) -> Diagnosis:
    ranks = case.observed.processes
    verdict = "the link between processes is slow"
    if not exchange.cost.told_apart:
        verdict += ", or each message starts late: all are of one size"
    return Diagnosis(
        Cause.LINK,
        saved,
        saved,
        verdict,
        f"{format_bytes(exchange.size_bytes)} travel at {_rate(exchange.cost, ranks)}; "
        f"{_rate(exchange.expected, ranks)} are usual here{_crowd(case)}",
        "check which interface is used (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME) and its rate",
    )


def _rate(cost: MessageCost, ranks: int) -> str:
    """Bus bandwidth: what the link carries, whatever the number of ranks."""
    if cost.seconds_per_byte <= 0:
        return "a rate too high to measure"
    return f"{format_bytes(2.0 * (ranks - 1) / ranks / cost.seconds_per_byte)}/s"


def _hideable_seconds(case: Case) -> float:
    """The most that hiding messages can save: where no core is free, their own work stays."""
    observed = case.observed
    ranks = observed.processes / observed.launch.nodes
    threads = ranks * int(observed.launch.job.get("threads") or 1)
    if not observed.cpu_seconds or observed.available_cores > threads:
        return math.inf
    return max(0.0, case.step_seconds - max(observed.cpu_seconds.values()))


def _policy(exchange: MeasuredExchange, seconds: float, size: float, hideable: float) -> Diagnosis:
    """Gradients sent later than need be, or in too few or too many messages.

    No more than ``hideable`` seconds are saved by hiding messages under computing.
    """
    count = len(exchange.messages)
    remedy = f"buckets of {format_bytes(size)} (bucket_cap_mb)"
    limit = ""
    if hideable < seconds:
        busy = format_seconds(seconds - hideable)
        limit = f"; cores have no time left to hide {busy} of them"
    if exchange.after_backward:
        return Diagnosis(
            Cause.OVERLAP,
            seconds,
            min(seconds, hideable),
            "gradients are sent after the backward pass instead of under it",
            f"the first of {count} messages leaves when backward has ended; it could hide "
            f"{format_seconds(exchange.backward_seconds)}{limit}",
            f"send gradients as they get ready, in {remedy}",
        )
    many = size > exchange.size_bytes / count
    return Diagnosis(
        Cause.BUCKETS,
        seconds,
        seconds if many else min(seconds, hideable),
        "gradients are sent in too many messages" if many else "buckets are too large to be hidden",
        f"{count} messages of {format_bytes(exchange.size_bytes / count)} take "
        f"{format_seconds(exchange.cost.seconds(exchange.size_bytes / count))} each on the way"
        + _handling_words(exchange.handling_seconds / count, " and {} in the backward pass")
        + ("" if many else limit),
        remedy,
    )


def _handling_words(seconds: float, words: str) -> str:
    """What messages cost the backward pass, where they cost it anything."""
    return words.format(format_seconds(seconds)) if seconds > 0 else ""


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
        f"{gradients} take longer than backward hides"
        if travelling > exchange.backward_seconds
        else f"{gradients} slow backward down, and the last of them travel when it has ended",
        f"backward lasts {format_seconds(exchange.backward_seconds)} without messages, which take "
        f"{format_seconds(travelling)} as links here go"
        + _handling_words(exchange.handling_seconds, " and cost it {}"),
        "send them as 16-bit numbers, or exchange less often: a larger batch per process, or "
        "gradients of several batches summed first",
    )


def _processes(case: Case) -> Iterator[Diagnosis]:
    if case.alone is None or case.observed.processes < 2:
        return
    alone = case.alone.group.step.mean * case.observed.processes
    saved = case.step_seconds - alone
    if saved > case.noise_seconds:
        yield Diagnosis(
            Cause.PROCESSES,
            saved,
            saved,
            "one process alone trains faster than all of these together",
            f"it needs {format_seconds(alone)} for the samples of this step of "
            f"{format_seconds(case.step_seconds)}",
            "use one process until what is found above is repaired",
        )
