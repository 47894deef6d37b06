"""What `paceline run` adds to a step of three unlike scripts, on 1 and 2 processes.

Reference: the same script without it, launches alternating. Target: step time within 1 %.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine, ratio_interval

from paceline.measure.watch.runner import watching_environment

SCRIPT = Path(__file__).parent / "watched_script.py"
KINDS = {
    "ddp": "DDP with a data loader",
    "loop": "mixed precision and a scheduler, no DDP",
    "by-hand": "gradients all-reduced by hand",
}


def step_times(kind: str, processes: int, steps: int, watched: bool) -> tuple[float, float]:
    """Mean wall and CPU seconds per step of one launch, as the script itself sees them."""
    command = [sys.executable, str(SCRIPT), kind, str(steps)]
    if processes > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node"]
        command = [*launcher, str(processes), *command[1:]]
    with tempfile.TemporaryDirectory() as directory:
        variables = watching_environment(Path(directory), False) if watched else {}
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        )
        if watched and not any(Path(directory).iterdir()):
            raise RuntimeError("nothing was recorded: the watcher did not start")
    line = next(line for line in answer.stdout.splitlines() if line.startswith("result"))
    _, wall, cpu = line.split()
    return float(wall), float(cpu)


def compare(kind: str, processes: int, steps: int, pairs: int) -> dict[str, Any]:
    """Paired launches with and without watching, in alternating order."""
    walls, cpus, plain = [], [], []
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        times = {w: step_times(kind, processes, steps, w) for w in order}
        walls.append(times[True][0] / times[False][0])
        cpus.append(times[True][1] / times[False][1])
        plain.append(times[False][0])
    wall, low, high = ratio_interval(walls)
    cpu, cpu_low, cpu_high = ratio_interval(cpus)
    print(
        f"  {KINDS[kind]:<40} {processes} processes: step {statistics.fmean(plain) * 1e3:6.1f} ms, "
        f"wall x {wall:.4f} [{low:.4f}, {high:.4f}], "
        f"CPU x {cpu:.4f} [{cpu_low:.4f}, {cpu_high:.4f}]"
    )
    return {
        "kind": kind,
        "processes": processes,
        "plain_step_seconds": plain,
        "wall_ratio": [wall, low, high],
        "cpu_ratio": [cpu, cpu_low, cpu_high],
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    options = parser.parse_args()
    pairs, steps = (2, 20) if options.quick else (8, 60)
    begun = machine()
    print(f"step time with watching over without, {pairs} pairs of {steps} steps; target 1.01")
    print(f"load average at the beginning: {begun['load_average']}")
    rows = [compare(kind, processes, steps, pairs) for kind in KINDS for processes in (1, 2)]
    finish({"benchmark": "watch_overhead", "machine": begun, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
