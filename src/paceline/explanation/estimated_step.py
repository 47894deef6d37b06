"""Parts of a step over the launches of a configuration: means and intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.explanation.launch_states import (
    launch_states,
    shards,
    thread_use,
    waits_for_a_device,
    with_late_workers,
)
from paceline.explanation.measured_configuration import MeasuredConfiguration
from paceline.explanation.step_parts import (
    NAMES,
    Roles,
    StepParts,
    ThreadUse,
    compared,
    parts_of,
    roles_of,
    typical_cells,
)
from paceline.stats.estimate import Estimate, estimate, student_t
from paceline.step.state_profile import (
    MESSAGES,
    Cell,
    RankStates,
    Stalls,
    StateProfile,
    ThreadState,
    mean_cells,
    total,
)


@dataclass(frozen=True)
class EstimatedStep:
    """Mean parts of a step and half their 95 % intervals, seconds.

    ``by_steps`` is whether the intervals are over parts of the only launch, since one launch has
    none over launches. ``states`` are the means over launches, ``cells`` those of the typical rank.
    ``samples`` are the parts of each launch, or of parts of the only one.
    """

    parts: StepParts
    widths: StepParts
    by_steps: bool
    roles: Roles
    states: StateProfile
    cells: Mapping[Cell, float]
    threads: ThreadUse
    samples: tuple[StepParts, ...]
    cpu_seconds: float = 0.0

    def distinguishable(self, name: str) -> bool:
        """Whether the interval of a part excludes zero; true if it has none."""
        seconds, width = getattr(self.parts, name), getattr(self.widths, name)
        return not abs(seconds) <= width


def estimate_step(
    own: MeasuredConfiguration,
    alone: "EstimatedStep | None" = None,
    shared: float | None = None,
) -> EstimatedStep | None:
    """Parts of the step of ``own``, compared with one process; None if no launch has states.

    All launches have the same roles; each is compared with the mean of one process. ``shared`` is
    the growth of computing in ranks that do not communicate, if such launches ran.
    """
    seen = []
    for one in own.each:
        found = launch_states(one.launch, one.profile, one.delays, one.uneven_delay_seconds)
        if found is not None:
            seen.append((one, with_late_workers(found, one.launch, one.others_share)))
    ranks = len(seen[0][1].ranks) if seen else 0
    seen = [(one, states) for one, states in seen if len(states.ranks) == ranks]
    if not seen:
        return None
    roles = roles_of([states for _, states in seen])
    by_launch = [
        _parts(one, states, mean_step_seconds(one.launch), roles, alone, shared)
        for one, states in seen
    ]
    mean = _mean_parts(by_launch)
    (first, states), *more = seen
    samples = by_launch
    if not more:
        # Scaled, since the wait at the end of a batch belongs to the next one.
        scale = mean.total / max(states.step_seconds, 1e-12)
        wait = message_wait_seconds(states.critical)
        samples = [
            _parts(
                first,
                batch,
                scale * batch.step_seconds,
                roles,
                alone,
                shared,
                message_wait_seconds(batch.critical) / max(wait, 1e-12),
            )
            for batch in states.parts()
        ]
    states = mean_states([own for _, own in seen])
    widths = _widths(samples, alone)
    if not more and states.stalls is not None:
        # Stalls are too rare for a difference of parts of the launch.
        widths = replace(widths, stalls=_stalls_width(states.stalls))
    return EstimatedStep(
        mean,
        widths,
        not more,
        roles,
        states,
        typical_cells(states, roles),
        thread_use(first.launch, states, first.profile),
        tuple(samples),
        first.cpu_seconds.get(0, 0.0),
    )


def _parts(
    one: MeasuredConfiguration,
    states: StateProfile,
    step_seconds: float,
    roles: Roles,
    alone: "EstimatedStep | None",
    shared: float | None,
    waited: float = 1.0,
) -> StepParts:
    """Parts of one launch, or of some of its steps, compared with one process.

    The delays of threads are means of the launch: those of message threads are divided among its
    steps by their wait for messages, ``waited`` of the mean.
    """
    use = thread_use(one.launch, states, one.profile)
    delay = waited * use.message_delay
    use = replace(use, others_share=one.others_share, message_delay=delay)
    parts = parts_of(states, roles, use, step_seconds)
    if waits_for_a_device(one.launch):
        parts = parts.plus(compute=parts.blocked, blocked=-parts.blocked)
    if alone is None:
        return parts
    cells, sharded = typical_cells(states, roles), bool(shards(one.launch))
    parts = compared(parts, alone.parts, cells, alone.cells, shared, sharded)
    # Threads of the process that spin while they wait for one without a core take CPU time.
    spun = min(parts.memory, max(0.0, use.compute_delay - alone.threads.compute_delay))
    parts = parts.plus(memory=-spun, contention=spun)
    if not states.knows_states:
        parts = _limited_by_cpu_time(parts, one, roles, alone)
    return parts


def _limited_by_cpu_time(
    parts: StepParts, one: MeasuredConfiguration, roles: Roles, alone: "EstimatedStep"
) -> StepParts:
    """Contention for memory must show in CPU time; without that evidence it is unattributed."""
    cpu = [one.cpu_seconds[rank] for rank in roles.typical if rank in one.cpu_seconds]
    grown = 0.0
    if cpu and alone.cpu_seconds:
        grown = math.fsum(cpu) / len(cpu) - alone.cpu_seconds
    over = parts.memory - max(0.0, min(parts.memory, grown))
    return parts.plus(memory=-over, unattributed=over)


def message_wait_seconds(cells: Mapping[Cell, float]) -> float:
    """Seconds of waiting for messages, runnable or not."""
    return total(cells, MESSAGES, ThreadState.BLOCKED, ThreadState.RUNNING, ThreadState.UNKNOWN)


def mean_states(every: Sequence[StateProfile]) -> StateProfile:
    """Means over launches; stalls and drift are those of the launch with the longest."""
    first = every[0]
    if len(every) == 1:
        return first
    stalls = [one.stalls for one in every if one.stalls is not None]
    longest = max(stalls, key=lambda one: one.mean_seconds, default=None)
    drifts = [one.drift for one in every if one.drift is not None]
    lines: dict[str, str] = {}
    for one in every:
        lines = {**one.lines, **lines}
    return StateProfile(
        sum(one.steps for one in every),
        math.fsum(one.step_seconds for one in every) / len(every),
        mean_cells([one.critical for one in every]),
        tuple(
            RankStates(
                same[0].rank,
                mean_cells([own.cells for own in same]),
                math.fsum(own.last_share for own in same) / len(same),
                math.fsum(own.deviation_seconds for own in same) / len(same),
            )
            for same in zip(*(one.ranks for one in every), strict=True)
        ),
        (),
        _mean_stalls(longest, stalls, len(every)),
        max(drifts, key=lambda one: one.seconds, default=None)
        if 2 * len(drifts) > len(every)
        else None,
        math.fsum(one.collection_seconds for one in every) / len(every),
        lines,
        mean_cells([one.common for one in every]),
    )


def _mean_stalls(longest: Stalls | None, stalls: Sequence[Stalls], launches: int) -> Stalls | None:
    if longest is None or 2 * len(stalls) <= launches:
        return None
    mean = math.fsum(one.each_seconds for one in stalls) / len(stalls)
    return replace(longest, each_seconds=mean)


def _mean_parts(every: Sequence[StepParts]) -> StepParts:
    return StepParts(
        **{name: math.fsum(getattr(one, name) for one in every) / len(every) for name in NAMES}
    )


def _widths(every: Sequence[StepParts], alone: EstimatedStep | None) -> StepParts:
    """Half the interval of each part; what is a difference has the error of one process too."""
    widths = {}
    for name in NAMES:
        own = estimate([float(getattr(one, name)) for one in every]) if len(every) > 1 else None
        before = None
        if alone is not None and name in ("compute", "memory", "handling", "unattributed"):
            values = [one.compute for one in alone.samples]
            before = estimate(values) if len(values) > 1 else None
        known = [one for one in (own, before) if one is not None]
        widths[name] = half_width(known)
    return StepParts(**widths)


def _stalls_width(stalls: Stalls) -> float:
    """Half the interval of the mean time of stalls, from their lengths."""
    if stalls.deviation_seconds is None:
        return math.nan
    error = stalls.deviation_seconds / math.sqrt(stalls.count)
    return student_t(stalls.count - 1) * error * stalls.count / stalls.steps


def half_width(estimates: Sequence[Estimate]) -> float:
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
