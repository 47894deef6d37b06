"""The contract of a framework's worker, as checks that anyone can run on his own.

    from paceline.testing.adapter_suite import run_suite
    for result in run_suite("torch-ddp"):
        print(result)

Each check starts real launches through Paceline's launcher and compares what comes out with what
the worker owes: the described network, the NumPy reference's losses, phases that add up, a reason
for every failure, and nothing left behind.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.measure.differences import phases_by_difference
from paceline.measure.events import only, read_events
from paceline.measure.frameworks import Framework, check_runnable, framework
from paceline.measure.job import Job
from paceline.measure.run import events_path, run_job
from paceline.store import Launch, Status, Store
from paceline.testing.leftovers import check_nothing_left, interrupted_launch
from paceline.testing.reference import reference_losses
from paceline.workload import zoo

LOSS_TOLERANCE = 2e-4
"""Relative difference of a float32 framework's loss from the float64 reference, over 5 steps."""

COUNTED_LOSSES = 5
NARROWED = 16
ALONE = "fcn5 narrowed", 8
"""Network without batch statistics, and its global batch: FCN-5 with its layers less wide."""

IMAGES = "resnet20", 4
"""Network of convolutions and batch statistics, and its batch."""

LAUNCH_SECONDS = 300.0
LARGEST_BUILT_PARAMETERS = 70e6
"""Networks above this are not built by the suite: they would need much memory for little news."""

FLOP_TOLERANCE = 0.05
"""Relative difference of the operations that a framework counts from those described."""

IMPOSSIBLE_BATCH = 10**12
"""Samples that no address space can hold."""


class ContractError(Exception):
    """What the worker did that its contract does not allow."""


class Skipped(Exception):  # noqa: N818
    """Why a check does not apply to this framework."""


@dataclass(frozen=True)
class Result:
    """How one check went: ``passed`` is None where it does not apply."""

    check: str
    passed: bool | None
    words: str
    seconds: float


@dataclass(frozen=True)
class Bench:
    """Where checks run: the framework, a store of its own, and how long a launch may take."""

    framework: Framework
    store: Store
    launch_seconds: float = LAUNCH_SECONDS

    def job(self, model: str, batch_per_rank: int, **changes: Any) -> Job:
        """A short job of a zoo network."""
        fields: dict[str, Any] = {
            "model": model,
            "graph": narrowed_fcn5() if model == ALONE[0] else zoo.build(model).to_json(),
            "batch_per_rank": batch_per_rank,
            "framework": self.framework.name,
            "steps": COUNTED_LOSSES,
            "warmup_steps": 0,
        }
        return Job(**{**fields, **changes})

    def run(self, job: Job, seconds: float | None = None) -> Launch:
        """Run a job, whatever comes of it, and see that nothing is left of it."""
        launch = run_job(job, self.store, "contract", seconds or self.launch_seconds)
        check_nothing_left(self.directory(launch))
        return launch

    def finished(self, job: Job) -> Launch:
        """Run a job that must go well."""
        launch = self.run(job)
        if launch.status is not Status.FINISHED:
            raise ContractError(
                f"{job.model} on {job.world_size} process(es) {launch.status}: "
                f"{launch.outcome.reason}"
            )
        return launch

    def directory(self, launch: Launch) -> Path:
        """The files of a launch."""
        return self.store.path.parent / "launches" / launch.id


def narrowed_fcn5() -> dict[str, Any]:
    """FCN-5 with hidden layers a sixteenth as wide: quick to train, also in NumPy."""
    graph = zoo.build("fcn5").to_json()
    last = [node for node in graph["nodes"] if node["op"] == "linear"][-1]
    for node in graph["nodes"]:
        if node["op"] == "linear" and node is not last:
            node["out_features"] //= NARROWED
    return graph


def check_parameters(bench: Bench) -> str:
    """Builds the networks it claims, with the parameters and the work they are described by."""
    names = ("fcn5", IMAGES[0])
    built = claimed(bench.framework, names)
    words = [check_network(bench, name) for name in built]
    others = [f"{name} is not claimed" for name in names if name not in built]
    return "; ".join([*words, *others])


def check_every_network(bench: Bench) -> str:
    """Builds every network of the zoo that it claims and that is of a size to be built here."""
    names = zoo.names()
    ours = claimed(bench.framework, names)
    small = [name for name in ours if of_a_size_to_build(name)]
    for name in small:
        check_network(bench, name)
    left = [name for name in names if name not in ours]
    words = f"{len(small)} networks built, {len(ours) - len(small)} larger ones not"
    return f"{words}; not claimed: {', '.join(left) or 'none'}"


