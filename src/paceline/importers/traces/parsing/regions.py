"""Steps from named regions (Chrome B/E/X events, OTF2 enter/leave).

Shared by all traces that have region names but no step or phase structure.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.phase_names import STEP_NAME, lane_of, phase_of
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, measured_step, outermost
from paceline.importers.traces.parsing.trace_events import ChromeEvent
from paceline.step import Phase

MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Region:
    """A named time interval on one thread, in seconds."""

    name: str
    thread: str
    start: float
    end: float
    category: str = ""
    size_bytes: float = 0.0


Classify = Callable[[Region], Phase | None]


class RegionPairing:
    """Pairs begin and end events per thread; an end closes the innermost open region."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.unread = 0
        self._open: dict[str, list[tuple[str, str, float]]] = {}

    def add(self, event: ChromeEvent) -> None:
        """Process one event; events without duration are ignored."""
        thread = f"{event.process}/{event.thread}"
        if event.phase == "X":
            self._keep(
                event.name, thread, event.start, event.start + event.duration, event.category
            )
        elif event.phase == "B":
            stack = self._open.setdefault(thread, [])
            if len(stack) < 1000:
                stack.append((event.name, event.category, event.start))
        elif event.phase == "E":
            stack = self._open.get(thread, [])
            if not stack:
                self.unread += 1
                return
            name, category, start = stack.pop()
            self._keep(name, thread, start, event.start, category)

    @property
    def unclosed(self) -> int:
        """Number of regions without an end (truncated trace)."""
        return sum(len(stack) for stack in self._open.values())

    def _keep(self, name: str, thread: str, start: float, end: float, category: str) -> None:
        if end < start or len(self.regions) >= MOST_SPANS:
            self.unread += 1
            return
        self.regions.append(Region(name, thread, start * MICROSECOND, end * MICROSECOND, category))


def named_phase(region: Region) -> Phase | None:
    """The phase of a region by category, else by name; None if neither matches."""
    try:
        return Phase(region.category)
    except ValueError:
        return phase_of(region.name)


def region_trace(
    program: str,
    regions: Sequence[Region],
    rank: int,
    classify: Classify = named_phase,
    unread: int = 0,
    unclosed: int = 0,
) -> ParsedTrace:
    """Steps of one rank from its regions; ``classify`` returns the phase of each, or None."""
    spans = spans_of(regions, classify)
    windows = step_windows(regions, spans)
    steps = [
        measured_step({rank: part}, f"step {number}", begins={rank: start})
        for number, ((start, _), part) in enumerate(
            zip(windows, cut_by_windows(spans, windows), strict=True)
        )
        if part
    ]
    warnings = [f"truncated; open regions at the end: {unclosed}"] if unclosed else []
    if regions and not spans:
        warnings.append("no region name matches a phase of training")
    return ParsedTrace(program, tuple(steps), None, unread, tuple(warnings))


def spans_of(regions: Iterable[Region], classify: Classify = named_phase) -> list[Span]:
    """Spans of the regions that belong to a phase; only the outermost per lane."""
    by_lane: dict[tuple[str, str], list[Span]] = {}
    for region in regions:
        phase = None if STEP_NAME.match(region.name) else classify(region)
        if phase is None:
            continue
        span = Span(
            region.name.lstrip("_"),
            phase,
            lane_of(phase),
            region.start,
            region.end,
            size_bytes=region.size_bytes,
        )
        by_lane.setdefault((region.thread, span.resource), []).append(span)
    return [span for spans in by_lane.values() for span in outermost(spans)]


def step_windows(regions: Sequence[Region], spans: Sequence[Span]) -> list[tuple[float, float]]:
    """Start and end of each step: by step regions, else from update to update."""
    named = sorted((r.start, r.end) for r in regions if STEP_NAME.match(r.name))
    if named:
        return named
    if not spans:
        return []
    first = min(span.start for span in spans)
    last = max(span.end for span in spans)
    edges = [first, *_step_ends(spans)]
    if last > edges[-1]:
        edges.append(last)
    return [(start, end) for start, end in pairwise(edges) if end > start]


def _step_ends(spans: Sequence[Span]) -> list[float]:
    """Ends of update phases that are followed by forward, input or copy."""
    ends: list[float] = []
    updated: float | None = None
    for span in sorted(spans, key=lambda span: span.start):
        if span.phase is Phase.UPDATE:
            updated = max(updated or span.end, span.end)
        elif updated is not None and span.phase in (Phase.FORWARD, Phase.INPUT, Phase.COPY):
            ends.append(min(updated, span.start) if updated > span.start else updated)
            updated = None
    return ends


def cut_by_windows(
    spans: Sequence[Span], windows: Sequence[tuple[float, float]]
) -> list[list[Span]]:
    """Spans of each window, by their start."""
    ordered = sorted(spans, key=lambda span: span.start)
    parts: list[list[Span]] = []
    position = 0
    for start, end in windows:
        while position < len(ordered) and ordered[position].start < start:
            position += 1
        begin = position
        while position < len(ordered) and ordered[position].start < end:
            position += 1
        parts.append(ordered[begin:position])
    return parts
