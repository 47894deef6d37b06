"""Overhead of each adapter: its throughput over that of a minimal script in the same framework.

Both run at the same time, each pinned to one core, and swap cores in the next pair. Only steps
during which both trained count; the ratio of a pair is the median step of the script over that of
the adapter: 1 means no overhead, the target is at least 0.98 for each framework. Distributed
adapters run with two processes on one core, others with one process. The scripts in handwritten/
are minimal training loops for the same network and batch. Frameworks without an environment are
skipped with a message.
"""

import itertools
import json
import math
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import arguments, finish, machine, ratio_interval

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
TARGET = 0.98
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
    """Steps of one side: when its loop began (seconds since the epoch), and their seconds."""

    began: float
    seconds: Sequence[float]

    def counted(self) -> list[tuple[float, float, float]]:
        """Beginning, end and seconds of each step after the warm-up."""
        ends = [self.began + passed for passed in itertools.accumulate(self.seconds)]
        steps = zip((self.began, *ends), ends, self.seconds, strict=False)
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
    return Steps(ready["time"], launch.outcome.ranks[0].wall_seconds)


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


def ratio_of(script: Steps, adapter: Steps) -> tuple[float, float, float]:
    """Median seconds of both over the time that both trained, and their ratio."""
    sides = [side.counted() for side in (script, adapter)]
    start, end = max(side[0][0] for side in sides), min(side[-1][1] for side in sides)
    both = [[seconds for a, b, seconds in side if a >= start and b <= end] for side in sides]
    if min(map(len, both)) < FEWEST_STEPS:
        return math.nan, math.nan, math.nan
    medians = [statistics.median(side) for side in both]
    return medians[0], medians[1], medians[0] / medians[1]


def compare(name: str, pairs: int, steps: int, batch: int) -> dict[str, Any]:
    """Pairs of one framework, and their ratio with its interval."""
    script = HANDWRITTEN[name]
    first, second = sorted(os.sched_getaffinity(0))[:2]
    ratios = []
    for pair in range(pairs):
        cores = (first, second) if pair % 2 == 0 else (second, first)
        with ThreadPoolExecutor(2) as sides:
            adapter = sides.submit(through_adapter, name, script, cores[0], steps, batch)
            by_itself = sides.submit(by_hand, name, script, cores[1], steps, batch)
            theirs, ours, ratio = ratio_of(by_itself.result(), adapter.result())
        print(
            f"  {name} pair {pair + 1}/{pairs}: script {theirs * 1e3:.1f} ms, "
            f"adapter {ours * 1e3:.1f} ms, ratio {ratio:.3f}",
            flush=True,
        )
        if not math.isnan(ratio):
            ratios.append(ratio)
    if not ratios:
        print(f"{name}: the sides never trained at the same time; use more steps")
        return {"pairs": []}
    mean, low, high = ratio_interval(ratios)
    verdict = "reached" if mean >= TARGET else "missed"
    print(
        f"{name}: ratio {mean:.3f} [{low:.3f}, {high:.3f}], {script.model}, "
        f"{script.processes} process(es), target {TARGET} {verdict}",
        flush=True,
    )
    return {"ratio": mean, "low": low, "high": high, "pairs": ratios}


def main() -> None:
    """Compare the selected frameworks."""
    parser = arguments(__doc__ or "")
    known = [name for name, one in frameworks().items() if one.environment]
    parser.add_argument("--frameworks", default=",".join(known), help="comma-separated names")
    parser.add_argument("--pairs", type=int, help="pairs of launches [default: 4, quick: 2]")
    options = parser.parse_args()
    steps, batch = (12, 16) if options.quick else (40, 32)
    pairs = options.pairs or (2 if options.quick else 4)
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("this benchmark needs two cores: both sides run at the same time")
    figures: dict[str, Any] = {"machine": machine(), "target": TARGET, "frameworks": {}}
    print(f"adapters: batch {batch}, {steps} steps, {pairs} pairs, each side on one core")
    print(f"load average: {figures['machine']['load_average']}")
    for name in options.frameworks.split(","):
        try:
            check_runnable(framework(name))
        except PacelineError as error:
            print(f"{name}: skipped: {error}")
            continue
        if name not in HANDWRITTEN:
            print(f"{name}: skipped: no hand-written script")
            continue
        figures["frameworks"][name] = compare(name, pairs, steps, batch)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
