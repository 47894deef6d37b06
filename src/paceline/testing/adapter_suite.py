"""The contract of a framework's worker, as checks for workers of any package.

    from paceline.testing.adapter_suite import run_suite
    for result in run_suite("torch-ddp"):
        print(result)

Each check starts real launches through Paceline's launcher and checks the result: the described
network, the losses of the NumPy reference, phases that add up, a reason
for every failure, and no leftover processes.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.command import check_runnable, runs_in_our_environment
from paceline.frameworks.environments.environment_state import record_verification
from paceline.frameworks.framework_registry import framework
from paceline.measurement.job import Job, Optimiser
from paceline.measurement.phase_differences import phases_by_difference
from paceline.store import Launch, Status, Store
from paceline.testing.bench import ALONE, COUNTED_LOSSES, IMAGES, Bench
from paceline.testing.contract import ContractError, NotApplicable, Result, run_check
from paceline.testing.leftovers import check_nothing_left, interrupted_launch
from paceline.testing.reference import reference_losses
from paceline.testing.small_networks import SMALL_NETWORKS
from paceline.workload import zoo

CORES_JOB, CORES_STEPS = ("fcn5", 64), 6
CORES_TOLERANCE = 1.05
"""Largest CPU time over wall time of the counted steps per thread."""

LOSS_TOLERANCE = 2e-4
"""Relative difference of a float32 framework's loss from the float64 reference, over 5 steps."""

BF16_TOLERANCE = 0.05
"""The same for bf16, whose numbers are rounded by up to 0.4 %."""

ADAM_RATE, ADAMW_DECAY = 1e-3, 0.1

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


def check_adam(bench: Bench) -> str:
    """Adam and AdamW have the losses of the reference."""
    names = [name for name in bench.framework.optimizers if name != "sgd"]
    if not names:
        raise NotApplicable("it trains with sgd only")
    worst = 0.0
    for name in names:
        decay = ADAMW_DECAY if name == "adamw" else 0.0
        job = bench.job(*ALONE, optimiser=Optimiser(name, ADAM_RATE, weight_decay=decay))
        worst = max(worst, _loss_difference(bench.finished(job), reference_losses(job)))
    return f"{' and '.join(names)} within {worst:.1e} of the reference"


def check_mixed_precision(bench: Bench) -> str:
    """In bf16, losses are near those of the reference, and differ from them by its rounding."""
    if "bf16" not in bench.framework.precisions:
        raise NotApplicable("it trains in fp32 only")
    found = []
    for model in (ALONE, IMAGES):
        job = bench.job(*model, precision="bf16")
        worst = _loss_difference(bench.finished(job), reference_losses(job), BF16_TOLERANCE)
        if worst <= LOSS_TOLERANCE:
            raise ContractError(f"{job.model}: losses have the precision of fp32 ({worst:.1e})")
        found.append(f"{worst:.1e}")
    return f"bf16 losses within {' and '.join(found)} of the reference (limit {BF16_TOLERANCE})"


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
        raise ContractError("the worker reported no times of parts")
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


LARGEST_BUILT_PARAMETERS = 70e6
"""Larger networks are not built: they need much memory and add little coverage."""

FLOP_TOLERANCE = 0.05
"""Relative tolerance of the FLOPs that a framework counts."""


def check_parameters(bench: Bench) -> str:
    """Supported networks have the described parameters and FLOPs."""
    names = ("fcn5", IMAGES[0])
    built = claimed(bench.framework, names)
    checked = [check_network(bench, name) for name in built]
    others = [f"{name} is not supported" for name in names if name not in built]
    return "; ".join([*checked, *others])


def check_every_network(bench: Bench) -> str:
    """Every supported network of the zoo up to `LARGEST_BUILT_PARAMETERS` builds."""
    names = zoo.names()
    ours = claimed(bench.framework, names)
    small = [name for name in ours if is_small_enough(name)]
    for name in small:
        check_network(bench, name)
    left = [name for name in names if name not in ours]
    summary = f"{len(small)} networks built, {len(ours) - len(small)} larger ones skipped"
    return f"{summary}; not supported: {', '.join(left) or 'none'}"


def claimed(wanted: FrameworkAdapter, names: Sequence[str]) -> list[str]:
    """Return the networks among ``names`` that the framework's worker can build."""
    return [name for name in names if wanted.claims(zoo.build(name).to_json())]


def is_small_enough(name: str) -> bool:
    return float(zoo.build(name).cost(1).parameters) <= LARGEST_BUILT_PARAMETERS


def check_network(bench: Bench, name: str) -> str:
    """Build one network of the zoo; check its parameters, and its FLOPs where counted."""
    graph = zoo.build(name)
    job = bench.job(name, 2, steps=1, distinct_batches=1, sequence=graph.sequence, count_flops=True)
    ready = bench.event(bench.finished(job), "ready")
    if ready is None:
        raise ContractError(f"{name}: the worker wrote no 'ready' event")
    described = int(graph.cost(1).trainable_parameters)
    if ready["parameters"] != described:
        raise ContractError(f"{name} has {ready['parameters']} parameters, expected {described}")
    counted = ready.get("forward_flops")
    if counted is None:
        return f"{name}: {described} parameters, FLOPs not counted by this framework"
    forward = float(graph.cost(2).forward_flops)
    if not math.isclose(counted, forward, rel_tol=FLOP_TOLERANCE):
        raise ContractError(f"{name} computes {counted:.3g} FLOP, expected {forward:.3g}")
    return f"{name}: {described} parameters, {counted:.3g} FLOP ({counted / forward - 1:+.1%})"


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


QUICK: dict[str, Callable[[Bench], str]] = {
    "parameters": check_parameters,
    "losses": check_losses,
    "operations": check_operations,
    "adam": check_adam,
    "mixed precision": check_mixed_precision,
    "synchronisation": check_synchronisation,
    "two processes": check_two_processes,
    "phases": check_phases,
    "cores": check_cores,
    "timeout": check_timeout,
    "out of memory": check_out_of_memory,
    "crash": check_crash,
    "SIGTERM": check_terminated,
}
"""All checks except the long one."""

CHECKS = {**QUICK, "every network": check_every_network}
"""The whole contract."""


def run_suite(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks (`QUICK` by default) on a framework, one result at a time.

    Output of the workers is kept below ``directory``, or dropped without one.
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


def verify(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks as `run_suite` does, and record in the environment whether all passed."""
    passed = True
    for result in run_suite(name, checks, directory):
        passed = passed and result.passed is not False
        yield result
    wanted = framework(name)
    if runs_in_our_environment(wanted):
        record_verification(wanted.environment, name, passed)
