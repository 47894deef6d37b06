"""Starts the sampler of a launch and summarises its samples by phase."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from paceline.json_checks import is_amount, is_number, list_of, object_of, optional, parsed_json
from paceline.json_checks import with_fields as with_these
from paceline.measurement.events import Event, last_event

SECONDS = 1.0
"""Interval of samples: one takes a few milliseconds, far below 0.5 % of a core."""

ENDING_SECONDS = 5.0
SAMPLES = "samples.jsonl"
PHASES = (("start", "hello", "ready"), ("training", "ready", "steps"))
"""Phases of a launch, each from one event of rank 0 to another."""

_is_sample = with_these(
    {
        "time": is_number,
        "cpu_seconds": object_of(is_amount),
        "memory_bytes": object_of(is_amount),
        "network_bytes": is_amount,
        "package_joules": optional(is_amount),
        "gpus": list_of(object_of(is_amount)),
        "own_cpu_seconds": is_amount,
    }
)


@contextmanager
def sampled(directory: Path, wanted: bool, seconds: float = SECONDS) -> Iterator[None]:
    """Sample the ranks that write to ``directory`` during the block, if ``wanted``.

    The sampler ends with this process, whose end closes the pipe that it reads.
    """
    if not wanted:
        yield
        return
    script = Path(__file__).with_name("sampler.py")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), str(directory), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def used_by_phase(directory: Path, ranks: Sequence[Sequence[Event]]) -> dict[str, Any] | None:
    """Resource use of each phase of a launch; None for a phase without samples."""
    samples = _samples(directory / SAMPLES)
    found: dict[str, Any] = {}
    for name, first, last in PHASES:
        edges = [last_event(list(ranks[0]), kind) if ranks else None for kind in (first, last)]
        if None in edges:
            continue
        begin, end = (edge["time"] for edge in edges if edge)
        inside = [sample for sample in samples if begin <= sample["time"] <= end]
        if len(inside) > 1:
            found[name] = _usage(inside)
    if not found:
        return None
    wall = samples[-1]["time"] - samples[0]["time"]
    return {**found, "sampler_share": samples[-1]["own_cpu_seconds"] / wall if wall > 0 else None}


def _samples(path: Path) -> list[dict[str, Any]]:
    found = []
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                sample = parsed_json(line)
            except ValueError:
                continue
            if isinstance(sample, dict) and _is_sample(sample):
                found.append(sample)
    return sorted(found, key=lambda sample: float(sample["time"]))


def _usage(samples: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Means over time, and peak memory of all ranks together; None for unknown values."""
    first, last = samples[0], samples[-1]
    seconds = last["time"] - first["time"]
    cpu = sum(
        max(0.0, value - first["cpu_seconds"].get(rank, 0.0))
        for rank, value in last["cpu_seconds"].items()
    )
    gpus = [sample["gpus"] for sample in samples]
    watts = _mean_over_gpus(gpus, "watts")
    package = _package_watts(samples)
    known = [power for power in (watts, package) if power is not None]
    return {
        "seconds": seconds,
        "cores_busy": cpu / seconds if seconds > 0 else None,
        "memory_bytes": max(sum(sample["memory_bytes"].values()) for sample in samples),
        "network_bytes_per_second": max(0.0, last["network_bytes"] - first["network_bytes"])
        / seconds
        if seconds > 0
        else None,
        "gpu_busy": _mean_over_gpus(gpus, "busy", per_gpu=True),
        "gpu_memory_bytes": max(sum(g.get("memory_bytes", 0.0) for g in own) for own in gpus)
        if any(gpus)
        else None,
        "watts": sum(known) if known else None,
    }


def _mean_over_gpus(
    samples: Sequence[Sequence[dict[str, float]]], key: str, per_gpu: bool = False
) -> float | None:
    """Mean over samples of the sum over GPUs, or of their mean."""
    known = [[gpu[key] for gpu in own if key in gpu] for own in samples]
    sums = [sum(own) / (len(own) if per_gpu else 1) for own in known if own]
    return sum(sums) / len(sums) if sums else None


def _package_watts(samples: Sequence[dict[str, Any]]) -> float | None:
    """Mean power of the processors, without intervals in which their counter wrapped around."""
    joules = seconds = 0.0
    for sample, other in pairwise(samples):
        before, after = sample["package_joules"], other["package_joules"]
        if before is not None and after is not None and after >= before:
            joules, seconds = joules + after - before, seconds + other["time"] - sample["time"]
    return joules / seconds if seconds > 0 else None
