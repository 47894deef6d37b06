"""Overhead of each adapter: its throughput over that of a minimal script in the same framework.

Both run at the same time, each pinned to one core, and swap cores in the next pair. Only steps
during which both trained count; the ratio of a pair is the median step of the script over that of
the adapter, in wall time and in CPU time of rank 0: 1 means no overhead, the target is 0.95 to 1.1
for each framework. Distributed adapters run with two processes on one core, others with one
process. The scripts in handwritten/ are minimal training loops for the same network and batch,
with the C library's memory as in workers. Frameworks without an environment are skipped.

With --json FILE an interrupted run continues: frameworks in FILE are not measured again.
"""

import itertools
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import arguments, finish, keep, kept, machine, ratio_interval

from paceline.errors import PacelineError
from paceline.frameworks.command import check_runnable, interpreter
from paceline.frameworks.framework_registry import framework, frameworks
from paceline.launch import LaunchRequest, LocalLauncher
from paceline.measurement.events import last_event, read_events
from paceline.measurement.job import Job
from paceline.measurement.run_job import events_path, run_job, thread_variables
from paceline.store import Status, Store
from paceline.workload import zoo

SCRIPTS = Path(__file__).parent / "handwritten"
TARGET = (0.95, 1.1)
WARMUP_STEPS = 4
FEWEST_STEPS = 5
"""Minimum number of counted steps during which both sides trained."""


@dataclass(frozen=True)
class Script:
    """A hand-written script with its number of processes and its network."""

    file: str
    processes: int = 1
    model: str = "resnet20"
    variables: Mapping[str, str] = field(default_factory=dict)
    horovod: bool = False


HANDWRITTEN = {
    "torch-ddp": Script("torch_ddp_script.py"),
    "torch-fsdp": Script("torch_fsdp_script.py", 2),
    "torch-tp": Script("torch_tp_script.py", 2, "fcn5"),
    "torch-pp": Script("torch_pp_script.py", 2, "fcn5"),
    "horovod-torch": Script("horovod_torch_script.py", 2, horovod=True),
    "tensorflow": Script("tensorflow_script.py"),
    "horovod-tensorflow": Script("horovod_tensorflow_script.py", 2, horovod=True),
    "keras": Script("keras_script.py", variables={"KERAS_BACKEND": "tensorflow"}),
    "keras-jax": Script("keras_script.py", variables={"KERAS_BACKEND": "jax"}),
    "keras-torch": Script("keras_torch_script.py"),
    "jax": Script("jax_script.py"),
    "mxnet": Script("mxnet_script.py"),
    "mxnet-server": Script("mxnet_script.py", 2, variables={"KVSTORE": "dist_sync"}),
    "mxnet-async": Script("mxnet_script.py", 2, variables={"KVSTORE": "dist_async"}),
    "horovod-mxnet": Script("horovod_mxnet_script.py", 2, horovod=True),
    "paddle": Script("paddle_script.py"),
    "chainer": Script("chainer_script.py"),
}


@dataclass(frozen=True)
class Steps:
    """Steps of one side: when its loop began (seconds since the epoch), wall and CPU seconds."""

    began: float
    seconds: Sequence[float]
    cpu: Sequence[float]

    def counted(self) -> list[tuple[float, float, float, float]]:
        """Beginning, end, wall and CPU seconds of each step after the warm-up."""
        ends = [self.began + passed for passed in itertools.accumulate(self.seconds)]
        steps = zip((self.began, *ends), ends, self.seconds, self.cpu, strict=False)
        return list(steps)[WARMUP_STEPS:]


def through_adapter(name: str, script: Script, core: int, steps: int, batch: int) -> Steps:
    """Steps of the framework's worker, started by Paceline on one core."""
    os.sched_setaffinity(0, {core})
    job = Job(
        model=script.model,
        graph=zoo.build(script.model).to_json(),
        batch_per_rank=batch,
        framework=name,
        world_size=script.processes,
        steps=steps,
        warmup_steps=WARMUP_STEPS,
    )
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
        launch = run_job(job, store, "adapters")
        if launch.status is not Status.FINISHED:
            raise SystemExit(f"{name} failed: {launch.outcome.reason}")
        directory = store.path.parent / "launches" / launch.id
        ready = last_event(read_events(events_path(directory, 0)), "ready")
    assert ready is not None
    rank = launch.outcome.ranks[0]
    return Steps(ready["time"], rank.wall_seconds, rank.cpu_seconds)


