"""Overheads of a measured step over one device alone, by cause."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.launch_statistics import mean_rank_step_seconds
from paceline.constants import number
from paceline.explanation.measured_configuration import MeasuredConfiguration, computing_seconds
from paceline.stats.estimate import Estimate, estimate, student_t
from paceline.step import Phase
from paceline.step.step_profile import RankProfile, StepProfile


@dataclass(frozen=True)
class StepOverheads:
    """Seconds per step of each cause, in the order of the waterfall.

    - ``ideal``: one device alone on its share of the work, without waiting for input or the host
    - ``batch``: lower efficiency of a smaller batch
    - ``input``: waiting for input
    - ``pauses``: steps that stop for other work of the host
    - ``cores``: CPU contention (runnable without a core)
    - ``memory``: memory and cache contention (more CPU time for the same work)
    - ``straggler``: longer computation of one rank
    - ``jitter``: the slowest rank changes from step to step
    - ``exposed``: communication that is not overlapped
    - ``handling``: slowdown of the backward pass by messages
    - ``framework``: work of the host between phases of every step
    - ``idle``: time in which nothing runs
    """

    ideal: float
    batch: float = 0.0
    input: float = 0.0
    pauses: float = 0.0
    cores: float = 0.0
    memory: float = 0.0
    straggler: float = 0.0
    jitter: float = 0.0
    exposed: float = 0.0
    handling: float = 0.0
    framework: float = 0.0
    idle: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the ideal step and all overheads."""
        return math.fsum(vars(self).values())


def over_launches(
    by_launch: Sequence[StepOverheads], references: Mapping[str, Sequence[Estimate]]
) -> tuple[StepOverheads, StepOverheads]:
    """Means over launches, and half of their 95 % intervals (NaN for one launch), seconds.

    An overhead whose interval includes zero is set to zero in both: there is no evidence for it.
    ``references`` are the step times of other launches that an overhead is a difference from.
    """
    # A rank that was late only because it had no core is not a straggler, nor a faster rank.
    if math.fsum(one.straggler for one in by_launch) < 0:
        by_launch = [
            replace(one, straggler=0.0, jitter=one.jitter + one.straggler) for one in by_launch
        ]
    means, widths = {}, {}
    for name in vars(by_launch[0]):
        own = estimate([float(getattr(one, name)) for one in by_launch])
        width = _half_width([own, *references.get(name, ())])
        shown = name == "ideal" or not abs(own.mean) <= width
        means[name], widths[name] = (own.mean, width) if shown else (0.0, 0.0)
    return StepOverheads(**means), StepOverheads(**widths)


def _half_width(estimates: Sequence[Estimate]) -> float:
    """Half the 95 % interval of a sum or difference of means (Welch-Satterthwaite).

    NaN if each is from a single launch.
    """
    known = [one for one in estimates if one.launches > 1]
    variances = [one.standard_deviation**2 / one.launches for one in known]
    variance = math.fsum(variances)
    if variance <= 0:
        return 0.0 if known else math.nan
    squares = (v * v / (one.launches - 1) for v, one in zip(variances, known, strict=True))
    return student_t(variance**2 / math.fsum(squares)) * math.sqrt(variance)


def with_contention_by_cpu(
    overheads: StepOverheads, observed: MeasuredConfiguration, alone: MeasuredConfiguration | None
) -> StepOverheads:
    """Limit memory and cache contention to the increase in CPU time, which it must show in."""
    usual = 0 if observed.profile is None else observed.profile.usual.rank
    cpu = observed.cpu_seconds.get(usual)
    cpu_alone = None if alone is None else alone.cpu_seconds.get(0)
    grown = 0.0 if cpu is None or cpu_alone is None else cpu - cpu_alone
    return replace(overheads, memory=max(0.0, min(overheads.memory, grown)))


