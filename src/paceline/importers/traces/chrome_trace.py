"""Other Chrome traces with phases as categories or names, including Paceline's own export."""

from pathlib import Path

from paceline.importers.traces.parsing.merge_ranks import merge_ranks
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.regions import RegionPairing, region_trace
from paceline.importers.traces.parsing.trace_events import ChromeTrace

MOST_PROCESSES = 10_000


def read_chrome_trace(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps with one rank per process; phases come from event categories, else from names."""
    trace = ChromeTrace(path)
    processes: dict[str, RegionPairing] = {}
    for event in trace:
        if event.process in processes or len(processes) < MOST_PROCESSES:
            processes.setdefault(event.process, RegionPairing()).add(event)
    with_regions = [name for name, pairing in processes.items() if pairing.regions]
    parts = [
        region_trace(
            "chrome",
            processes[name].regions,
            rank + number,
            unread=processes[name].unread,
            unclosed=processes[name].unclosed,
        )
        for number, name in enumerate(sorted(with_regions, key=_natural))
    ]
    merged = merge_ranks(parts) if parts else ParsedTrace("chrome", ())
    return ParsedTrace(
        "chrome", merged.steps, len(parts) or None, merged.unread + trace.unread, merged.warnings
    )


def _natural(name: str) -> tuple[int, str]:
    """Sort key: numbers in numeric order, before names."""
    return (int(name), "") if name.isdecimal() and len(name) < 18 else (10**18, name)
