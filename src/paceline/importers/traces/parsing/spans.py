"""Time spans on lanes, and their conversion to a measured `Step`."""

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
    """A task that ran from ``start`` to ``end`` (seconds) on one resource."""

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
        """Duration."""
        return self.end - self.start


def outermost(spans: Iterable[Span]) -> list[Span]:
    """Spans outside all others, in order; partial overlaps are trimmed."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if kept and span.start < kept[-1].end:
            if span.end <= kept[-1].end:
                continue
            span = replace(span, start=kept[-1].end)
        kept.append(span)
    return kept


def separate_lanes(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, with concurrent spans moved to lanes of their own.

    The first lane keeps its name, the next are ``<name> 2``, ``<name> 3``: a lane runs one span
    at a time.
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
    """Rounding error of a time: seconds since 1970 leave few decimals in a double."""
    return max(1e-9, 4 * math.ulp(moment))


def host_gaps(
    compute: Sequence[Span], busy: Sequence[Span], start: float, end: float
) -> list[Span]:
    """Gaps between ``compute`` spans while no ``busy`` span runs, as host time.

    On a CPU the interpreter's time between two operations is work; while a message is in flight
    the gap stays open, since the host waits for the message.
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
    """Parts of an interval outside ``holes``, which are disjoint and sorted."""
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
    """Build one step; each rank's time starts at zero, since clocks of hosts differ.

    ``begins`` is the start of each rank's step; default: the start of its first span.
    """
    tasks: list[Task] = []
    starts: list[float] = []
    for rank in sorted(ranks):
        spans = separate_lanes(ranks[rank])
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
