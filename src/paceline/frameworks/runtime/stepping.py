"""The base of every framework's worker: the life cycle of a rank, its loop and its timers.

Standard library only. A worker subclasses `Training` with its framework and calls `run_worker`.
"""

import json
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from channel import Events, die_with_parent
from epochs import Epochs, train_by_epochs
from thread_states import MESSAGES, CoreUse, ThreadClock, thread_cores

PROTOCOL_VERSION = 1
DIFFERENCE_ROUNDS = 8
"""Repetitions of each part of a step for phases by difference."""


class Training:
    """One rank's training in one framework, as used by the loop.

    ``parameters`` counts the trained parameters of the whole network, not of a shard. `step` may
    return before its work is done; `wait` returns when it is. ``step_parts`` are the parts that can
    run separately, by the names in `PARTS`, each called with the index of a step. ``epochs`` is set
    for jobs that train by epochs on real data.
    """

    parameters: int
    epochs: "Epochs | None" = None
    mark: Callable[[str], None] = staticmethod(lambda phase: None)
    """Called by `step` with ``input``, ``forward``, ``backward`` or ``update`` when it begins."""

    def step(self, index: int) -> Any:
        """Run one optimiser step; return a handle of its loss."""
        raise NotImplementedError

    def wait(self, handle: Any) -> None:
        """Return when the loss of ``handle`` and the update are computed."""

    def loss_value(self, handle: Any) -> float:
        """Return the loss of this rank's samples as a number."""
        return float(handle)

    def barrier(self) -> None: ...

    def begin_epoch(self, epoch: int) -> None:
        raise NotImplementedError("this worker does not train by epochs")

    def evaluate(self) -> tuple[int, float, int]:
        """Return this rank's number of test samples, the sum of losses, and the correct ones."""
        raise NotImplementedError("this worker does not evaluate")

    def forward_flops(self) -> "float | None":
        """Return the FLOPs of one forward pass as counted by the framework; None if it cannot."""
        return None

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """Return the parts of a step that this framework can run separately; default: none."""
        return {}

    def report(self, events: Events) -> None:
        """Write the results of instruments inside the step; default: nothing."""

    def close(self) -> None: ...


PARTS = ("forward", "forward_backward", "local_step", "collective")
"""Parts of a step that are measured in addition to the whole step, for phases by difference.

``local_step`` is the step without communication; ``collective`` sends buffers of the
gradients' sizes and computes nothing.
"""


def run_worker(
    build: Callable[[dict, int, int], Training],
    versions: Callable[[], Mapping[str, Any]],
    instruments: tuple[str, ...] = ("none", "difference"),
    **further_versions: str,
) -> None:
    """Read the job, train, write the events, and exit without the framework's teardown."""
    die_with_parent()
    try:
        training = _train_job(build, {**versions(), **further_versions}, instruments)
        training.barrier()
        training.close()
    except Exception:
        # Some frameworks wait for the other ranks when the interpreter ends.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)  # communication threads sometimes abort the interpreter's teardown


def _train_job(
    build: Callable[[dict, int, int], Training],
    versions: Mapping[str, Any],
    instruments: tuple[str, ...],
) -> Training:
    """Train the job of the command line and write its events."""
    job_path, events_path = sys.argv[1], sys.argv[2]
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with Events(events_path) as events:
        found = {**versions, "python": platform.python_version()}
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        events.write("hello", rank=rank, world=world, pid=os.getpid(), versions=found, cores=cores)
        check_job(job, instruments)
        training = build(job, rank, world)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # some frameworks install a handler
        train(training, job, rank, events)
        events.write("end", rank=rank)
    return training


def check_job(job: Mapping[str, Any], instruments: tuple[str, ...]) -> None:
    """Reject a job with another protocol or an unsupported instrument."""
    if job["protocol"] != PROTOCOL_VERSION:
        raise ValueError(
            f"unsupported protocol {job['protocol']} (this worker has {PROTOCOL_VERSION})"
        )
    if job["instrument"] not in instruments:
        raise ValueError(
            f"{job['framework']} has no instrument '{job['instrument']}' "
            f"(it has {', '.join(instruments)})"
        )


def require_plain_sgd(job: Mapping[str, Any]) -> None:
    """Reject optimisers and precisions that a worker with its own step does not support."""
    if job["optimiser"]["name"] != "sgd" or job["precision"] != "fp32":
        raise ValueError(
            f"{job['framework']} only supports sgd in fp32, not {job['optimiser']['name']} "
            f"in {job['precision']}"
        )


