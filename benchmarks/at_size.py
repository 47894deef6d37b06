"""Commands on a store of 20,000 launches, the report of 1,000, and explorer requests of 50 points.

One launch is measured; the others are copies with other ids and times. Each command runs in its
own process; CPU time, wall time and peak memory are printed. Targets: list, show, filter and report
of a study in a store of 20,000 launches within 3 s; the report of 1,000 launches within 10 s and
2 MB; an explorer request with 50 node counts within 30 ms in the median.

    python benchmarks/at_size.py
    python benchmarks/at_size.py --quick --json at_size.json
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import arguments, finish, machine

STUDIES_OF = 100
"""Launches of each study of the large store."""
ANSWERS = 30
STATES: tuple[dict[str, Any], ...] = (
    {"model": "resnet50", "cluster": "dgx-1", "nodes": 50},
    {"model": "bert_large", "batch": 8, "cluster": "hkbu-v100-pcie", "nodes": 50},
    {"model": "gpt3_175b", "batch": 64, "precision": "bf16", "cluster": "dgx-a100", "nodes": 400}
    | {"tp": 8, "pp": 8, "framework": "megatron-lm"},
)


def copies(launch: Any, count: int, per_study: int) -> Iterator[Any]:
    """The launch ``count`` times, ``per_study`` in each study, with times that differ."""
    noise = random.Random(1)
    for number in range(count):
        factor = noise.lognormvariate(0.0, 0.05)
        ranks = tuple(
            replace(rank, wall_seconds=tuple(factor * s for s in rank.wall_seconds))
            for rank in launch.outcome.ranks
        )
        yield replace(
            launch,
            id=f"{number:08x}",
            study=f"study-{number // per_study}",
            job={**launch.job, "position": number % per_study},
            outcome=replace(launch.outcome, ranks=ranks),
        )


def filled(path: Path, launch: Any, count: int, per_study: int) -> None:
    """Write a store of ``count`` launches."""
    from paceline.store import Store

    with Store(path) as store:
        for one in copies(launch, count, per_study):
            store.complete(one)


def run_command(*arguments: object) -> dict[str, Any]:
    """CPU seconds, wall seconds and peak memory of a command."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"'{arguments[0]}' ended with {process.returncode}")
    return {
        "command": str(arguments[0]),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "wall_seconds": time.perf_counter() - begun,
        "peak_mb": used.ru_maxrss / 1000,
    }


def report(label: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Print and return the figures of a command."""
    print(
        f"{label:44s} CPU {figures['cpu_seconds']:6.2f} s  wall {figures['wall_seconds']:6.2f} s  "
        f"memory {figures['peak_mb']:.0f} MB",
        flush=True,
    )
    return {"what": label, **figures}


def commands_at_size(large: Path, page: Path, directory: Path) -> list[dict[str, Any]]:
    """Commands that read the large store, and the report of a large study."""
    commands = {
        "list": ("study", "list", "--launches", "--store", large),
        "list of one study": ("study", "show", "study-7", "--store", large),
        "show of one launch": ("show", "00000007", "--store", large),
        "studies": ("studies", "--store", large),
        "report of one study": ("report", "study-7", "--store", large, "--out", directory / "a"),
        "page of a large study": ("report", "study-0", "--store", page, "--out", directory / "b"),
    }
    return [report(label, run_command(*command)) for label, command in commands.items()]


def explorer_milliseconds(answers: int) -> dict[str, float]:
    """Median server time of an answer, ms of CPU, for each state; the first one is warm-up."""
    from paceline.explore.answers import answer, job_of
    from paceline.explore.state import state_of

    found = {}
    for state in STATES:
        times = []
        for number in range(answers + 1):
            given = {**state, "link_rate": 1.0 + number / 100}
            begun = time.process_time()
            answer(job_of(state_of(given, {}, ()), {}))
            times.append(1e3 * (time.process_time() - begun))
        found[state["model"]] = statistics.median(times[1:])
    return found


def main() -> None:
    """Measure one launch, copy it, and time commands that read the copies."""
    options = arguments(__doc__).parse_args()
    import paceline

    launches, on_one_page = (2_000, 200) if options.quick else (20_000, 1_000)
    figures: dict[str, Any] = {"machine": machine(), "launches": launches, "on_page": on_one_page}
    print(figures["machine"])
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        study = paceline.measure(
            "resnet20", batch=4, processes=[2], launches=1, store=directory / "one.db"
        )
        (launch,) = study.launches
        filled(directory / "large.db", launch, launches, STUDIES_OF)
        filled(directory / "page.db", launch, on_one_page, on_one_page)
        figures["store_mb"] = (directory / "large.db").stat().st_size / 1e6
        print(f"{launches:,} launches: {figures['store_mb']:.0f} MB")
        figures["commands"] = commands_at_size(
            directory / "large.db", directory / "page.db", directory
        )
        pages = [f.stat().st_size for f in directory.glob("b*")]
        figures["page_mb"] = max(pages, default=0) / 1e6
        print(f"page of {on_one_page:,} launches: {figures['page_mb']:.2f} MB (target 2)")
    figures["explorer_ms"] = explorer_milliseconds(5 if options.quick else ANSWERS)
    for model, median in figures["explorer_ms"].items():
        print(f"explorer, {model}: {median:.1f} ms of CPU in the median (target 30)")
    finish(figures, options.json)


if __name__ == "__main__":
    main()