def by_hand(name: str, script: Script, core: int, steps: int, batch: int) -> Steps:
    """Steps of the hand-written script on one core."""
    os.sched_setaffinity(0, {core})
    python = interpreter(framework(name))
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        command = [python, str(SCRIPTS / script.file), str(folder / "out.json")]
        command += [str(steps), str(WARMUP_STEPS), str(batch)]
        variables = {**thread_variables(1), **script.variables}
        if script.horovod:
            start = [
                str(Path(python).parent / "horovodrun"),
                "--gloo",
                "--network-interfaces",
                "lo",
            ]
            command = [*start, "-np", str(script.processes), *command]
            variables["PATH"] = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        started = 1 if script.horovod else script.processes
        ended = LocalLauncher().launch(
            LaunchRequest(
                lambda rank: command,
                folder,
                timeout_seconds=600,
                processes=started,
                variables=lambda rank: variables,
            )
        )
        if ended.reason:
            log = ended.ranks[ended.first_failed or 0].log.read_text(errors="replace")
            raise SystemExit(f"{script.file} failed: {ended.reason}\n{log[-2000:]}")
        return Steps(**json.loads((folder / "out.json").read_text()))


def medians_of(script: Steps, adapter: Steps) -> list[tuple[float, float]]:
    """Median wall and CPU seconds of both sides while both trained; empty without enough steps."""
    sides = [side.counted() for side in (script, adapter)]
    start, end = max(side[0][0] for side in sides), min(side[-1][1] for side in sides)
    both = [[step[2:] for step in side if step[0] >= start and step[1] <= end] for side in sides]
    if min(map(len, both)) < FEWEST_STEPS:
        return []
    return [
        (statistics.median(wall for wall, _ in side), statistics.median(cpu for _, cpu in side))
        for side in both
    ]


def compare(name: str, pairs: int, steps: int, batch: int) -> dict[str, Any]:
    """Pairs of one framework, and their ratio with its interval."""
    script = HANDWRITTEN[name]
    first, second = sorted(os.sched_getaffinity(0))[:2]
    wall_ratios, cpu_ratios = [], []
    for pair in range(pairs):
        cores = (first, second) if pair % 2 == 0 else (second, first)
        with ThreadPoolExecutor(2) as sides:
            adapter = sides.submit(through_adapter, name, script, cores[0], steps, batch)
            by_itself = sides.submit(by_hand, name, script, cores[1], steps, batch)
            found = medians_of(by_itself.result(), adapter.result())
        if not found:
            print(f"  {name} pair {pair + 1}/{pairs}: too few steps at the same time", flush=True)
            continue
        (wall, cpu), (our_wall, our_cpu) = found
        wall_ratios.append(wall / our_wall)
        cpu_ratios.append(cpu / our_cpu)
        print(
            f"  {name} pair {pair + 1}/{pairs}: script {wall * 1e3:.1f} ms ({cpu * 1e3:.1f} CPU), "
            f"adapter {our_wall * 1e3:.1f} ms ({our_cpu * 1e3:.1f} CPU), "
            f"ratio {wall_ratios[-1]:.3f} ({cpu_ratios[-1]:.3f} CPU)",
            flush=True,
        )
    if not wall_ratios:
        return {"pairs": []}
    shown = {"wall": ratio_interval(wall_ratios), "cpu": ratio_interval(cpu_ratios)}
    figures: dict[str, Any] = {"processes": script.processes, "pairs": wall_ratios}
    for clock, (mean, low, high) in shown.items():
        verdict = "reached" if TARGET[0] <= mean <= TARGET[1] else "missed"
        print(
            f"{name}: {clock} ratio {mean:.3f} [{low:.3f}, {high:.3f}], {script.model}, "
            f"{script.processes} process(es), target {TARGET[0]} to {TARGET[1]} {verdict}",
            flush=True,
        )
        figures[clock] = {"ratio": mean, "low": low, "high": high}
    return figures


def main() -> None:
    """Compare the selected frameworks."""
    parser = arguments(__doc__ or "")
    known = [name for name, one in frameworks().items() if one.environment]
    parser.add_argument("--frameworks", default=",".join(known), help="comma-separated names")
    parser.add_argument("--minutes", type=float, help="begin no framework after this time")
    parser.add_argument("--pairs", type=int, help="pairs of launches [default: 4, quick: 2]")
    options = parser.parse_args()
    steps, batch = (12, 16) if options.quick else (40, 32)
    pairs = options.pairs or (2 if options.quick else 4)
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("this benchmark needs two cores: both sides run at the same time")
    done = kept(options.json, "frameworks")
    figures: dict[str, Any] = {"machine": machine(), "target": TARGET, "frameworks": dict(done)}
    last = time.monotonic() + 60.0 * (options.minutes or math.inf)
    print(f"adapters: batch {batch}, {steps} steps, {pairs} pairs, each side on one core")
    print(f"load average: {figures['machine']['load_average']}")
    for name in options.frameworks.split(","):
        if name in figures["frameworks"]:
            print(f"{name}: in {options.json}")
            continue
        if time.monotonic() > last:
            print(f"{name}: no time left; run the command again")
            continue
        try:
            check_runnable(framework(name))
        except PacelineError as error:
            print(f"{name}: skipped: {error}")
            continue
        if name not in HANDWRITTEN:
            print(f"{name}: skipped: no hand-written script")
            continue
        figures["frameworks"][name] = compare(name, pairs, steps, batch)
        keep(figures, options.json)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