def train(training: Training, job: Mapping[str, Any], rank: int, events: Events) -> None:
    """Run the warm-up and counted steps, or epochs; then write their times."""
    wall, cpu, handles = [], [], []
    step, wait, clock = training.step, training.wait, Marks()
    training.mark = clock.mark
    keep_freed_memory()
    training.barrier()  # ranks build their networks at different speeds
    flops = training.forward_flops() if job.get("count_flops") else None
    events.write("ready", rank=rank, parameters=training.parameters, forward_flops=flops)

    def timed_steps(indices: range) -> None:
        for index in indices:
            cpu_start, start = time.process_time(), time.perf_counter()
            clock.begin(start)
            handle = step(index)
            wait(handle)
            end = time.perf_counter()
            clock.end(end)
            wall.append(end - start)
            cpu.append(time.process_time() - cpu_start)
            handles.append(handle)

    use = CoreUse()
    if job.get("epochs"):
        train_by_epochs(training, job, rank, events, timed_steps)
    else:
        timed_steps(range(job["warmup_steps"] + job["steps"]))
    used = use.since_last()
    carried = used.get("threads", {}).get(MESSAGES)
    delays = clock.delays()
    events.write(
        "steps",
        rank=rank,
        warmup_steps=job["warmup_steps"],
        wall_seconds=wall,
        cpu_seconds=cpu,
        thread_cores=thread_cores(),
        delay_seconds=delays,
        **({"message_delay_seconds": carried[2] / len(wall)} if carried and wall else {}),
        **used,
        compute_threads=int(job.get("threads") or 0),
        marks=clock.steps,
        begun=clock.begun,
        # Read after all steps: reading a loss would make a GPU wait within each.
        losses=[training.loss_value(handle) for handle in handles],
    )
    training.report(events)
    if job["instrument"] == "difference":
        events.write("parts", rank=rank, parts=time_parts(training, DIFFERENCE_ROUNDS))


class Marks:
    """Times of the training thread within each step: where a phase begins, and in which state.

    ``steps`` has for each step rows of a phase that begins, its moment, seconds on a core and
    seconds runnable, all since the step began; the last row is the end. Empty if the system does
    not count them.
    """

    def __init__(self) -> None:
        self.clock = ThreadClock()
        self.steps: list[list[list]] = []
        self.begun: list[float] = []
        self.first = (0.0, 0.0, 0.0)
        self.rows: list[list] = []

    def begin(self, moment: float) -> None:
        times = self.clock.read(moment)
        self.begun.append(moment)
        self.rows = []
        if times is not None:
            self.first = (moment, *times)
            self.rows = [["step", 0.0, 0.0, 0.0]]

    def mark(self, phase: str) -> None:
        self._add(phase, time.perf_counter())

    def end(self, moment: float) -> None:
        self._add("end", moment)
        self.steps.append(self.rows)

    def delays(self) -> "list[float]":
        """Seconds of each step that the thread was runnable without a core; empty if unknown."""
        return [rows[-1][3] for rows in self.steps] if all(self.steps) else []

    def _add(self, phase: str, moment: float) -> None:
        times = self.clock.read(moment) if self.rows else None
        if times is not None:
            begun, running, waited = self.first
            self.rows.append([phase, moment - begun, times[0] - running, times[1] - waited])


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for the next step.

    Freeing a block of nearly 32 MiB, the largest that counts, raises glibc's trim threshold to
    twice that size (mallopt(3), M_MMAP_THRESHOLD). Before, it depends on the last block in memory
    whether the activations of every step are returned to the system and faulted in again.
    """
    block = bytearray(31 << 20)
    del block


def time_parts(training: Training, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each part and of the whole step, ``rounds`` times each, interleaved.

    One warm-up round runs first. Ranks start each part together, so that none waits inside it.
    """
    runs = {**training.parts(), "step": training.step}
    unknown = set(runs) - {*PARTS, "step"}
    if unknown:
        raise ValueError(f"unknown parts of a step: {', '.join(sorted(unknown))}")
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for index in range(rounds + 1):
        for name, run in runs.items():
            training.barrier()
            start = time.perf_counter()
            training.wait(run(index))
            if index > 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds
