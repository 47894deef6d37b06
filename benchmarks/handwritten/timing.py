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


def run(step: Callable[[int], object], rank: int | None = None) -> None:
    """Call ``step`` with 0, 1, 2, ...; rank 0 writes when it began and every step's seconds."""
    wanted, seconds = sizes(), []
    began = time.time()
    for index in range(wanted.warmup + wanted.steps):
        start = time.perf_counter()
        step(index)
        seconds.append(time.perf_counter() - start)
    if (int(os.environ["RANK"]) if rank is None else rank) == 0:
        wanted.out.write_text(json.dumps({"began": began, "seconds": seconds}))
