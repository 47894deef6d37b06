"""What a measured step loses against one device alone, cause by cause, from what was recorded."""

import math
from dataclasses import dataclass, replace

from paceline.analyse.groups import LaunchGroup
from paceline.analyse.observed import Observed, computing_seconds
from paceline.analyse.statistics import mean_rank_step_seconds
from paceline.constants import number
from paceline.statistics.estimate import estimate
from paceline.step import Phase, RankProfile, StepProfile


@dataclass(frozen=True)
class Losses:
    """Seconds per step of each cause, in the order of the waterfall.

    ``ideal`` is one device alone on its share of the work, without waiting for input or for the
    host. ``batch`` is what it takes longer with fewer samples at a time, ``input`` what it waits
    for input, ``pauses`` what steps add that stop for work of the host, ``cores`` and ``memory``
    what it computes longer beside the others (waiting for a core, or at work), ``handling`` what
    messages cost the backward pass itself, ``framework`` what the host does between phases of
    every step, ``straggler`` how much longer one rank computes than the others, ``jitter`` what is
    lost because another rank is the slowest each time, ``exposed`` messages that nothing hides,
    ``idle`` when nothing runs at all.
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
        """Everything that is accounted for."""
        return math.fsum(vars(self).values())


def losses_of(
    profile: StepProfile,
    observed: Observed,
    alone: Observed | None,
    larger_batch: Observed | None = None,
    side_by_side: LaunchGroup | None = None,
) -> Losses:
    """The losses of a step that was looked into.

    ``alone`` is the same job on one process, ``larger_batch`` one process with another batch,
    ``side_by_side`` the same processes without communication: they tell what messages slow down
    from what sharing does, and are better evidence than a profile of a single step. Without
    ``alone`` the computing of the usual rank is taken as ideal, without what it waited for a core:
    as the system counted it, or by CPU time where cores were too few.
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
        found = Losses(ideal=ideal, batch=batch, cores=cores, framework=host, **shared)
        return found if delay is None else _with_delays(found, profile, observed)
    own, host_alone = alone.computing_seconds, alone.host_seconds
    host = host if alone.profile is not None else 0.0
    growth = computing - own - (host - host_alone)
    handling = _handling(profile, alone, growth, side_by_side)
    sharing = growth - handling
    if side_by_side is not None and profile.steps == 1:
        sharing = _beside(side_by_side, alone)
        uneven = side_by_side.step.mean - alone.group.step.mean - sharing
        shared["jitter"] = max(shared["jitter"], uneven - shared["straggler"])
    delay_alone = _while_computing(
        alone.plain_delay_seconds, None if alone.profile is None else alone.profile.usual, own
    )
    if delay is None or delay_alone is None:
        cores, delay_alone = _waiting_for_cores(computing, cpu, alone, sharing), 0.0
    elif observed.crowded_by_others or observed.confined:
        both = sharing + handling
        more = min(delay - delay_alone, max(0.0, both))
        handling = min(handling, max(0.0, both - more))
        sharing, cores = both - handling, more
    elif observed.undisturbed:
        cores = 0.0
    else:
        cores = max(0.0, min(delay - delay_alone, sharing))
    batch = 0.0 if larger_batch is None else own - _share(alone, larger_batch)
    found = Losses(
        ideal=own - batch - host_alone - delay_alone,
        batch=batch,
        cores=cores + delay_alone,
        memory=sharing - cores,
        handling=handling,
        framework=host,
        **shared,
    )
    if delay is not None:
        return _with_delays(found, profile, observed)
    return _on_too_few_cores(found, observed) if observed.confined else found


def waited_for_cores(observed: Observed) -> float:
    """What a step that nobody looked into loses because ranks had no core, seconds.

    A step takes as long as its slowest rank: of each step the longest delay counts. Where nobody
    else wanted the cores, ranks with a core each only wait for their own messages.
    """
    if not (observed.crowded_by_others or observed.confined):
        return 0.0
    longest = max(observed.delay_seconds.values(), default=0.0) + observed.uneven_delay_seconds
    return min(number("explain.finding.most_delay") * observed.group.step.mean, longest)


def with_core_waits(losses: Losses, observed: Observed, alone: Observed) -> Losses:
    """Waiting for a core told apart, in a step that nobody looked into.

    What the process alone waited is no part of the ideal. What ranks wait longer than it did is
    taken from what they lose beside each other, then from what nothing else accounts for.
    """
    before = waited_for_cores(alone)
    more = max(0.0, waited_for_cores(observed) - before)
    memory, jitter = max(0.0, losses.memory), max(0.0, losses.jitter)
    beside = min(more, memory + jitter)
    unknown = max(0.0, observed.group.step.mean - losses.total)
    shrink = beside / (memory + jitter) if beside > 0 else 0.0
    return replace(
        losses,
        ideal=losses.ideal - before,
        cores=before + beside + min(more - beside, unknown),
        memory=losses.memory - shrink * memory,
        jitter=losses.jitter - shrink * jitter,
    )


