"""Findings about differences between ranks: a straggler, or jitter."""

from collections.abc import Iterator

from paceline.constants import number
from paceline.explanation.finding import Cause, Diagnosis, DiagnosisInput
from paceline.explanation.step_parts import LAYERS
from paceline.step.state_profile import (
    MESSAGES,
    Cell,
    Cells,
    ThreadState,
    total,
    work_seconds,
)
from paceline.units import format_seconds

_LATE = ("stall", "drift", "idle", "jitter", *MESSAGES)


def rank_findings(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """A straggler, and jitter."""
    yield from _straggler(case)
    yield from _jitter(case)


def _straggler(case: DiagnosisInput) -> Iterator[Diagnosis]:
    rank, seconds = case.step.roles.straggler, case.seconds("straggler")
    if rank is None or seconds <= 0:
        return
    own = next(one for one in case.step.states.ranks if one.rank == rank)
    usual = case.step.cells
    excess = {
        cell: value - usual.get(cell, 0.0)
        for cell, value in own.cells.items()
        if cell.activity not in _LATE and cell.state is not ThreadState.RUNNABLE
    }
    by_activity: dict[str, float] = {}
    for cell, value in excess.items():
        by_activity[cell.activity] = by_activity.get(cell.activity, 0.0) + value
    where = max(by_activity, key=lambda activity: by_activity[activity])
    cell = max((c for c in excess if c.activity == where), key=lambda c: excess[c])
    slower = _slower_core(case, rank, own.cells)
    if slower is not None:
        yield Diagnosis(
            Cause.SLOW_CORE,
            seconds,
            seconds,
            f"slow core: rank {rank} needs {slower:.0%} more CPU time for the same work",
            "its inputs are as large as those of the other ranks, and its layers take more CPU "
            "time; another program or virtual machine uses its core, caches or memory",
            "pin the ranks to idle cores of the same kind, or use another machine",
            case.width("straggler", seconds),
            "the core becomes as fast as the others",
        )
        return
    line = case.step.states.lines.get(str(cell), "")
    yield _straggler_finding(case, rank, seconds, where, cell, by_activity[where], line)


def _slower_core(case: DiagnosisInput, rank: int, own: Cells) -> float | None:
    """By how much the core of a rank is slower; None if it may do more work.

    For inputs of equal size, a slow core takes more CPU time in forward and in backward: in
    proportion, or unevenly if other programs use its caches. A rank that needs no more CPU time
    than one process alone does no more work than that.
    """
    elements = case.observed.launch.outcome.facts.get("elements") or ()
    if rank >= len(elements) or not all(elements) or max(elements) > 1.02 * min(elements):
        return None
    usual = case.step.cells

    def running(cells: Cells, *names: str) -> float:
        return total(cells, names, ThreadState.RUNNING)

    longer = running(own, *LAYERS) - running(usual, *LAYERS)
    if longer < 0.7 * case.step.parts.straggler or running(usual, *LAYERS) <= 0:
        return None
    ratios = [
        running(own, name) / max(running(usual, name), 1e-12) - 1.0
        for name in ("forward", "backward")
    ]
    crowded = case.observed.other_cores > number("explain.finding.some_core")
    proportional = min(ratios) > (0.1 if crowded else 0.4) * max(ratios)
    before = case.before.cells if case.before is not None else {}
    as_alone = running(own, *LAYERS) < 1.2 * running(before, *LAYERS)
    return longer / running(usual, *LAYERS) if proportional or as_alone else None


def _straggler_finding(
    case: DiagnosisInput,
    rank: int,
    seconds: float,
    where: str,
    cell: Cell,
    longer: float,
    line: str,
) -> Diagnosis:
    last = next(one.last_share for one in case.step.states.ranks if one.rank == rank)
    why = (
        f"its {where} takes {format_seconds(longer)} longer than on the other ranks, and it "
        f"works longest in {last:.0%} of the steps"
    )
    return Diagnosis(
        Cause.STRAGGLER,
        seconds,
        seconds,
        f"straggler: rank {rank} is slow in {where}, and the other ranks wait for it",
        why + _kind_of_work(case, rank, cell) + (f"; most often at {line}" if line else ""),
        _remedy(case, rank, where),
        case.width("straggler", seconds),
        "the rank becomes as fast as the others",
    )


def _kind_of_work(case: DiagnosisInput, rank: int, cell: Cell) -> str:
    """Whether the straggler has more data, does more work, or waits."""
    for fact, what in (("samples", "samples"), ("elements", "elements of input")):
        values = case.observed.launch.outcome.facts.get(fact) or ()
        others = [value for r, value in enumerate(values) if r != rank]
        if rank < len(values) and others and values[rank] > 1.02 * max(others):
            return f"; it trains on {values[rank]:g} {what} per step instead of {max(others):g}"
    if cell.state is ThreadState.BLOCKED:
        return "; it is blocked there: it sleeps or waits"
    if cell.state is ThreadState.RUNNING:
        return "; it needs more CPU time there: it does more work, or its core is slower"
    cpu = case.observed.cpu_seconds
    others_cpu = [value for r, value in cpu.items() if r != rank]
    if rank not in cpu or not others_cpu:
        return ""
    more = cpu[rank] - max(others_cpu)
    if more > number("explain.finding.more_work") * case.step.parts.straggler:
        return f"; its CPU time is {format_seconds(more)} longer: it does more work"
    return "; its CPU time is not longer: it waits, or its core is slow"


def _remedy(case: DiagnosisInput, rank: int, where: str) -> str:
    facts = case.observed.launch.outcome.facts
    samples = facts.get("samples") or ()
    elements = facts.get("elements") or ()
    if rank < len(samples) and samples[rank] > min(samples):
        return "give all ranks the same number of samples (DistributedSampler, one batch size)"
    if rank < len(elements) and elements[rank] > 1.02 * min(elements):
        return "give all ranks inputs of the same length (bucket by length, pad less)"
    if where == "input":
        return "check the data of that rank"
    return "check the host, device and code of that rank; if none differs, give it less work"


def _jitter(case: DiagnosisInput) -> Iterator[Diagnosis]:
    seconds = case.seconds("jitter")
    least = number("explain.finding.uneven") * case.own_seconds
    if case.observed.other_cores > number("explain.finding.some_core"):
        least *= 2  # other programs slow the work of one rank or the other
    if seconds <= least or not case.step.states.ranks:
        return
    ranks = case.step.states.ranks
    most = max(ranks, key=lambda one: one.last_share)
    yield Diagnosis(
        Cause.JITTER,
        seconds,
        seconds,
        "jitter: the slowest rank changes from step to step",
        f"the last rank of a step works {format_seconds(seconds)} longer than the mean rank "
        f"({format_seconds(work_seconds(case.step.cells))}); most often rank {most.rank} "
        f"({most.last_share:.0%})",
        "check for uneven samples, garbage collection and other programs",
        case.width("jitter", seconds),
        "all ranks work equally long in each step",
    )
