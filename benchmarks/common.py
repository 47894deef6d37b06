"""Options, machine state and ratios that all benchmarks share."""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser


def machine() -> dict[str, Any]:
    """Cores, load, Python version and time."""
    return {
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@contextmanager
def beside(load: int) -> Iterator[None]:
    """Run beside this number of busy loops."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        yield
    finally:
        for one in busy:
            one.terminate()
            one.wait()


def ratio_interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean of paired ratios with its 95 % interval (Student's t on logarithms)."""
    from paceline.stats.estimate import student_t

    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), math.nan, math.nan
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def kept(path: Path | None, name: str) -> list[Any]:
    """The list ``name`` of a file that `keep` or `finish` wrote; empty without such a file."""
    if path is None or not path.exists():
        return []
    found: list[Any] = json.loads(path.read_text(encoding="utf-8")).get(name, [])
    return found


def keep(figures: dict[str, Any], path: Path | None) -> None:
    """Write the figures so far, so that an interruption loses nothing."""
    if path is not None:
        whole = path.with_name(f"{path.name}.part")
        whole.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        whole.replace(path)


def finish(figures: dict[str, Any], path: Path | None) -> None:
    """Print the load at the end and write the figures."""
    figures = {**figures, "machine_at_end": machine()}
    print(f"load average at the end: {figures['machine_at_end']['load_average']}")
    keep(figures, path)
    if path is not None:
        print(f"written: {path}")