def _while_computing(
    delay: float | None, rank: RankProfile | None, computing: float
) -> float | None:
    """The part of what a rank had no core for that fell into computing, without the host's own.

    Delays are taken to be spread evenly over all that the rank does.
    """
    if delay is None or computing <= 0:
        return None
    host = 0.0 if rank is None else rank.seconds(Phase.OTHER)
    busy = computing + (0.0 if rank is None else rank.seconds(Phase.INPUT))
    able = max(0.0, computing - host)
    return min(number("explain.finding.most_delay") * able, delay * able / busy)


def _with_delays(losses: Losses, profile: StepProfile, observed: Observed) -> Losses:
    """Waiting for a core is known: a rank that had none looks like a straggler, and is none.

    So does another rank each time, as far as another one had none each time. Nor is it
    communication when others kept the thread that carries messages from its core; of what is
    hidden and what is not, it waits alike. That a rank's own work does so is what messages cost.
    """
    slowest, usual = (
        observed.delay_seconds.get(one.rank) for one in (profile.slowest, profile.usual)
    )
    late = max(0.0, (slowest or 0.0) - (usual or 0.0))
    late = min(late, max(0.0, losses.straggler))
    turns = min(max(0.0, losses.jitter), observed.uneven_delay_seconds)
    carried = profile.exposed_seconds + profile.hidden_seconds
    share = losses.exposed / carried if carried > 0 else 0.0
    delayed = observed.message_delay_seconds if observed.crowded_by_others else 0.0
    waited = min(max(0.0, losses.exposed), share * delayed)
    return replace(
        losses,
        cores=losses.cores + late + turns + waited,
        straggler=losses.straggler - late,
        jitter=losses.jitter - turns,
        exposed=losses.exposed - waited,
    )


def _on_too_few_cores(losses: Losses, observed: Observed) -> Losses:
    """Ranks that share a core take turns, and what else differs between them follows from that.

    Whoever runs second looks like a straggler, and messages wait for a core too: so much of them
    counts as is missing to the turns of all ranks.
    """
    follows = ("memory", "straggler", "jitter", "handling")
    cores = losses.cores + math.fsum(max(0.0, getattr(losses, name)) for name in follows)
    ranks = observed.processes / observed.launch.nodes
    turns = (ranks / len(observed.cores) - 1.0) * (losses.ideal + losses.batch + losses.framework)
    waited = min(losses.exposed, max(0.0, turns - cores))
    left = {name: min(0.0, getattr(losses, name)) for name in follows}
    return replace(losses, cores=cores + waited, exposed=losses.exposed - waited, **left)


def _handling(
    profile: StepProfile, alone: Observed, growth: float, side_by_side: LaunchGroup | None
) -> float:
    """What messages slow the backward pass by: computing beside others takes less without them.

    Without such launches: sharing a machine slows forward and backward alike, messages only
    backward.
    """
    if not profile.messages:
        return 0.0
    before, backward = alone.profile, profile.usual.seconds(Phase.BACKWARD)
    if side_by_side is not None:
        return min(backward, max(0.0, growth - _beside(side_by_side, alone)))
    if before is None:
        return 0.0
    forward, forward_alone = (one.usual.seconds(Phase.FORWARD) for one in (profile, before))
    backward_alone = before.usual.seconds(Phase.BACKWARD)
    if forward_alone <= 0 or backward_alone <= 0:
        return 0.0
    slowdown = max(1.0, forward / forward_alone)
    return max(0.0, backward - slowdown * backward_alone)


def _beside(side_by_side: LaunchGroup, alone: Observed) -> float:
    """What a step takes longer on a mean rank beside others that it exchanges nothing with."""
    beside = estimate([mean_rank_step_seconds(one) for one in side_by_side.launches]).mean
    return beside - alone.group.step.mean


def _waiting_for_cores(
    computing: float, cpu: float | None, alone: Observed, sharing: float
) -> float:
    """The part of ``sharing`` in which the rank did not run: wall time per CPU time has grown."""
    cpu_alone = alone.cpu_seconds.get(0)
    if cpu is None or cpu_alone is None or cpu <= 0:
        return 0.0
    stretch = (computing / cpu) / (alone.computing_seconds / cpu_alone)
    return min(max(0.0, sharing), computing * max(0.0, 1.0 - 1.0 / stretch))


def _share(own: Observed, larger: Observed) -> float:
    """What the samples of a rank would take at the pace of a larger batch."""
    share = own.launch.batch_per_rank / larger.launch.batch_per_rank
    return share * larger.computing_seconds
