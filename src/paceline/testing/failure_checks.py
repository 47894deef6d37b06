"""Checks that a failing launch ends with a reason and leaves no process."""

from paceline.measurement.job import Optimiser
from paceline.store import Launch, Status
from paceline.testing.bench import ALONE, Bench
from paceline.testing.contract import ContractError
from paceline.testing.leftovers import check_nothing_left, interrupted_launch

TIMEOUT_SECONDS = (8.0, 24.0, 72.0)
"""Timeouts to try in turn: the next one if the ranks were not training yet."""

IMPOSSIBLE_BATCH = 10**12
"""Samples that exceed every address space, so that the allocation fails on any machine."""

ENDLESS_STEPS = 10**6


def check_timeout(bench: Bench) -> str:
    """A launch that times out while training is ended with that reason."""
    job = bench.job(*ALONE, world_size=2, steps=ENDLESS_STEPS)
    for seconds in TIMEOUT_SECONDS:
        launch = bench.run(job, seconds)
        if launch.status is not Status.FAILED or "timed out" not in launch.outcome.reason:
            raise ContractError(_ending(launch))
        if all(bench.event(launch, "ready", rank) for rank in range(job.world_size)):
            return launch.outcome.reason
    raise ContractError(f"not all ranks were ready after {TIMEOUT_SECONDS[-1]:.0f} s")


def check_out_of_memory(bench: Bench) -> str:
    """A failed allocation is reported as out of memory."""
    launch = bench.run(bench.job(ALONE[0], IMPOSSIBLE_BATCH, distinct_batches=1))
    if "out of memory" not in launch.outcome.reason:
        raise ContractError(_ending(launch))
    return launch.outcome.reason


def check_crash(bench: Bench) -> str:
    """The reason names an error in the worker, with file and line."""
    launch = bench.run(bench.job(*ALONE, optimiser=Optimiser("no_such_optimiser")))
    if launch.status is not Status.FAILED or "no_such_optimiser" not in launch.outcome.reason:
        raise ContractError(_ending(launch))
    return launch.outcome.reason


def check_terminated(bench: Bench) -> str:
    """After SIGTERM to one rank all ranks end, and the reason names the rank."""
    job = bench.job(ALONE[0], 4, world_size=2, steps=ENDLESS_STEPS)
    launch = interrupted_launch(bench.store, job, bench.launch_seconds)
    check_nothing_left(bench.directory(launch))
    if launch.status is not Status.FAILED or not launch.outcome.reason:
        raise ContractError(_ending(launch))
    if "timed out" in launch.outcome.reason:
        raise ContractError("the rank continued after SIGTERM")
    return launch.outcome.reason


def _ending(launch: Launch) -> str:
    return f"{launch.status}: {launch.outcome.reason or 'no reason'}"
