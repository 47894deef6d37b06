"""The files of a launch that agents read and write, on disks that its machines share or copy."""

import json
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.json_checks import parsed_json
from paceline.launch.launcher import (
    LaunchExit,
    LaunchRequest,
    RankExit,
    describe_exit,
    exit_path,
)

SCHEMA = "paceline/launch/1"
PATIENCE_SECONDS = 60.0
"""How long the ranks of a launch wait for each other before they start."""

AGENT = "agent"
AGENT_MAIN = """import sys

from paceline.launch.onhost.agent import main

sys.exit(main(sys.argv[1:]))
"""
COLLECTING_SECONDS = 5.0
"""How long files of another machine may take to be seen here."""


@dataclass(frozen=True)
class MeetingPlace:
    """Where ranks meet, as far as it is known before they start; rank 0 chooses the rest."""

    address: str = ""
    port: int | None = None
    roll_port: int | None = None
    interface: str = ""


@dataclass(frozen=True)
class RankWord:
    """What the agent of a rank left: how the rank ended, why, when, and how large its files are.

    ``unanswered`` are peers that did not answer a rank that had to be ended.
    """

    code: int
    reason: str
    time: float
    files: dict[str, int]
    unanswered: tuple[str, ...] = ()


def write_launch(
    request: LaunchRequest, place: MeetingPlace, hosts: tuple[str, ...] = ()
) -> list[str]:
    """Write ``launch.json`` and the agent beside it; the words that run the agent there."""
    document = {
        "schema": SCHEMA,
        "token": secrets.token_hex(16),
        "nodes": request.nodes,
        "processes": request.processes,
        "hosts": list(hosts),
        "address": place.address,
        "port": place.port,
        "roll_port": place.roll_port,
        "interface": place.interface,
        "cores_per_rank": request.cores_per_rank,
        "timeout_seconds": request.timeout_seconds,
        "patience_seconds": PATIENCE_SECONDS,
        "ranks": [
            {"command": list(request.command(rank)), "variables": dict(request.variables(rank))}
            for rank in range(request.world_size)
        ],
    }
    try:
        (request.directory / "launch.json").write_text(json.dumps(document), encoding="utf-8")
        copy_agent(request.directory)
    except OSError as error:
        raise InputError(
            f"cannot write to {request.directory}: {error}", "is the disk full?"
        ) from error
    return agent_words(request.directory)


def check_launch(directory: Path) -> None:
    """Raise, with what to do, unless ``directory`` has a launch that `write_launch` prepared."""
    schema = _document(directory / "launch.json").get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"{directory} has no prepared launch"
            + (f": its launch.json is of '{schema}'" if schema else ""),
            "'paceline measure --dry-run DIRECTORY' prepares launches",
        )


def copy_agent(directory: Path) -> None:
    """Put the agent into a directory: a folder that a bare Python runs."""
    folder = directory / AGENT
    package = folder / "paceline" / "launch" / "onhost"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "__main__.py").write_text(AGENT_MAIN, encoding="utf-8")
    for empty in (package.parent.parent, package.parent):
        (empty / "__init__.py").touch()
    for path in (Path(__file__).parent / "onhost").glob("*.py"):
        shutil.copyfile(path, package / path.name)


def agent_words(directory: Path, python: str = sys.executable) -> list[str]:
    """The command that runs the agent of a directory."""
    return [python, "-I", "-S", str(directory / AGENT), str(directory)]


def collected_exit(directory: Path, world_size: int) -> LaunchExit | None:
    """How a prepared launch ended, by what its agents left; None if it has not run to its end."""
    words = [rank_word(directory, rank) for rank in range(world_size)]
    ended = [word.time for word in words if word is not None]
    if not ended:
        return None
    exits, reason, failed = [], "", None
    for rank, word in enumerate(words):
        told, code = rank_host(directory, rank), word.code if word else None
        exits.append(
            RankExit(
                rank,
                code,
                directory / f"rank-{rank}.log",
                told.get("host", ""),
                told.get("clock_offset_seconds", 0.0),
                told.get("clock_error_seconds", 0.0),
            )
        )
        wrong = cut_off(directory, rank) if word else "it left no word of its end"
        if not reason and (wrong or code != 0):
            failed = rank
            reason = f"rank {rank}: {wrong}" if wrong else describe_exit(rank, code)
    begun = [path.stat().st_mtime for path in directory.glob("rank-*.host.json")]
    seconds = max(0.0, max(ended) - min(begun)) if begun else 0.0
    silent = unanswered_by_host(directory, exits)
    return LaunchExit(tuple(exits), reason, seconds, failed, unanswered=silent)


def rank_word(directory: Path, rank: int) -> RankWord | None:
    """What the agent of a rank left, if it has ended."""
    document = _document(exit_path(directory, rank))
    try:
        return RankWord(
            int(document["code"]),
            str(document["reason"]),
            float(document["time"]),
            {str(name): int(size) for name, size in document["files"].items()},
            tuple(map(str, document.get("unanswered", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def unanswered_by_host(directory: Path, ranks: Sequence[RankExit]) -> dict[str, list[str]]:
    """Peers that did not answer ranks that had to be ended, by the host of the rank."""
    found: dict[str, list[str]] = {}
    for one in ranks:
        word = rank_word(directory, one.rank)
        if word is not None and word.unanswered:
            found.setdefault(one.host, []).extend(word.unanswered)
    return found


def rank_host(directory: Path, rank: int) -> dict[str, Any]:
    """What the agent of a rank told of its machine: host, address, clock; nothing if it did not."""
    document = _document(directory / f"rank-{rank}.host.json")
    sound = isinstance(document.get("host"), str) and all(
        isinstance(document.get(name), int | float)
        for name in ("clock_offset_seconds", "clock_error_seconds")
    )
    return document if sound else {}


def cut_off(directory: Path, rank: int) -> str:
    """What is wrong with the files of a rank that ended, after they had time to arrive."""
    end = time.monotonic() + COLLECTING_SECONDS
    while True:
        word = rank_word(directory, rank)
        wrong = "" if word is None else _wrong_size(directory, word)
        if not wrong or time.monotonic() > end:
            return wrong
        time.sleep(0.2)


def _wrong_size(directory: Path, word: RankWord) -> str:
    for name, size in word.files.items():
        path = directory / Path(name).name
        there = path.stat().st_size if path.exists() else None
        if there is None:
            return f"its file {name} is missing"
        if there < size:
            return f"its file {name} was cut off: {there:,} of {size:,} bytes"
    return ""


def _document(path: Path) -> dict[str, Any]:
    try:
        document = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
