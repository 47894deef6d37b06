"""Builds the `StateProfile` of a launch from the steps of its ranks.

Ranks synchronise when their training threads wait for messages. A step is cut at these moments; in
each piece the rank that arrives last decides how long all ranks take, so its cells count.
"""

import math
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.step.stalls import find_drift, find_stalls
from paceline.step.state_profile import (
    COMMUNICATE,
    HOST,
    INPUT,
    MESSAGES,
    SYNCHRONISING,
    Batch,
    Cell,
    Cells,
    RankStates,
    StateProfile,
    ThreadState,
    mean_cells,
    total,
    work_seconds,
)

BATCHES = 10
MOST_BATCHED_RANKS = 16
STALL, DRIFT = "stall", "drift"
RUNNABLE = ThreadState.RUNNABLE

Mark = tuple[float, float, float]
"""A moment, and seconds on a core and seconds runnable of the thread since the first mark."""
Sample = tuple[float, bool, str, bool]
"""A moment, whether the thread was blocked, the line that it executed, whether it loads input."""


@dataclass(frozen=True)
class RankStep:
    """One step of one rank: ``intervals`` are (activity, start, end), disjoint and in order.

    Times count from ``begun``, a reading of a clock that the ranks of a host share (None if they
    share none). ``in_flight`` are the intervals with a message in flight.
    """

    seconds: float
    intervals: Sequence[tuple[str, float, float]]
    marks: Sequence[Mark] = ()
    begun: float | None = None
    in_flight: Sequence[tuple[float, float]] = ()
    collection_seconds: float = 0.0
    samples: Sequence[Sample] = field(default=())


def profile_states(steps: Sequence[dict[int, RankStep]]) -> StateProfile | None:
    """Means over steps, each given by rank; None without steps."""
    if not steps:
        return None
    ranks = sorted(steps[0])
    loading = {rank: _loading_shares([step[rank] for step in steps]) for rank in ranks}
    cells: list[dict[int, Cells]] = [
        {rank: cells_between(step[rank], 0.0, step[rank].seconds, loading[rank]) for rank in ranks}
        for step in steps
    ]
    critical, last = _critical_path(steps, cells, loading)
    critical = _over_the_longest_rank(critical, steps)
    collection = statistics.fmean(
        max(own.collection_seconds for own in step.values()) for step in steps
    )
    stalls, critical, kept = find_stalls(critical, cells, last, steps)
    drift, critical, cells = find_drift(critical, cells, kept)
    size = max(1, math.ceil(len(critical) / BATCHES))
    batches = [range(i, i + size) for i in range(0, len(critical) - size + 1, size)]
    counted = set(kept)

    def means(
        indices: Iterable[int],
    ) -> tuple[dict[Cell, float], tuple[RankStates, ...], dict[Cell, float]]:
        used = list(indices)
        # The ranks of a stalled step are not typical.
        usual = [index for index in used if index in counted] or used
        of_ranks = tuple(
            RankStates(
                rank,
                mean_cells([cells[index][rank] for index in usual]),
                [last[index] for index in used].count(rank) / len(used),
                statistics.pstdev(work_seconds(cells[index][rank]) for index in usual),
            )
            for rank in ranks
        )
        common = mean_cells([_common_waits(cells[index]) for index in usual])
        return mean_cells([critical[index] for index in used]), of_ranks, common

    mean, of_ranks, common = means(range(len(critical)))
    few = len(ranks) <= MOST_BATCHED_RANKS and len(batches) > 1
    return StateProfile(
        len(steps),
        math.fsum(mean.values()),
        mean,
        of_ranks,
        tuple(Batch(*means(batch)) for batch in batches) if few else (),
        stalls,
        drift,
        collection,
        _lines(steps, kept),
        common,
    )


def _common_waits(cells: dict[int, Cells]) -> dict[Cell, float]:
    """Seconds in which every rank of a step is blocked, outside messages."""
    first, *others = cells.values()
    return {
        cell: min(seconds, *(own.get(cell, 0.0) for own in others)) if others else seconds
        for cell, seconds in first.items()
        if cell.state is ThreadState.BLOCKED and cell.activity not in MESSAGES
    }