def overheads_of(
    profile: StepProfile,
    observed: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    larger_batch: MeasuredConfiguration | None = None,
    side_by_side: LaunchGroup | None = None,
) -> StepOverheads:
    """The overheads of an instrumented step.

    ``alone`` is the same job on one process, ``larger_batch`` one process with another batch,
    ``side_by_side`` the same processes without communication: it separates the slowdown by
    messages from contention, and is better evidence than a profile of a single step. Without
    ``alone`` the computation of the typical rank without CPU contention is the ideal; contention
    is counted by the operating system, or estimated from CPU time if cores were too few.
    """
    usual = profile.usual
    shared = {
        "input": usual.seconds(Phase.INPUT),
        "pauses": profile.pause_seconds,
        "straggler": profile.straggling_seconds,
        "jitter": profile.jitter_seconds,
        "exposed": profile.exposed_seconds,
        "idle": profile.idle_seconds,
    }
    computing, cpu = computing_seconds(usual), observed.cpu_seconds.get(usual.rank)
    host = usual.seconds(Phase.OTHER)
    delay = _while_computing(observed.delay_seconds.get(usual.rank), usual, computing)
    if alone is None:
        cores = max(0.0, computing - cpu) if cpu is not None and observed.short_of_cores else 0.0
        cores = cores if delay is None else delay
        batch = 0.0 if larger_batch is None else computing - cores - _share(observed, larger_batch)
        ideal = computing - cores - batch - host
        found = StepOverheads(ideal=ideal, batch=batch, cores=cores, framework=host, **shared)
        return found if delay is None else _with_delays(found, profile, observed)
    own, host_alone = alone.computing_seconds, alone.host_seconds
    host = host if alone.profile is not None else 0.0
    growth = computing - own - (host - host_alone)
    handling = _handling(profile, alone, growth, side_by_side)
    sharing = growth - handling
    # The profile of a single step is weaker evidence than launches without communication.
    if side_by_side is not None and profile.steps == 1:
        sharing = _contention(side_by_side, alone)
        uneven = side_by_side.step.mean - alone.group.step.mean - sharing
        shared["jitter"] = max(shared["jitter"], uneven - shared["straggler"])
    delay_alone = _while_computing(
        alone.plain_delay_seconds, None if alone.profile is None else alone.profile.usual, own
    )
    # Older launches have no run-queue delay: wall time per CPU time stands in for it.
    if delay is None or delay_alone is None:
        cores, delay_alone = _contention_by_cpu_time(computing, cpu, alone, sharing), 0.0
    elif observed.crowded_by_others or observed.confined:
        # Other programs may also have delayed the backward pass while messages were in flight, so
        # contention is taken from the sum, and messages keep what is left.
        both = sharing + handling
        more = min(delay - delay_alone, max(0.0, both))
        handling = min(handling, max(0.0, both - more))
        sharing, cores = both - handling, more
    elif observed.undisturbed:
        # Every computing thread had a core: a counted delay is due to the rank's own messages.
        cores = 0.0
    else:
        cores = max(0.0, min(delay - delay_alone, sharing))
    batch = 0.0 if larger_batch is None else own - _share(alone, larger_batch)
    found = StepOverheads(
        ideal=own - batch - host_alone - delay_alone,
        batch=batch,
        cores=cores + delay_alone,
        memory=sharing - cores,
        handling=handling,
        framework=host,
        **shared,
    )
    if delay is not None:
        found = _with_delays(found, profile, observed)
    elif observed.confined:
        found = _on_too_few_cores(found, observed)
    return with_contention_by_cpu(found, observed, alone)


def cpu_contention_seconds(observed: MeasuredConfiguration) -> float:
    """CPU contention of an uninstrumented step, seconds.

    A step takes as long as its slowest rank, so the longest delay of each step counts. Without
    other programs, ranks that have a core each wait only for their own messages.
    """
    if not (observed.crowded_by_others or observed.confined):
        return 0.0
    longest = max(observed.delay_seconds.values(), default=0.0) + observed.uneven_delay_seconds
    return min(number("explain.finding.most_delay") * observed.group.step.mean, longest)


def with_cpu_contention(
    overheads: StepOverheads, observed: MeasuredConfiguration, alone: MeasuredConfiguration
) -> StepOverheads:
    """Separate CPU contention from the other overheads of an uninstrumented step.

    CPU contention of the one-process run is not part of the ideal. Additional contention is
    subtracted from memory contention and jitter, then from the unattributed time.
    """
    before = cpu_contention_seconds(alone)
    more = max(0.0, cpu_contention_seconds(observed) - before)
    memory, jitter = max(0.0, overheads.memory), max(0.0, overheads.jitter)
    explained = min(more, memory + jitter)
    unknown = max(0.0, observed.group.step.mean - overheads.total)
    shrink = explained / (memory + jitter) if explained > 0 else 0.0
    return replace(
        overheads,
        ideal=overheads.ideal - before,
        cores=before + explained + min(more - explained, unknown),
        memory=overheads.memory - shrink * memory,
        jitter=overheads.jitter - shrink * jitter,
    )


