"""Rare long steps (checkpoint, evaluation, logging) and growth of the step over a launch."""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.step.state_profile import MESSAGES, Cell, Cells, Drift, Stalls, ThreadState

if TYPE_CHECKING:
    from paceline.step.critical_states import RankStep

LONG = 0.2
"""A step stalls if it works longer than the median by more than this fraction of a step ..."""
DEVIATIONS = 8.0
"""... and by more than this number of median absolute deviations."""
RARE = 0.26
"""Largest fraction of steps that may stall: if more do, the time is part of normal steps."""
FEWEST_STEPS = 12
REGULAR = 0.3
"""Largest deviation of the steps between stalls from a multiple of their period."""
KINDS = ("checkpoint", "evaluation")
GROWTH = 0.1
"""Smallest growth over a launch that counts as drift, as a fraction of the step."""
_NAMES = {
    "checkpoint": ("save", "checkpoint", "dump", "fsync"),
    "evaluation": ("eval", "validat", "test_"),
    "logging": ("log", "print", "write", "flush", "add_scalar", "report"),
    "garbage collection": ("gc.", "collect"),
}


def find_stalls(
    critical: Sequence[Cells],
    cells: Sequence[Mapping[int, Cells]],
    last: Sequence[int],
    steps: "Sequence[Mapping[int, RankStep]]",
) -> tuple[Stalls | None, list[Cells], list[int]]:
    """Stalls, the steps with their excess in a cell of its own, and the indices of the others."""
    everything = list(range(len(critical)))
    works = [_host_work(step) for step in critical]
    if len(works) < FEWEST_STEPS:
        return None, list(critical), everything
    median = statistics.median(works)
    deviation = statistics.median(abs(work - median) for work in works)
    step = statistics.median(map(_wanted_seconds, critical))
    least = max(LONG * step, DEVIATIONS * deviation)
    long = [index for index, work in enumerate(works) if work - median > least]
    named = any(cell.activity in KINDS for index in long for cell in critical[index])
    if not (1 if named else 2) <= len(long) <= RARE * len(works):
        return None, list(critical), everything
    kept = [index for index in everything if index not in set(long)]
    usual = {
        cell: statistics.fmean(critical[index].get(cell, 0.0) for index in kept)
        for cell in dict.fromkeys(c for step in critical for c in step)
    }
    excess = {
        index: {
            cell: max(0.0, critical[index].get(cell, 0.0) - seconds)
            for cell, seconds in usual.items()
            if _is_host_work(cell)
        }
        for index in long
    }
    separated = list(critical)
    for index in long:
        left = {c: s - excess[index].get(c, 0.0) for c, s in critical[index].items()}
        separated[index] = {**left, Cell("stall", ThreadState.RUNNING): _seconds(excess[index])}
    between = [after - before for before, after in itertools.pairwise(long)]
    kind, line = _kind(long, excess, last, steps)
    sums = Counter[Cell]()
    for own in excess.values():
        sums.update(own)
    everything_longer = math.fsum(sums.values())
    return (
        Stalls(
            len(long),
            len(works),
            _period(between, len(works)),
            everything_longer / len(long),
            Counter(last[index] for index in long).most_common(1)[0][0],
            kind,
            line,
            math.fsum(s for c, s in sums.items() if c.state is ThreadState.BLOCKED)
            / max(everything_longer, 1e-12),
            statistics.stdev(map(_seconds, excess.values())) if len(long) > 1 else None,
        ),
        separated,
        kept,
    )


def _period(between: Sequence[int], steps: int) -> float:
    """Steps from one stall to the next: their period, or the mean distance if they have none.

    Stalls have a period if they are equally far apart (or one was not seen) in all of the launch.
    """
    mean = steps / (len(between) + 1)
    if not between:
        return mean
    period = float(statistics.median(between))
    regular = all(abs(own / period - round(own / period)) < REGULAR for own in between)
    return period if regular and period > 0.5 * mean else mean


def _kind(
    long: Sequence[int],
    excess: Mapping[int, Cells],
    last: Sequence[int],
    steps: "Sequence[Mapping[int, RankStep]]",
) -> tuple[str, str]:
    """What the host does in stalled steps, and the line sampled most often meanwhile."""
    from paceline.step.critical_states import activity_at

    sums = Counter[str]()
    for own in excess.values():
        for cell, seconds in own.items():
            sums[cell.activity] += seconds  # type: ignore[assignment]
    activity = sums.most_common(1)[0][0]
    lines = Counter(
        line
        for index in long
        for moment, _, line, _ in steps[index][last[index]].samples
        if activity_at(steps[index][last[index]], moment) == activity and line
    )
    line = lines.most_common(1)[0][0] if lines else ""
    if activity in KINDS:
        return activity, line
    collected = [max(own.collection_seconds for own in steps[index].values()) for index in long]
    if statistics.fmean(collected) > 0.5 * statistics.fmean(map(_seconds, excess.values())):
        return "garbage collection", line
    text = line.lower()
    for kind, names in _NAMES.items():
        if any(name in text for name in names):
            return kind, line
    return "", line


