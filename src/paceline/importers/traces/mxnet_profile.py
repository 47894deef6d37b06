"""MXNet's profiler: operators as begin and end events, one "process" per device."""

import re
from pathlib import Path

from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.regions import Region, RegionPairing, region_trace
from paceline.importers.traces.parsing.trace_events import ChromeTrace
from paceline.step import Phase

_SKIPPED = re.compile(r"^(?:Wait|MXNDArrayWait|MX[A-Z]|ResourceParallel|Set[A-Z]|Delete)")
_COMMUNICATION = re.compile(r"KVStore|horovod|allreduce", re.IGNORECASE)
_UPDATE = re.compile(r"^\[?(?:multi_|mp_|lamb_|preloaded_)*\w*_update")


def read_mxnet_profile(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps of one worker, each ending with a group of updates."""
    trace, pairing = ChromeTrace(path), RegionPairing()
    for event in trace:
        if event.category != "api":
            pairing.add(event)
    return region_trace(
        "mxnet",
        pairing.regions,
        rank,
        _phase,
        trace.unread + pairing.unread,
        pairing.unclosed,
    )


def _phase(region: Region) -> Phase | None:
    """Phase by operator name; forward by default."""
    name = region.name
    if _SKIPPED.match(name):
        return None
    if _COMMUNICATION.search(name):
        return Phase.COMMUNICATE
    if name.startswith(("_backward", "[_backward", "Backward")):
        return Phase.BACKWARD
    if _UPDATE.match(name):
        return Phase.UPDATE
    if name.startswith("Copy"):
        return Phase.COPY
    return Phase.FORWARD
