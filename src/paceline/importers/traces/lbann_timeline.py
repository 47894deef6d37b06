"""LBANN's timeline callback: one text file per rank, ``timeline.m{trainer}.{rank}.txt``."""

import re
from pathlib import Path

from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.printed_numbers import finite
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, measured_step
from paceline.step import Phase

_LINE = re.compile(r"^(fp|bp|opt)-(.{1,200}):([-+.\deE]{1,40}):([-+.\deE]{1,40})$")
_FILE = re.compile(r"timeline\.m(\d{1,6})\.(\d{1,6})\.txt$")
_PHASES = {"fp": Phase.FORWARD, "bp": Phase.BACKWARD, "opt": Phase.UPDATE}


def lbann_rank(path: Path) -> int | None:
    """Rank in the name of a timeline file; None for other files."""
    match = _FILE.search(path.name)
    return int(match[2]) if match else None


def read_lbann_timeline(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps of one rank; a forward span after any other span starts a step.

    Layer times include communication: the callback does not record it separately.
    """
    steps: list[list[Span]] = []
    unread = kept = 0
    previous: Phase | None = None
    for line in read_lines(path):
        span = _span(line.text)
        if span is None:
            unread += bool(line.text)
            continue
        if not steps or (span.phase is Phase.FORWARD and previous is not Phase.FORWARD):
            steps.append([])
        previous = span.phase
        if kept < MOST_SPANS:
            steps[-1].append(span)
            kept += 1
    measured = tuple(
        measured_step({rank: spans}, f"step {number}")
        for number, spans in enumerate(steps)
        if spans
    )
    return ParsedTrace("lbann", measured, None, unread)


def _span(text: str) -> Span | None:
    match = _LINE.match(text)
    start = finite(match[3]) if match else None
    end = finite(match[4]) if match else None
    if match is None or start is None or end is None or not start <= end < 1e9:
        return None
    return Span(f"{match[1]}-{match[2]}", _PHASES[match[1]], "compute", start, end, layer=match[2])
