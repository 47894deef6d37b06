"""Overhead of `paceline run` per step of three different scripts, on 1 and 2 processes.

Reference: steps of the same process without the wrappers of the recorder, alternating step by step
(see `watched_script.py`). Target: step time within 1 %.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine, ratio_interval

from paceline.measurement.recording.command_runner import watching_environment

SCRIPT = Path(__file__).parent / "watched_script.py"
KINDS = {
    "ddp": "DDP with a data loader",
    "loop": "mixed precision and a scheduler, no DDP",
    "by-hand": "gradients all-reduced by hand",
}
PAIRS_A_BLOCK = 10


def step_times(kind: str, processes: int, pairs: int) -> dict[str, list[list[float]]]:
    """Wall and CPU seconds of each step of one launch, watched and plain."""
    command = [sys.executable, str(SCRIPT), kind, str(pairs)]
    if processes > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command = [*launcher, "--nproc_per_node", str(processes), *command[1:]]
    with tempfile.TemporaryDirectory() as directory:
        variables = watching_environment(Path(directory), False)
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        )
        if not any(Path(directory).iterdir()):
            raise RuntimeError("nothing was recorded: the watcher did not start")
    times: dict[str, list[list[float]]] = json.loads(answer.stdout.splitlines()[-1])
    return times


def block_ratios(times: dict[str, list[list[float]]], clock: int) -> list[float]:
    """Median of watched over plain in each block of neighbouring pairs."""
    ratios = [
        watched[clock] / plain[clock]
        for watched, plain in zip(times["watched"], times["plain"], strict=True)
    ]
    blocks = math.ceil(len(ratios) / PAIRS_A_BLOCK)
    return [statistics.median(ratios[block::blocks]) for block in range(blocks)]


def compare(kind: str, processes: int, pairs: int, launches: int) -> dict[str, Any]:
    """Ratios of watched to plain steps over several launches."""
    walls, cpus, plain = [], [], []
    for _ in range(launches):
        times = step_times(kind, processes, pairs)
        walls += block_ratios(times, 0)
        cpus += block_ratios(times, 1)
        plain += [step[0] for step in times["plain"]]
    wall, low, high = ratio_interval(walls)
    cpu, cpu_low, cpu_high = ratio_interval(cpus)
    step_seconds = statistics.median(plain)
    print(
        f"  {KINDS[kind]:<40} {processes} processes: step {step_seconds * 1e3:6.1f} ms, "
        f"wall x {wall:.4f} [{low:.4f}, {high:.4f}], "
        f"CPU x {cpu:.4f} [{cpu_low:.4f}, {cpu_high:.4f}]",
        flush=True,
    )
    return {
        "kind": kind,
        "processes": processes,
        "plain_step_seconds": step_seconds,
        "wall_ratio": [wall, low, high],
        "cpu_ratio": [cpu, cpu_low, cpu_high],
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    options = parser.parse_args()
    launches, pairs = (1, 20) if options.quick else (4, 100)
    begun = machine()
    print(f"watched over plain steps, {launches} launches of {pairs} pairs; target 1.01")
    print(f"load average at the beginning: {begun['load_average']}")
    rows = [compare(kind, each, pairs, launches) for kind in KINDS for each in (1, 2)]
    finish({"benchmark": "watch_overhead", "machine": begun, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
