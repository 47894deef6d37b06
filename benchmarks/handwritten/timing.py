"""What the hand-written scripts share: their arguments, and a clock around each step."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def sizes() -> tuple[Path, int, int, int]:
    """Output file, counted steps, steps before those, samples per step."""
    out, steps, warmup, batch = sys.argv[1:5]
    return Path(out), int(steps), int(warmup), int(batch)


def run(step: Callable[[int], object]) -> None:
    """Call ``step`` with 0, 1, 2, ... and write the seconds of the counted ones."""
    out, steps, warmup, _ = sizes()
    seconds = []
    for index in range(warmup + steps):
        start = time.perf_counter()
        step(index)
        seconds.append(time.perf_counter() - start)
    out.write_text(json.dumps(seconds[warmup:]))