def _while_computing(
    delay: float | None, rank: RankProfile | None, computing: float
) -> float | None:
    """The part of a rank's CPU contention during computation, without framework overhead.

    Assumes that delays are spread evenly over the work of the rank.
    """
    if delay is None or computing <= 0:
        return None
    host = 0.0 if rank is None else rank.seconds(Phase.OTHER)
    busy = computing + (0.0 if rank is None else rank.seconds(Phase.INPUT))
    able = max(0.0, computing - host)
    return min(number("explain.finding.most_delay") * able, delay * able / busy)


def _with_delays(
    overheads: StepOverheads, profile: StepProfile, observed: MeasuredConfiguration
) -> StepOverheads:
    """Move counted CPU contention out of straggler, jitter and exposed communication.

    A rank without a core looks like a straggler, and like jitter if the rank varies. A thread
    that carries messages and has no core because of other programs looks like communication;
    its delay is spread over exposed and overlapped messages in proportion. Contention with the
    rank's own work remains a cost of communication.
    """
    slowest, usual = (
        observed.delay_seconds.get(one.rank) for one in (profile.slowest, profile.usual)
    )
    late = max(0.0, (slowest or 0.0) - (usual or 0.0))
    late = min(late, max(0.0, overheads.straggler))
    turns = min(max(0.0, overheads.jitter), observed.uneven_delay_seconds)
    carried = profile.exposed_seconds + profile.hidden_seconds
    share = overheads.exposed / carried if carried > 0 else 0.0
    delayed = observed.message_delay_seconds if observed.crowded_by_others else 0.0
    waited = min(max(0.0, overheads.exposed), share * delayed)
    return replace(
        overheads,
        cores=overheads.cores + late + turns + waited,
        straggler=overheads.straggler - late,
        jitter=overheads.jitter - turns,
        exposed=overheads.exposed - waited,
    )


def _on_too_few_cores(overheads: StepOverheads, observed: MeasuredConfiguration) -> StepOverheads:
    """Attribute differences between ranks that share a core to CPU contention.

    Such ranks take turns: the second looks like a straggler, and messages wait for a core too.
    Exposed communication counts up to the time that the turns of all ranks need.
    """
    follows = ("memory", "straggler", "jitter", "handling")
    cores = overheads.cores + math.fsum(max(0.0, getattr(overheads, name)) for name in follows)
    ranks = observed.processes / observed.launch.nodes
    turns = (ranks / len(observed.cores) - 1.0) * (
        overheads.ideal + overheads.batch + overheads.framework
    )
    waited = min(overheads.exposed, max(0.0, turns - cores))
    left = {name: min(0.0, getattr(overheads, name)) for name in follows}
    return replace(overheads, cores=cores + waited, exposed=overheads.exposed - waited, **left)


def _handling(
    profile: StepProfile,
    alone: MeasuredConfiguration,
    growth: float,
    side_by_side: LaunchGroup | None,
) -> float:
    """Slowdown of the backward pass by messages, from no-sync launches.

    Without such launches: contention slows forward and backward equally, messages only backward.
    """
    if not profile.messages:
        return 0.0
    before, backward = alone.profile, profile.usual.seconds(Phase.BACKWARD)
    if side_by_side is not None:
        return min(backward, max(0.0, growth - _contention(side_by_side, alone)))
    if before is None:
        return 0.0
    forward, forward_alone = (one.usual.seconds(Phase.FORWARD) for one in (profile, before))
    backward_alone = before.usual.seconds(Phase.BACKWARD)
    if forward_alone <= 0 or backward_alone <= 0:
        return 0.0
    slowdown = max(1.0, forward / forward_alone)
    return max(0.0, backward - slowdown * backward_alone)


def _contention(side_by_side: LaunchGroup, alone: MeasuredConfiguration) -> float:
    """Increase of the mean rank's step in launches without communication."""
    shared = estimate([mean_rank_step_seconds(one) for one in side_by_side.launches]).mean
    return shared - alone.group.step.mean


def _contention_by_cpu_time(
    computing: float, cpu: float | None, alone: MeasuredConfiguration, sharing: float
) -> float:
    """CPU contention: the part of ``sharing`` that raised the ratio of wall to CPU time."""
    cpu_alone = alone.cpu_seconds.get(0)
    if cpu is None or cpu_alone is None or cpu <= 0:
        return 0.0
    stretch = (computing / cpu) / (alone.computing_seconds / cpu_alone)
    return min(max(0.0, sharing), computing * max(0.0, 1.0 - 1.0 / stretch))


def _share(own: MeasuredConfiguration, larger: MeasuredConfiguration) -> float:
    """Time of a rank's samples at the efficiency of a larger batch."""
    share = own.launch.batch_per_rank / larger.launch.batch_per_rank
    return share * larger.computing_seconds