def _loading_shares(steps: Sequence[RankStep]) -> dict[Cell, float]:
    """Share of host work and waits that loads input, by the samples of the thread.

    Each step has the same weight: a stalled one has many samples, and is not typical.
    """
    shares: dict[Cell, list[float]] = {}
    for step in steps:
        seen: dict[Cell, list[bool]] = {}
        for moment, blocked, _, loads in step.samples:
            if activity_at(step, moment) == HOST:
                seen.setdefault(_host_cell(blocked), []).append(loads)
        for cell, own in seen.items():
            shares.setdefault(cell, []).append(statistics.fmean(own))
    return {cell: statistics.fmean(own) for cell, own in shares.items() if any(own)}


def _host_cell(blocked: bool) -> Cell:
    return Cell(HOST, ThreadState.BLOCKED if blocked else ThreadState.RUNNING)


def cells_between(
    step: RankStep, start: float, end: float, loading: Mapping[Cell, float] | None = None
) -> dict[Cell, float]:
    """Cells of a part of a step; ``loading`` is the share of a cell that is input."""
    found: dict[Cell, float] = {}
    for activity, begin, stop in step.intervals:
        if stop > start and begin < end:
            own = _states(step, activity, max(begin, start), min(stop, end))
            for cell, seconds in own.items():
                found[cell] = found.get(cell, 0.0) + seconds
    for cell, share in (loading or {}).items():
        moved = share * found.get(cell, 0.0)
        if moved > 0:
            found[cell] -= moved
            loads = Cell(INPUT, cell.state)
            found[loads] = found.get(loads, 0.0) + moved
    return found


def _states(step: RankStep, activity: str, start: float, end: float) -> dict[Cell, float]:
    """Seconds by state of an interval; blocked with a message in flight is waiting for it."""
    times = [_at(step.marks, moment) for moment in (start, end)]
    if times[0] is None or times[1] is None:
        return {Cell(activity, ThreadState.UNKNOWN): end - start}
    (running_before, waited_before), (running_after, waited_after) = times[0], times[1]
    length = end - start
    running = min(length, max(0.0, running_after - running_before))
    waited = min(length - running, max(0.0, waited_after - waited_before))
    blocked = length - running - waited
    cells = {
        Cell(activity, ThreadState.RUNNING): running,
        Cell(activity, ThreadState.RUNNABLE): waited,
    }
    if activity in ("forward", "update", HOST) and step.in_flight:
        flying = math.fsum(
            max(0.0, min(end, stop) - max(start, begin)) for begin, stop in step.in_flight
        )
        cells[Cell(COMMUNICATE, ThreadState.BLOCKED)] = min(blocked, flying)
        blocked -= min(blocked, flying)
    cells[Cell(activity, ThreadState.BLOCKED)] = blocked
    return cells


def _at(marks: Sequence[Mark], moment: float) -> tuple[float, float] | None:
    """Times of the thread at a moment, interpolated between marks; None without marks."""
    if len(marks) < 2:
        return None
    after = min(max(1, bisect_right(marks, (moment, math.inf, math.inf))), len(marks) - 1)
    (begin, running, waited), (end, running_end, waited_end) = marks[after - 1], marks[after]
    share = 0.0 if end <= begin else min(1.0, max(0.0, (moment - begin) / (end - begin)))
    return running + share * (running_end - running), waited + share * (waited_end - waited)