def claimed(wanted: Framework, names: Sequence[str]) -> list[str]:
    """Those of some networks of the zoo that the framework's worker can build."""
    return [name for name in names if wanted.claims(zoo.build(name).to_json())]


def of_a_size_to_build(name: str) -> bool:
    """Whether a network of the zoo is small enough to be built by the suite."""
    return float(zoo.build(name).cost(1).parameters) <= LARGEST_BUILT_PARAMETERS


def check_network(bench: Bench, name: str) -> str:
    """Builds one network of the zoo: its parameters, and its work where the framework counts it."""
    graph = zoo.build(name)
    job = bench.job(name, 2, steps=1, distinct_batches=1, sequence=graph.sequence, count_flops=True)
    launch = bench.finished(job)
    ready = only(read_events(events_path(bench.directory(launch), 0)), "ready")
    if ready is None:
        raise ContractError(f"{name}: no 'ready' was written")
    described = int(graph.cost(1).parameters)
    if ready["parameters"] != described:
        raise ContractError(f"{name} has {ready['parameters']} parameters, described {described}")
    counted = ready.get("forward_flops")
    if counted is None:
        return f"{name}: {described} parameters, operations not counted by this framework"
    forward = float(graph.cost(2).forward_flops)
    if not math.isclose(counted, forward, rel_tol=FLOP_TOLERANCE):
        raise ContractError(f"{name} computes {counted:.3g} FLOP, described {forward:.3g}")
    return f"{name}: {described} parameters, {counted:.3g} FLOP ({counted / forward - 1:+.1%})"


def check_losses(bench: Bench) -> str:
    """The first losses, from the same weights and data, are the NumPy reference's."""
    worst = 0.0
    for model, batch in (ALONE, IMAGES):
        job = bench.job(model, batch)
        worst = max(worst, _loss_difference(bench.finished(job), reference_losses(job)))
    return f"{COUNTED_LOSSES} losses within {worst:.1e} of the reference (limit {LOSS_TOLERANCE})"


