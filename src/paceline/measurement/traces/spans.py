"""Spans of time on lanes, and how they become a measured `Step`."""

import math
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from paceline.step import Origin, Phase, Step, Task
from paceline.step.breakdown import merge

MOST_SPANS = 500_000
MOST_TASKS = 200_000
MOST_LANES = 64


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took from ``start`` to ``end`` (seconds) on one resource."""

    name: str
    phase: Phase
    resource: str
    start: float
    end: float
    layer: str = ""
    size_bytes: float = 0.0
    group: str = ""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def outermost(spans: Iterable[Span]) -> list[Span]:
    """Spans that lie in no other, in order; one that begins inside another is shortened."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if kept and span.start < kept[-1].end:
            if span.end <= kept[-1].end:
                continue
            span = replace(span, start=kept[-1].end)
        kept.append(span)
    return kept


def side_by_side(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that run at the same time moved to lanes of their own.

    The first lane keeps its name, the next are ``<name> 2``, ``<name> 3``: a lane does one
    thing at a time.
    """
    lanes: dict[str, list[float]] = {}
    placed: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        ends = lanes.setdefault(span.resource, [])
        free = span.start + _rounding(span.start)
        number = next((n for n, end in enumerate(ends) if end <= free), len(ends))
        number = min(number, MOST_LANES - 1)
        if number == len(ends):
            ends.append(span.end)
        else:
            ends[number] = span.end
        name = span.resource if number == 0 else f"{span.resource} {number + 1}"
        placed.append(span if number == 0 else replace(span, resource=name))
    return placed


def _rounding(moment: float) -> float:
    """How far apart two equal moments may seem: clocks since 1970 leave little after the point."""
    return max(1e-9, 4 * math.ulp(moment))


def host_gaps(
    compute: Sequence[Span], busy: Sequence[Span], start: float, end: float
) -> list[Span]:
    """What lies between ``compute`` spans while no ``busy`` span runs: the host's own time.

    On a CPU the interpreter's time between two operations is work; where a message is under
    way instead, the gap is left open, since the host waits for it.
    """
    gaps: list[Span] = []
    edges = [*((span.start, span.end) for span in compute), (end, end)]
    reached = start
    waits = merge([(span.start, span.end) for span in busy])
    for begin, stop in edges:
        if begin > reached:
            gaps.extend(
                Span("host", Phase.OTHER, "compute", free_start, free_end)
                for free_start, free_end in subtract(reached, begin, waits)
            )
        reached = max(reached, stop)
    return gaps


def subtract(
    start: float, end: float, holes: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The parts of an interval outside of ``holes``, which are disjoint and in order."""
    parts: list[tuple[float, float]] = []
    first = max(0, bisect(holes, (start, start)) - 1)
    for hole_start, hole_end in islice(holes, first, None):
        if hole_start >= end:
            break
        if hole_end <= start:
            continue
        if hole_start > start:
            parts.append((start, hole_start))
        start = max(start, hole_end)
    if start < end:
        parts.append((start, end))
    return parts


def measured_step(
    ranks: Mapping[int, Sequence[Span]],
    label: str = "",
    begins: Mapping[int, float] | None = None,
    metadata: Mapping[str, str | float] | None = None,
) -> Step:
    """One step of every rank, each from its own beginning, since clocks of hosts differ.

    ``begins`` says when each rank's step began; without it, its first span does.
    """
    tasks: list[Task] = []
    starts: list[float] = []
    for rank in sorted(ranks):
        spans = side_by_side(ranks[rank])
        first = min((span.start for span in spans), default=0.0)
        begin = first if begins is None else min(first, begins.get(rank, first))
        for span in spans[:MOST_TASKS]:
            tasks.append(
                Task(
                    span.name,
                    span.phase,
                    span.resource,
                    span.seconds,
                    rank=rank,
                    layer=span.layer,
                    size_bytes=span.size_bytes,
                    group=span.group,
                )
            )
            starts.append(span.start - begin)
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED, label, dict(metadata or {}))