def _critical_path(
    steps: Sequence[dict[int, RankStep]],
    cells: Sequence[dict[int, Cells]],
    loading: Mapping[int, Mapping[Cell, float]],
) -> tuple[list[Cells], list[int]]:
    """Cells along the critical path of each step, and the rank that worked longest in it.

    Between two synchronisations the path is on the rank that arrives last at the second one. What
    follows the last synchronisation of a step delays the first one of the next step. Beside other
    programs, the last rank to arrive is often one without a core, which is not slow itself.
    """
    paths = [_synchronisations(step) for step in steps]
    critical: list[Cells] = []
    last: list[int] = []
    for index, (step, path) in enumerate(zip(steps, paths, strict=True)):
        last.append(max(step, key=lambda rank: work_seconds(cells[index][rank])))
        if not path:
            rank = min(step, key=lambda rank: total(cells[index][rank], MESSAGES))
            critical.append(cells[index][rank])
            continue
        following = paths[index + 1] if index + 1 < len(paths) else []
        tail = (following or path)[0][0]
        pieces = []
        before: dict[int, float] = dict.fromkeys(step, 0.0)
        for rank, ends in path:
            pieces.append(cells_between(step[rank], before[rank], ends[rank], loading[rank]))
            before = ends
        pieces.append(cells_between(step[tail], before[tail], step[tail].seconds, loading[tail]))
        critical.append(_sum(pieces))
    return critical, last


def _over_the_longest_rank(
    critical: list[Cells], steps: Sequence[dict[int, RankStep]]
) -> list[Cells]:
    """The path, as long as the steps of the rank that took longest.

    Ranks begin and end the counted steps at different moments, since they wait for a core after a
    synchronisation for different times; they work equally long there.
    """
    longest = max(math.fsum(step[rank].seconds for step in steps) for rank in steps[0])
    more = longest - math.fsum(s for own in critical for s in own.values())
    late = math.fsum(s for own in critical for c, s in own.items() if c.state is RUNNABLE)
    if late <= abs(more):
        return critical
    return [
        {c: s * (1.0 + more / late) if c.state is RUNNABLE else s for c, s in own.items()}
        for own in critical
    ]


def _synchronisations(step: dict[int, RankStep]) -> list[tuple[int, dict[int, float]]]:
    """For each synchronisation the rank that arrives last, and its end by the time of each rank.

    It ends when the last rank has arrived and the first one may go on: a rank that goes on later
    had no core. Without a common clock it ends on each rank where that rank goes on, and the rank
    that waits least came last. Empty if the ranks' synchronisations cannot be matched.
    """
    waits = {
        rank: [(start, end) for name, start, end in own.intervals if name in SYNCHRONISING]
        for rank, own in step.items()
    }
    counts = {len(own) for own in waits.values()}
    if len(step) == 1 or len(counts) > 1 or counts == {0}:
        return []
    begun = {rank: own.begun for rank, own in step.items()}
    found = []
    for number in range(counts.pop()):
        own = {rank: waits[rank][number] for rank in step}
        if any(value is None for value in begun.values()):
            rank = min(own, key=lambda r: own[r][1] - own[r][0])
            found.append((rank, {r: end for r, (_, end) in own.items()}))
            continue
        zero = {r: value or 0.0 for r, value in begun.items()}
        rank = max(own, key=lambda r: zero[r] + own[r][0])
        arrival = zero[rank] + own[rank][0]
        done = max(arrival, min(zero[r] + end for r, (_, end) in own.items()))
        found.append((rank, {r: done - zero[r] for r in own}))
    return found


def _sum(every: Iterable[Cells]) -> dict[Cell, float]:
    found: dict[Cell, float] = {}
    for one in every:
        for cell, seconds in one.items():
            found[cell] = found.get(cell, 0.0) + seconds
    return found


def _lines(steps: Sequence[dict[int, RankStep]], kept: Sequence[int]) -> dict[str, str]:
    """Most frequent line of the script by activity and state, over steps without stalls."""
    counts: dict[str, Counter[str]] = {}
    for index in kept:
        for own in steps[index].values():
            for moment, blocked, line, loads in own.samples:
                activity = activity_at(own, moment)
                activity = INPUT if loads and activity == HOST else activity
                if activity and line:
                    state = ThreadState.BLOCKED if blocked else ThreadState.RUNNING
                    counts.setdefault(str(Cell(activity, state)), Counter())[line] += 1
    return {cell: count.most_common(1)[0][0] for cell, count in counts.items()}


def activity_at(step: RankStep, moment: float) -> str:
    """The activity at a moment; empty outside all intervals."""
    for activity, start, end in step.intervals:
        if start <= moment < end:
            return activity
    return ""
