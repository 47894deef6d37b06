"""CNTK's detailed profile: Chrome JSON, or CSV in older versions."""

import re
from pathlib import Path

from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.printed_numbers import finite
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.regions import Region, RegionPairing, region_trace
from paceline.importers.traces.parsing.spans import MOST_SPANS
from paceline.importers.traces.parsing.trace_events import ChromeTrace
from paceline.step import Phase

MILLISECOND = 1e-3

_ROW = re.compile(r'^"([^"]{1,200})",(\d+),([-+.\deE]{1,40}),([-+.\deE]{1,40})\s*$')
_PHASES = {
    "Get Minibatch": Phase.INPUT,
    "Forward + Backward": Phase.OTHER,
    "Gradient Aggregation": Phase.COMMUNICATE,
    "Weight Update": Phase.UPDATE,
    "Post Processing": Phase.OTHER,
}


def read_cntk_profile(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps of one rank, one per minibatch; CNTK times forward and backward together."""
    if path.suffix.lower() == ".csv":
        regions, unread = _csv_regions(path)
        return region_trace("cntk", regions, rank, _phase, unread)
    trace, pairing = ChromeTrace(path), RegionPairing()
    for event in trace:
        event.name = event.name.lstrip("_")
        pairing.add(event)
    return region_trace(
        "cntk", pairing.regions, rank, _phase, trace.unread + pairing.unread, pairing.unclosed
    )


def _phase(region: Region) -> Phase | None:
    return _PHASES.get(region.name)


def _csv_regions(path: Path) -> tuple[list[Region], int]:
    regions: list[Region] = []
    unread = 0
    for line in read_lines(path):
        match = _ROW.match(line.text)
        start = finite(match[3]) if match else None
        end = finite(match[4]) if match else None
        if match is None or start is None or end is None or end < start:
            unread += not line.text.startswith("EventDescription")
        elif len(regions) < MOST_SPANS:
            name = match[1].lstrip("_")
            regions.append(Region(name, match[2], start * MILLISECOND, end * MILLISECOND))
    return regions, unread
