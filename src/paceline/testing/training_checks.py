"""Checks that a worker trains like the NumPy reference, with one and several processes."""

import math
from collections.abc import Sequence

from paceline.measurement.job import Job, Optimiser
from paceline.measurement.phase_differences import phases_by_difference
from paceline.store import Launch
from paceline.testing.bench import ALONE, COUNTED_LOSSES, IMAGES, Bench
from paceline.testing.contract import ContractError, NotApplicable
from paceline.testing.reference import reference_losses
from paceline.testing.small_networks import SMALL_NETWORKS

CORES_JOB, CORES_STEPS = ("fcn5", 64), 6
CORES_TOLERANCE = 1.05
"""Largest CPU time over wall time of the counted steps per thread."""

LOSS_TOLERANCE = 2e-4
"""Relative difference of a float32 framework's loss from the float64 reference, over 5 steps."""

SMALL_BATCH = 4
SMALL_LEARNING_RATE, SMALL_TOLERANCE = 0.1, 2e-5
"""For small networks: detects updates that are 1 % off; frameworks differ by less than 1e-6."""


def check_losses(bench: Bench) -> str:
    """The first losses, from the same weights and data, agree with the NumPy reference."""
    worst, left = 0.0, ""
    for job in (bench.job(*ALONE), bench.job(*IMAGES)):
        if bench.framework.claims(job.graph):
            worst = max(worst, _loss_difference(bench.finished(job), reference_losses(job)))
        else:
            left += f"; {job.model} is not supported"
    within = f"within {worst:.1e} of the reference (limit {LOSS_TOLERANCE})"
    return f"{COUNTED_LOSSES} losses {within}{left}"


def check_operations(bench: Bench) -> str:
    """The same, with a tighter tolerance, for small networks that together use every operation."""
    worst, left = 0.0, []
    for name in SMALL_NETWORKS:
        job = small_job(bench, name)
        if bench.framework.claims(job.graph):
            launch, reference = bench.finished(job), reference_losses(job)
            worst = max(worst, _loss_difference(launch, reference, SMALL_TOLERANCE))
        else:
            left.append(f"; {name} is not supported")
    trained = len(SMALL_NETWORKS) - len(left)
    return f"{trained} networks within {worst:.1e} of the reference{''.join(left)}"


def small_job(bench: Bench, name: str) -> Job:
    """Return a short job of a small network."""
    optimiser = Optimiser(learning_rate=SMALL_LEARNING_RATE)
    graph = SMALL_NETWORKS[name]().to_json()
    return bench.job(name, SMALL_BATCH, graph=graph, optimiser=optimiser)


def check_synchronisation(bench: Bench) -> str:
    """Two processes with half the batch each have the losses of one with the whole batch."""
    if not bench.framework.synchronous:
        raise NotApplicable("its updates are asynchronous")
    model, batch = ALONE
    job = bench.job(model, batch // 2, world_size=2)
    worst = _loss_difference(bench.finished(job), reference_losses(job))
    return f"mean loss of 2 processes within {worst:.1e} of that of 1 process"


def check_two_processes(bench: Bench) -> str:
    """Two processes train with and without communication."""
    model, batch = ALONE
    for synchronise in (True, False):
        job = bench.job(model, batch // 2, world_size=2, synchronise=synchronise)
        launch = bench.finished(job)
        if any(not math.isfinite(loss) for rank in launch.outcome.ranks for loss in rank.losses):
            raise ContractError("a loss is not a number")
    return "with and without communication"


def check_cores(bench: Bench) -> str:
    """One or two processes use no more cores than they have threads.

    A busy machine hides overuse, so the affinity of all threads is checked as well.
    """
    found = []
    for world in (1, 2):
        job = bench.job(*CORES_JOB, world_size=world, steps=CORES_STEPS, warmup_steps=2)
        launch = bench.finished(job)
        used, allowed = launch.cores_used, launch.outcome.facts["thread_cores"]
        if not used <= CORES_TOLERANCE * job.threads:
            raise ContractError(
                f"a process with {job.threads} thread used {used:.2f} cores (world size {world})"
            )
        if any(len(cores) > job.threads for cores in allowed):
            raise ContractError(
                f"a process with {job.threads} thread may use {max(map(len, allowed))} "
                f"cores (world size {world})"
            )
        found.append(f"{used:.2f}")
    return f"{' and '.join(found)} cores per thread with 1 and 2 processes; all threads are pinned"


def check_phases(bench: Bench) -> str:
    """Phases add up to the step, by difference and by the worker's own timers."""
    job = bench.job(*ALONE, world_size=2, steps=2, instrument="difference")
    launch = bench.finished(job)
    phases = phases_by_difference(launch.outcome.facts.get("parts", {}))
    if phases is None:
        raise ContractError("the worker wrote no parts")
    parts = (phases.forward_seconds, phases.backward_seconds, phases.update_seconds)
    total = math.fsum(part or 0.0 for part in parts) + phases.exposed_seconds
    if not math.isclose(total, phases.step_seconds, rel_tol=1e-6):
        raise ContractError(
            f"the phases sum to {total:.4f} s, the step takes {phases.step_seconds:.4f} s"
        )
    known = sum(part is not None for part in parts) + (phases.collective_seconds is not None)
    if "phases" in bench.framework.instruments:
        _check_timelines(bench)
    return f"{known} of 4 parts measured separately, sum {total * 1e3:.0f} ms"


def _check_timelines(bench: Bench) -> None:
    launch = bench.finished(bench.job(*ALONE, world_size=2, steps=2, instrument="phases"))
    timelines = bench.event(launch, "timelines")
    if timelines is None or not timelines["steps"]:
        raise ContractError("the worker wrote no timelines")
    names = ("input_seconds", "forward_seconds", "backward_seconds", "update_seconds")
    for step in timelines["steps"]:
        total = math.fsum(step[name] for name in names)
        if not math.isclose(total, step["step_seconds"], rel_tol=0.01):
            raise ContractError(
                f"the phases sum to {total:.4f} s, the step takes {step['step_seconds']:.4f} s"
            )


def _loss_difference(
    launch: Launch, reference: Sequence[float], tolerance: float = LOSS_TOLERANCE
) -> float:
    ranks = [rank.losses for rank in launch.outcome.ranks]
    found = [math.fsum(step) / len(step) for step in zip(*ranks, strict=True)]
    if len(found) != len(reference):
        raise ContractError(f"the worker wrote {len(found)} losses, expected {len(reference)}")
    worst = max(abs(a - b) / abs(b) for a, b in zip(found, reference, strict=True))
    if not worst <= tolerance:
        shown = ", ".join(f"{a:.5f}/{b:.5f}" for a, b in zip(found, reference, strict=True))
        raise ContractError(f"{launch.model}: losses differ by {worst:.1e}: {shown}")
    return worst