def find_drift(
    critical: list[Cells], cells: list[dict[int, Cells]], kept: Sequence[int]
) -> tuple[Drift | None, list[Cells], list[dict[int, Cells]]]:
    """Growth of the step without stalls; its excess over the first steps becomes a cell."""
    works = [_work(critical[index]) for index in kept]
    if len(works) < FEWEST_STEPS:
        return None, critical, cells
    line = statistics.linear_regression(kept, works)
    fitted = [line.intercept + line.slope * index for index in kept]
    residuals = statistics.pstdev(w - f for w, f in zip(works, fitted, strict=True))
    spread = statistics.pstdev(kept)
    growth = line.slope * (kept[-1] - kept[0])
    error = residuals / (spread * math.sqrt(len(kept)))
    step = statistics.fmean(_wanted_seconds(critical[index]) for index in kept)
    quarters = [works[i * len(works) // 4 : (i + 1) * len(works) // 4] for i in range(4)]
    levels = [statistics.median(own) for own in quarters]
    steady = levels == sorted(levels)
    if not steady or abs(growth) < GROWTH * step or line.slope < 5.0 * error:
        return None, critical, cells
    slopes = {
        cell: slope
        for cell in dict.fromkeys(c for index in kept for c in critical[index])
        if cell.activity not in MESSAGES and cell.state is not ThreadState.RUNNABLE
        if (slope := _growth(kept, [critical[index].get(cell, 0.0) for index in kept])) > 0
    }
    if not slopes:
        return None, critical, cells
    first = kept[0]

    def without(own: Cells, index: int) -> dict[Cell, float]:
        return {
            cell: seconds - max(0.0, min(seconds, slopes.get(cell, 0.0) * (index - first)))
            for cell, seconds in own.items()
        }

    straight: list[Cells] = []
    level: list[dict[int, Cells]] = []
    for index, own in enumerate(critical):
        left = without(own, index)
        straight.append(
            {**left, Cell("drift", ThreadState.RUNNING): _seconds(own) - _seconds(left)}
        )
        level.append({rank: without(cell, index) for rank, cell in cells[index].items()})
    excess = statistics.fmean(own[Cell("drift", ThreadState.RUNNING)] for own in straight)
    base = statistics.fmean(_seconds(own) for own in straight) - excess
    more = math.fsum(slopes.values()) * (kept[-1] - first)
    largest = max(slopes, key=lambda cell: slopes[cell])
    return Drift(base, base + more, excess, str(largest)), straight, level


def _growth(indices: Sequence[int], values: Sequence[float]) -> float:
    """Slope of values over steps; 0 if it is not positive beyond three standard errors."""
    line = statistics.linear_regression(indices, values)
    fitted = (line.intercept + line.slope * index for index in indices)
    residuals = math.sqrt(
        statistics.fmean((v - f) ** 2 for v, f in zip(values, fitted, strict=True))
    )
    error = residuals / (statistics.pstdev(indices) * math.sqrt(len(indices)))
    return line.slope if line.slope > 3.0 * error else 0.0


def _is_host_work(cell: Cell) -> bool:
    """Whether a stall can be in a cell: layers only stall by waiting, since computing varies."""
    if cell.activity in MESSAGES or cell.state is ThreadState.RUNNABLE:
        return False
    return cell.state is ThreadState.BLOCKED or cell.activity not in (
        "forward",
        "backward",
        "update",
    )


def _host_work(cells: Cells) -> float:
    return math.fsum(seconds for cell, seconds in cells.items() if _is_host_work(cell))


def _work(cells: Cells) -> float:
    return math.fsum(
        seconds
        for cell, seconds in cells.items()
        if cell.activity not in MESSAGES and cell.state is not ThreadState.RUNNABLE
    )


def _wanted_seconds(cells: Cells) -> float:
    """Time of a step with a core: other programs make a stall no less of one."""
    return math.fsum(s for cell, s in cells.items() if cell.state is not ThreadState.RUNNABLE)


def _seconds(cells: Cells) -> float:
    return math.fsum(cells.values())
