"""Any other Chrome trace whose regions tell their phase, Paceline's own export among them."""

from pathlib import Path

from paceline.measurement.traces.events import ChromeTrace
from paceline.measurement.traces.merge_ranks import merge_ranks
from paceline.measurement.traces.parsed_trace import ParsedTrace
from paceline.measurement.traces.regions import RegionPairing, region_trace

MOST_PROCESSES = 10_000


def read_chrome_trace(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps with a rank per process; the phase is the event's category, else told by its name."""
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
    """Numbers in their order, before names."""
    return (int(name), "") if name.isdecimal() and len(name) < 18 else (10**18, name)