def check_synchronisation(bench: Bench) -> str:
    """Two processes with half the batch each give the losses of one with all of it."""
    if not bench.framework.synchronous:
        raise Skipped("its ranks update without waiting for each other")
    model, batch = ALONE
    job = bench.job(model, batch // 2, world_size=2)
    worst = _loss_difference(bench.finished(job), reference_losses(job))
    return f"mean loss of 2 processes within {worst:.1e} of one process's"


def check_two_processes(bench: Bench) -> str:
    """Two processes train, synchronised or not, and learn."""
    model, batch = ALONE
    for synchronise in (True, False):
        job = bench.job(model, batch // 2, world_size=2, synchronise=synchronise)
        launch = bench.finished(job)
        if any(not math.isfinite(loss) for rank in launch.outcome.ranks for loss in rank.losses):
            raise ContractError("a loss is not a number")
    return "with and without talking"


def check_phases(bench: Bench) -> str:
    """Phases add up to the step: by difference, and by its own clocks where it has them."""
    job = bench.job(*ALONE, world_size=2, steps=2, instrument="difference")
    launch = bench.finished(job)
    phases = phases_by_difference(launch.outcome.facts.get("parts", {}))
    if phases is None:
        raise ContractError("no parts were written")
    parts = (phases.forward_seconds, phases.backward_seconds, phases.update_seconds)
    total = math.fsum(part or 0.0 for part in parts) + phases.exposed_seconds
    if not math.isclose(total, phases.step_seconds, rel_tol=1e-6):
        raise ContractError(f"phases make {total:.4f} s, the step {phases.step_seconds:.4f} s")
    known = sum(part is not None for part in parts) + (phases.collective_seconds is not None)
    if "phases" in bench.framework.instruments:
        _check_timelines(bench)
    return f"{known} of 4 parts run alone, sum {total * 1e3:.0f} ms"


def check_timeout(bench: Bench) -> str:
    """A launch that takes too long is ended, with that as its reason."""
    job = bench.job(*ALONE, world_size=2, steps=10**6)
    launch = bench.run(job, seconds=8.0)
    if launch.status is not Status.FAILED or "timed out" not in launch.outcome.reason:
        raise ContractError(f"{launch.status}: {launch.outcome.reason or 'no reason'}")
    return launch.outcome.reason


def check_out_of_memory(bench: Bench) -> str:
    """An allocation that cannot be had is reported as such."""
    launch = bench.run(bench.job(ALONE[0], IMPOSSIBLE_BATCH, distinct_batches=1))
    if "out of memory" not in launch.outcome.reason:
        raise ContractError(f"{launch.status}: {launch.outcome.reason or 'no reason'}")
    return launch.outcome.reason


def check_crash(bench: Bench) -> str:
    """An error in the worker becomes a reason that names it and its place."""
    graph = narrowed_fcn5()
    nodes = [dict(node) for node in graph["nodes"]]
    nodes[1]["op"] = "no_such_operation"
    launch = bench.run(bench.job(*ALONE, graph={**graph, "nodes": nodes}))
    reason = launch.outcome.reason
    if launch.status is not Status.FAILED or "no_such_operation" not in reason:
        raise ContractError(f"{launch.status}: {reason or 'no reason'}")
    return reason


def check_terminated(bench: Bench) -> str:
    """A rank that gets SIGTERM ends, its peer does too, and the launch says which it was."""
    job = bench.job(ALONE[0], 4, world_size=2, steps=10**6)
    launch = interrupted_launch(bench.store, job, bench.launch_seconds)
    check_nothing_left(bench.directory(launch))
    if launch.status is not Status.FAILED or not launch.outcome.reason:
        raise ContractError(f"{launch.status}: {launch.outcome.reason or 'no reason'}")
    if "timed out" in launch.outcome.reason:
        raise ContractError("the rank went on after SIGTERM")
    return launch.outcome.reason


QUICK: dict[str, Callable[[Bench], str]] = {
    "parameters": check_parameters,
    "losses": check_losses,
    "synchronisation": check_synchronisation,
    "two processes": check_two_processes,
    "phases": check_phases,
    "timeout": check_timeout,
    "out of memory": check_out_of_memory,
    "crash": check_crash,
    "SIGTERM": check_terminated,
}
"""Every check but the long one."""

CHECKS = {**QUICK, "every network": check_every_network}
"""The whole contract."""


def run_check(name: str, check: Callable[[Bench], str], bench: Bench) -> Result:
    """Run one check and say how it went."""
    begun = time.monotonic()
    passed: bool | None = True
    try:
        words = check(bench)
    except Skipped as reason:
        passed, words = None, str(reason)
    except (ContractError, PacelineError) as error:
        passed, words = False, str(error)
    return Result(name, passed, words, time.monotonic() - begun)


def run_suite(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks (`QUICK` by default) on a framework, one result at a time.

    What the workers print is kept below ``directory``, or dropped when there is none.
    """
    wanted = framework(name)
    check_runnable(wanted)
    with (
        tempfile.TemporaryDirectory() as temporary,
        Store((directory or Path(temporary)) / "contract.db") as store,
    ):
        bench = Bench(wanted, store)
        for label, check in (QUICK if checks is None else checks).items():
            yield run_check(label, check, bench)


def _loss_difference(launch: Launch, reference: Sequence[float]) -> float:
    ranks = [rank.losses for rank in launch.outcome.ranks]
    found = [math.fsum(step) / len(step) for step in zip(*ranks, strict=True)]
    if len(found) != len(reference):
        raise ContractError(f"{len(found)} losses were written, {len(reference)} expected")
    worst = max(abs(a - b) / abs(b) for a, b in zip(found, reference, strict=True))
    if not worst <= LOSS_TOLERANCE:
        shown = ", ".join(f"{a:.5f}/{b:.5f}" for a, b in zip(found, reference, strict=True))
        raise ContractError(f"{launch.model}: losses differ by {worst:.1e}: {shown}")
    return worst


def _check_timelines(bench: Bench) -> None:
    launch = bench.finished(bench.job(*ALONE, world_size=2, steps=2, instrument="phases"))
    timelines = only(read_events(events_path(bench.directory(launch), 0)), "timelines")
    if timelines is None or not timelines["steps"]:
        raise ContractError("no timelines were written")
    names = ("input_seconds", "forward_seconds", "backward_seconds", "update_seconds")
    for step in timelines["steps"]:
        total = math.fsum(step[name] for name in names)
        if not math.isclose(total, step["step_seconds"], rel_tol=0.01):
            raise ContractError(f"phases make {total:.4f} s of {step['step_seconds']:.4f} s")


__all__ = [
    "CHECKS",
    "LOSS_TOLERANCE",
    "QUICK",
    "Bench",
    "ContractError",
    "Result",
    "check_network",
    "claimed",
    "of_a_size_to_build",
    "run_check",
    "run_suite",
]
