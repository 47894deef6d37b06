"""What the hand-written scripts share: their arguments, and a clock around each step."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Sizes(NamedTuple):
    """Output file, counted steps, steps before those, samples per step of a rank."""

    out: Path
    steps: int
    warmup: int
    batch: int


def sizes() -> Sizes:
    """What this script was started with."""
    out, steps, warmup, batch = sys.argv[1:5]
    return Sizes(Path(out), int(steps), int(warmup), int(batch))


def keep_freed_memory() -> None:
    """Raise glibc's trim threshold as Paceline's workers do (`stepping.keep_freed_memory`).

    Otherwise the comparison is of the last block in memory: activations of every step may be
    returned to the system and faulted in again.
    """
    block = bytearray(31 << 20)
    del block


def run(step: Callable[[int], object], rank: int | None = None) -> None:
    """Call ``step`` with 0, 1, 2, ...; rank 0 writes when it began and every step's seconds."""
    wanted, seconds, cpu = sizes(), [], []
    keep_freed_memory()
    began = time.time()
    for index in range(wanted.warmup + wanted.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        step(index)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    if (int(os.environ["RANK"]) if rank is None else rank) == 0:
        wanted.out.write_text(json.dumps({"began": began, "seconds": seconds, "cpu": cpu}))
