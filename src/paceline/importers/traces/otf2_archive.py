"""OTF2 archives (Score-P, Vampir and others), read with the optional ``otf2`` package."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from paceline.errors import InputError, MissingExtraError
from paceline.importers.traces.parsing.merge_ranks import merge_ranks
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.regions import Region, region_trace
from paceline.importers.traces.parsing.spans import MOST_SPANS
from paceline.step import Step, Task
from paceline.user_files import opened

NANOSECONDS = 1_000_000_000
"""Clock resolution of written archives."""

_RANK = re.compile(r"(\d{1,7})\s*$")


def read_otf2(path: Path, rank: int = 0) -> ParsedTrace:
    """Steps of every rank of an archive (``traces.otf2``); phases come from region names."""
    anchor = path / "traces.otf2" if path.is_dir() else path
    opened(anchor).close()  # raises for a pipe, on which the library would block
    package = _package()
    try:
        with package.reader.open(str(anchor)) as archive:
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


def write_otf2(step: Step, directory: Path) -> Path:
    """Write a step as an archive: a location group per rank, a location per resource.

    Every task is a region named after its phase and name; a further region spans the step.
    """
    if directory.exists() and any(directory.iterdir()):
        raise InputError(f"{directory} is not empty", "choose a directory that does not exist yet")
    package = _package()
    try:
        with package.writer.open(str(directory), timer_resolution=NANOSECONDS) as archive:
            _write_tasks(step, archive)
    except OSError as error:
        raise InputError(
            f"cannot write {directory}: {error}", "check free disk space and permissions"
        ) from error
    return directory / "traces.otf2"


def _write_tasks(step: Step, archive: Any) -> None:
    node = archive.definitions.system_tree_node("job")
    names = dict.fromkeys(["train_step", *(f"{t.phase}: {t.name}" for t in step.tasks)])
    regions = {name: archive.definitions.region(name) for name in names}
    lanes: dict[tuple[int, str], list[tuple[float, Task]]] = {}
    for task, start in zip(step.tasks, step.starts, strict=True):
        lanes.setdefault((task.rank, task.resource), []).append((start, task))
    for rank in step.ranks:
        group = archive.definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
        whole = archive.event_writer("step", group=group)
        whole.enter(0, regions["train_step"])
        whole.leave(round(step.seconds * NANOSECONDS), regions["train_step"])
        for (own, lane), placed in lanes.items():
            if own != rank:
                continue
            writer, reached = archive.event_writer(lane, group=group), 0
            for start, task in sorted(placed, key=lambda pair: pair[0]):
                begin = max(reached, round(start * NANOSECONDS))
                reached = max(begin, round((start + task.seconds) * NANOSECONDS))
                writer.enter(begin, regions[f"{task.phase}: {task.name}"])
                writer.leave(reached, regions[f"{task.phase}: {task.name}"])


_HINT = "pass traces.otf2 of the archive, or its directory"


def _package() -> Any:
    try:
        return import_module("otf2")
    except ImportError as error:
        raise MissingExtraError(
            "OTF2 archives need the otf2 package", 'pip install "paceline[otf2]"'
        ) from error


def _regions(archive: Any) -> tuple[dict[int, list[Region]], int]:
    """Regions by rank from paired enter and leave events, with bytes of collectives."""
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
    """Rank in the name of a location's group (``MPI Rank 3``); 0 if there is none."""
    match = _RANK.search(str(location.group.name))
    return int(match[1]) if match else 0
