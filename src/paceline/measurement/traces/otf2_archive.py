"""OTF2 archives (Score-P and others), read with the ``otf2`` package where it is installed."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from paceline.errors import InputError, MissingExtraError
from paceline.measurement.traces.merge_ranks import merge_ranks
from paceline.measurement.traces.parsed_trace import ParsedTrace
from paceline.measurement.traces.regions import Region, region_trace
from paceline.measurement.traces.spans import MOST_SPANS

_RANK = re.compile(r"(\d{1,7})\s*$")


def read_otf2(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps of every rank of an archive (``traces.otf2``), by the names of its regions."""
    anchor = path / "traces.otf2" if path.is_dir() else path
    reader = _reader()
    try:
        with reader.open(str(anchor)) as archive:
            regions, unread = _regions(archive)
    except (OSError, RuntimeError, ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{anchor} cannot be read as OTF2: {error}", _HINT) from error
    except Exception as error:
        if type(error).__module__.startswith(("otf2", "_otf2")):
            raise InputError(f"{anchor} cannot be read as OTF2: {error}", _HINT) from error
        raise
    parts = [region_trace("otf2", own, number) for number, own in sorted(regions.items())]
    if not parts:
        return ParsedTrace("otf2", (), None, unread)
    merged = merge_ranks(parts)
    return ParsedTrace("otf2", merged.steps, len(parts), merged.unread + unread, merged.warnings)


_HINT = "name the archive's traces.otf2, or the directory that holds it"


def _reader() -> Any:
    try:
        return import_module("otf2").reader
    except ImportError as error:
        raise MissingExtraError(
            "OTF2 archives need the otf2 package", 'pip install "paceline[otf2]"'
        ) from error


def _regions(archive: Any) -> tuple[dict[int, list[Region]], int]:
    """Regions by rank: enter and leave paired per location, bytes of collectives on them."""
    ticks = float(archive.timer_resolution)
    regions: dict[int, list[Region]] = {}
    stacks: dict[Any, list[tuple[str, float]]] = {}
    sizes: dict[Any, float] = {}
    unread = kept = 0
    for location, event in archive.events:
        kind = type(event).__name__
        moment = event.time / ticks
        stack = stacks.setdefault(location, [])
        if kind == "Enter" and len(stack) < 1000:
            stack.append((str(event.region.name)[:200], moment))
        elif kind == "MpiCollectiveEnd":
            sizes[location] = float(getattr(event, "size_sent", 0) or 0)
        elif kind == "Leave":
            if not stack or kept >= MOST_SPANS:
                unread += 1
                continue
            name, start = stack.pop()
            size = sizes.pop(location, 0.0)
            own = regions.setdefault(_rank_of(location), [])
            own.append(Region(name, str(location.name), start, moment, size_bytes=size))
            kept += 1
    return regions, unread


def _rank_of(location: Any) -> int:
    """The rank that a location's group is called by (``MPI Rank 3``); 0 when it tells none."""
    match = _RANK.search(str(location.group.name))
    return int(match[1]) if match else 0
