"""The files of a launch that agents read and write, on a shared disk or copied."""

import json
import math
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.json_checks import (
    is_amount,
    is_count,
    is_number,
    is_text,
    list_of,
    object_of,
    optional,
    parsed_json,
    with_fields,
)
from paceline.launch.launcher import LaunchExit, LaunchRequest, RankExit, describe_exit, exit_path
from paceline.user_files import read_text

SCHEMA = "paceline/launch/1"
LARGEST_DOCUMENT = 1_000_000_000
PATIENCE_SECONDS = 60.0
"""Timeout of the rendezvous, before ranks start."""

AGENT = "agent"
AGENT_MAIN = """import sys

from paceline.launch.onhost.agent import main

sys.exit(main(sys.argv[1:]))
"""
COLLECTING_SECONDS = 5.0
"""Time that files of another host may take to appear here (NFS caches attributes)."""


_is_port = optional(lambda value: is_count(value) and 0 < value < 65536)
_is_launch = with_fields(
    {
        "token": is_text,
        "nodes": is_count,
        "processes": is_count,
        "hosts": list_of(is_text),
        "address": is_text,
        "port": _is_port,
        "roll_port": _is_port,
        "interface": is_text,
        "cores_per_rank": optional(is_count),
        "timeout_seconds": is_amount,
        "patience_seconds": is_amount,
        "ranks": list_of(
            with_fields(
                {
                    "command": lambda value: list_of(is_text)(value) and bool(value),
                    "variables": object_of(is_text),
                }
            )
        ),
    },
)


@dataclass(frozen=True)
class RendezvousAddress:
    """The rendezvous address as far as it is known before the start; rank 0 chooses the rest."""

    address: str = ""
    port: int | None = None
    roll_port: int | None = None
    interface: str = ""


@dataclass(frozen=True)
class RankStatus:
    """The exit file of a rank: code, reason, time and the sizes of its files.

    ``unanswered`` are peers that did not answer the rank before it was ended.
    """

    code: int
    reason: str
    time: float
    files: dict[str, int]
    unanswered: tuple[str, ...] = ()


def write_launch(
    request: LaunchRequest, rendezvous: RendezvousAddress, hosts: tuple[str, ...] = ()
) -> list[str]:
    """Write ``launch.json`` and the agent; return the command that runs the agent."""
    document = {
        "schema": SCHEMA,
        "token": secrets.token_hex(16),
        "nodes": request.nodes,
        "processes": request.processes,
        "hosts": list(hosts),
        "address": rendezvous.address,
        "port": rendezvous.port,
        "roll_port": rendezvous.roll_port,
        "interface": rendezvous.interface,
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
            f"cannot write to {request.directory}: {error}",
            "check its permissions and the free space of the disk",
        ) from error
    return agent_command(request.directory)


def check_launch(directory: Path) -> None:
    """Raise unless ``directory`` has a launch that `write_launch` prepared."""
    document = _document(directory / "launch.json")
    schema = document.get("schema")
    if schema == SCHEMA and not _is_launch(document):
        raise InputError(
            f"{directory / 'launch.json'} is damaged", "prepare the study again with --dry-run"
        )
    if schema != SCHEMA:
        raise InputError(
            f"{directory} contains no prepared launch"
            + (f": the schema of launch.json is '{schema}'" if schema else ""),
            "prepare launches with 'paceline measure --dry-run DIRECTORY'",
        )


def copy_agent(directory: Path) -> None:
    """Copy the agent into a directory, as a folder that Python runs without Paceline."""
    folder = directory / AGENT
    package = folder / "paceline" / "launch" / "onhost"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "__main__.py").write_text(AGENT_MAIN, encoding="utf-8")
    for empty in (package.parent.parent, package.parent):
        (empty / "__init__.py").touch()
    for path in (Path(__file__).parent / "onhost").glob("*.py"):
        shutil.copyfile(path, package / path.name)


def agent_command(directory: Path, python: str = sys.executable) -> list[str]:
    return [python, "-I", "-S", str(directory / AGENT), str(directory)]


def collected_exit(directory: Path, world_size: int) -> LaunchExit | None:
    """Return how a prepared launch ended, from its exit files; None if no rank has ended."""
    statuses = [rank_status(directory, rank) for rank in range(world_size)]
    ended = [status.time for status in statuses if status is not None]
    if not ended:
        return None
    exits, reason, failed = [], "", None
    for rank, status in enumerate(statuses):
        host, code = rank_host(directory, rank), status.code if status else None
        exits.append(
            RankExit(
                rank,
                code,
                directory / f"rank-{rank}.log",
                host.get("host", ""),
                host.get("clock_offset_seconds", 0.0),
                host.get("clock_error_seconds", 0.0),
            )
        )
        fault = incomplete_file(directory, rank) if status else "its exit was not recorded"
        if not reason and (fault or code != 0):
            failed = rank
            reason = f"rank {rank}: {fault}" if fault else describe_exit(rank, code)
    begun = [path.stat().st_mtime for path in directory.glob("rank-*.host.json")]
    seconds = max(0.0, max(ended) - min(begun)) if begun else 0.0
    silent = unanswered_by_host(directory, exits)
    return LaunchExit(tuple(exits), reason, seconds, failed, unanswered=silent)


def rank_status(directory: Path, rank: int) -> RankStatus | None:
    """Read the exit file of a rank; None if there is none or it is invalid."""
    document = _document(exit_path(directory, rank))
    try:
        found = RankStatus(
            int(document["code"]),
            str(document["reason"]),
            float(document["time"]),
            {str(name): int(size) for name, size in document["files"].items()},
            tuple(map(str, document.get("unanswered", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return found if math.isfinite(found.time) else None


def unanswered_by_host(directory: Path, ranks: Sequence[RankExit]) -> dict[str, list[str]]:
    """Return the peers that did not answer, by the host of the rank that waited."""
    found: dict[str, list[str]] = {}
    for rank in ranks:
        status = rank_status(directory, rank.rank)
        if status is not None and status.unanswered:
            found.setdefault(rank.host, []).extend(status.unanswered)
    return found


def rank_host(directory: Path, rank: int) -> dict[str, Any]:
    """Read the host file of a rank: host, address, clock; empty if there is none."""
    document = _document(directory / f"rank-{rank}.host.json")
    valid = isinstance(document.get("host"), str) and all(
        is_number(document.get(name)) for name in ("clock_offset_seconds", "clock_error_seconds")
    )
    return document if valid else {}


def incomplete_file(directory: Path, rank: int) -> str:
    """Describe a missing or truncated file of an ended rank, after `COLLECTING_SECONDS`."""
    end = time.monotonic() + COLLECTING_SECONDS
    while True:
        status = rank_status(directory, rank)
        fault = "" if status is None else _wrong_size(directory, status)
        if not fault or time.monotonic() > end:
            return fault
        time.sleep(0.2)


def _wrong_size(directory: Path, status: RankStatus) -> str:
    for name, size in status.files.items():
        path = directory / Path(name).name
        found = path.stat().st_size if path.exists() else None
        if found is None:
            return f"its file {name} is missing"
        if found < size:
            return f"its file {name} is truncated: {found:,} of {size:,} bytes"
    return ""


def _document(path: Path) -> dict[str, Any]:
    try:
        document = parsed_json(read_text(path, LARGEST_DOCUMENT, "file of a launch"))
    except (InputError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
