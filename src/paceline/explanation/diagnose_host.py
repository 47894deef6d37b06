"""Findings about the host: input, stalls, drift, blocked host, CPU contention, host work."""

import math
from collections.abc import Iterator

from paceline.constants import number
from paceline.explanation.core_holders import Holder, core_demand
from paceline.explanation.finding import Cause, Diagnosis, DiagnosisInput, least_share_saved
from paceline.step.state_profile import ThreadState, total
from paceline.units import format_seconds, plural

_MOST_WORKERS = 16
_MUCH = 0.25
"""Share of the step above which contention for memory is worth fewer processes."""
_CHEAPER = (
    "halve the cost of a batch (store it decoded or resized, transform less or on the device)"
)
_STALLS = {
    "checkpoint": ("a checkpoint", "write it less often, or asynchronously (in another thread)"),
    "evaluation": ("an evaluation", "evaluate less often, on fewer samples, or on all ranks"),
    "garbage collection": ("garbage collection", "gc.freeze() after building the model"),
    "logging": ("logging", "log less often, or in another thread"),
}


def host_findings(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """All findings about the host, unordered."""
    yield from _input(case)
    yield from _stalls(case)
    yield from _drift(case)
    yield from _blocked(case)
    yield from _collection(case)
    yield from _search(case)
    yield from core_findings(case)
    yield from _memory(case)
    yield from _host(case)


def _input(case: DiagnosisInput) -> Iterator[Diagnosis]:
    waited, step = case.seconds("input"), case.step_seconds
    if waited <= 0:
        return
    rest = max(step - waited, 1e-9)
    existing = case.observed.loader_workers
    loader = f" ({plural(existing, 'data-loader worker')})" if existing else ""
    saved, remedy = (_more_workers if existing else _first_workers)(case, waited, rest)
    working = total(case.step.cells, ("input",), ThreadState.RUNNING)
    why = f"each step waits {format_seconds(waited)} ({waited / step:.0%}) for its batch{loader}"
    if working > 0.5 * waited:
        why += f"; the rank itself works on it for {format_seconds(working)}"
    line = case.step.states.lines.get(
        "input/running" if working > 0.5 * waited else "input/blocked", ""
    )
    workers = remedy.partition("num_workers=")[2].partition(" ")[0]
    yield Diagnosis(
        Cause.INPUT,
        waited,
        saved,
        "training waits for input",
        why + (f", most often at {line}" if line else ""),
        remedy,
        case.width("input", waited),
        "workers prepare batches on free cores" if workers else "half the work takes half the time",
        f"num_workers={workers}" if workers else "",
    )


def _first_workers(case: DiagnosisInput, waited: float, rest: float) -> tuple[float, str]:
    """Seconds that data-loader workers save where the step itself loads, and the remedy.

    Input that sleeps needs no core. The CPU time of input fits where training and other programs
    leave cores idle; what does not fit lengthens the step. If that leaves no gain, the remedy is
    input at half the cost.
    """
    step, observed = case.step_seconds, case.observed
    workers = min(_MOST_WORKERS, max(1, math.ceil(waited / rest)))
    ranks = observed.processes / observed.launch.nodes
    cpu, own = max(observed.cpu_seconds.values(), default=0.0), _input_cpu_seconds(case, waited)
    cores = _free_cores(case) if observed.available_cores else 1.0
    idle = max(0.0, cores * rest - ranks * (cpu - own))
    late = min(own, max(0.0, ranks * own - idle) / max(cores, 1e-9))
    saved = step - max(rest + late, waited / workers)
    if saved > least_share_saved() * case.own_seconds:
        return saved, f"load batches in the background: num_workers={workers} in the data loader"
    return waited / 2.0, f"no core is free for data-loader workers: {_CHEAPER}"


def _input_cpu_seconds(case: DiagnosisInput, waited: float) -> float:
    """CPU time of input per step on the typical rank, at most ``waited``.

    Older launches have no states: what their CPU time exceeds computing by, is input.
    """
    if case.step.states.knows_states:
        return min(waited, total(case.step.cells, ("input",), ThreadState.RUNNING))
    cpu = max(case.observed.cpu_seconds.values(), default=0.0)
    parts = case.step.parts
    computing = parts.compute + parts.batch + parts.memory + parts.handling
    return min(waited, max(0.0, cpu - computing))


def _more_workers(case: DiagnosisInput, waited: float, rest: float) -> tuple[float, str]:
    """Seconds that more workers save if cores are free, and the remedy.

    A worker needs ``existing`` steps for a batch. Without free cores the remedy is input at half
    the cost.
    """
    # Each worker of a PyTorch DataLoader loads whole batches, and batches are consumed in order: a
    # step that waits takes 1 / existing of the time of one batch.
    existing, step = case.observed.loader_workers, case.step_seconds
    demand, most = core_demand(case.observed), _MOST_WORKERS
    if case.observed.available_cores:
        # A rank keeps as many cores as it has threads.
        free = int(_free_cores(case) / demand.ranks) - demand.threads
        most = min(most, max(existing, free))
    workers = min(most, math.ceil(existing * step / rest))
    if workers > existing:
        remedy = f"num_workers={workers} in the data loader instead of {existing}"
        return step - max(rest, existing * step / workers), remedy
    return step - max(rest, step / 2.0), (
        f"no core is free for more than {plural(existing, 'worker')} per process: {_CHEAPER}"
    )


def _free_cores(case: DiagnosisInput) -> float:
    """Cores that other programs leave to the ranks."""
    return max(0.0, case.observed.available_cores - case.observed.other_cores)


def _collection(case: DiagnosisInput) -> Iterator[Diagnosis]:
    facts = case.observed.launch.outcome.facts
    seconds = case.seconds("collection") or float(facts.get("collection_seconds") or 0.0)
    if seconds > 0:
        yield Diagnosis(
            Cause.COLLECTION,
            seconds,
            seconds,
            "Python's garbage collection stops training",
            f"it takes {format_seconds(seconds)} of a mean step on the rank that it stops longest",
            "call gc.freeze() after building the model, then gc.disable(), and gc.collect() on "
            "all ranks in the same step every few hundred steps",
            case.width("collection", seconds),
            "memory suffices until the next collection",
        )


def _stalls(case: DiagnosisInput) -> Iterator[Diagnosis]:
    stalls = case.step.states.stalls
    if stalls is None or case.step.parts.stalls <= 0:
        return
    seconds, each = stalls.seconds_per_step, format_seconds(stalls.each_seconds)
    what, remedy = _STALLS.get(
        stalls.kind, ("other work of the host", "do it less often, or in another thread")
    )
    every = f"about every {stalls.every:.3g} steps" if stalls.count > 1 else "once"
    line = f", most often at {stalls.line}" if stalls.line else ""
    yield Diagnosis(
        Cause.PAUSES,
        seconds,
        seconds,
        f"training stalls for {what}",
        f"{every}, rank {stalls.rank} takes {each} longer ({stalls.count} of {stalls.steps} "
        f"steps){line}",
        remedy,
        case.width("stalls", seconds),
        "it does not delay training any more",
    )


def _drift(case: DiagnosisInput) -> Iterator[Diagnosis]:
    drift = case.step.states.drift
    if drift is None or case.step.parts.drift <= 0:
        return
    activity, _, state = drift.cell.partition("/")
    how = {
        "running": "more CPU time: a growing sequence, buffer or graph",
        "blocked": "longer waits: a growing file, queue or log",
    }.get(state, "longer time")
    line = case.step.states.lines.get(drift.cell, "")
    yield Diagnosis(
        Cause.DRIFT,
        drift.seconds,
        drift.seconds,
        f"steps get longer: from {format_seconds(drift.first_seconds)} to "
        f"{format_seconds(drift.last_seconds)}",
        f"the growth is in {activity}, as {how}" + (f"; most often at {line}" if line else ""),
        "find what is kept from step to step (lists of losses with their graphs, caches, "
        "growing inputs)",
        case.width("drift", drift.seconds),
        "steps stay as fast as the first ones",
    )


def _blocked(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """The training thread neither computes nor waits for messages or input."""
    seconds = case.seconds("blocked")
    if seconds <= 0:
        return
    cells = {
        cell.activity: value
        for cell, value in case.step.cells.items()
        if cell.state is ThreadState.BLOCKED
        and cell.activity not in ("input", "communicate", "collective")
    }
    where = max(cells, key=lambda activity: cells[activity], default="a step")
    when = ""
    if case.before is not None:
        alone = case.before.parts.blocked
        when = ", as with one process" if alone > 0.5 * seconds else ", but not with one process"
    line = case.line_of("blocked")
    yield Diagnosis(
        Cause.BLOCKED,
        seconds,
        seconds,
        f"the host is blocked in {where}{when}",
        f"the training thread neither runs nor wants a core for {format_seconds(seconds)} of each "
        "step (sleep, I/O, a lock, another process)" + (f"; most often at {line}" if line else ""),
        "remove the wait, or do it in another thread",
        case.width("blocked", seconds),
        "nothing else waits for it",
    )


def _search(case: DiagnosisInput) -> Iterator[Diagnosis]:
    seconds = case.seconds("search")
    if seconds > 0:
        yield Diagnosis(
            Cause.UNUSED,
            seconds,
            seconds,
            "DDP searches the graph for unused parameters in each step",
            f"the search after forward takes {format_seconds(seconds)}",
            "find_unused_parameters=False, or static_graph=True if the graph never changes",
            case.width("search", seconds),
            "all parameters take part in each step",
            "find_unused_parameters=0",
        )


def _memory(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """More CPU time for the same work; other programs take caches too."""
    seconds = case.seconds("memory")
    if seconds < _MUCH * case.own_seconds:
        return
    if case.observed.other_cores > number("explain.finding.some_core"):
        return
    yield Diagnosis(
        Cause.MEMORY,
        seconds,
        seconds,
        "processes contend for memory bandwidth and caches",
        f"the same work takes {format_seconds(seconds)} more CPU time than in one process",
        "use fewer processes with larger batches, or spread them over sockets or nodes",
        case.width("memory", seconds),
        "each process works as fast as alone",
    )


def core_findings(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """CPU contention by who held the cores; uninstrumented steps have this evidence too."""
    demand, held = core_demand(case.observed), case.holders
    why = _why(case)
    found = {name: held.by_holder.get(name, 0.0) for name in Holder}
    others = case.observed.other_cores
    if case.step.parts.contention <= case.noise_seconds and not case.step.by_steps:
        return

    def contention(
        cause: Cause, seconds: float, verdict: str, remedy: str, trial: str = ""
    ) -> Diagnosis:
        width = case.width("contention", seconds)
        assumes = "the cores become free for the ranks"
        return Diagnosis(cause, seconds, seconds, verdict, why, remedy, width, assumes, trial)

    if found[Holder.THREADS] > 0:
        fewer = max(1, demand.cores // demand.ranks)
        yield contention(
            Cause.THREADS,
            found[Holder.THREADS],
            f"thread oversubscription: {plural(demand.ranks, 'process')} with {demand.threads} "
            f"threads each on {plural(demand.cores, 'core')}",
            f"OMP_NUM_THREADS={fewer} (or torch.set_num_threads({fewer}))",
            f"threads={fewer}",
        )
    if found[Holder.RANKS] > 0:
        pinned = "are pinned to" if case.observed.confined else "share"
        yield contention(
            Cause.CORES,
            found[Holder.RANKS],
            f"CPU contention: {plural(demand.ranks, 'process')} {pinned} "
            f"{plural(demand.cores, 'core')}",
            "give each process its own core (taskset, --cpus-per-task, pinning)",
        )
    if found[Holder.WORKERS] > 0:
        yield _crowding_workers(case, found[Holder.WORKERS], why)
    if found[Holder.OTHERS] > 0:
        yield contention(
            Cause.OTHERS,
            found[Holder.OTHERS],
            f"CPU contention: other programs used {others:.1f} cores",
            "stop other programs, or use an idle machine",
        )
    if held.unknown > max(case.bottleneck_seconds, case.noise_seconds):
        yield contention(
            Cause.CORES,
            held.unknown,
            "CPU contention: there are more processes and threads than cores",
            "use fewer threads or processes (OMP_NUM_THREADS=1)",
        )


def _why(case: DiagnosisInput) -> str:
    if case.observed.delay_seconds:
        return f"ranks were runnable without a core for {_delays(case)} of each step"
    return "ranks took longer than their CPU time"


def _crowding_workers(case: DiagnosisInput, seconds: float, why: str) -> Diagnosis:
    demand, workers = core_demand(case.observed), case.observed.loader_workers
    fewer = max(1, demand.cores // demand.ranks - 1)
    remedy = f"num_workers={fewer} in the data loader"
    if fewer >= workers:
        remedy = "use fewer processes or cheaper input"
    return Diagnosis(
        Cause.WORKERS,
        seconds,
        seconds,
        f"CPU contention: {plural(demand.ranks, 'process')} with "
        f"{plural(workers, 'data-loader worker')} each share {plural(demand.cores, 'core')}",
        why,
        remedy,
        case.width("contention", seconds),
        "fewer workers prepare the batches in time",
        f"num_workers={fewer}" if fewer < workers else "",
    )


def _delays(case: DiagnosisInput) -> str:
    """Shortest and longest time without a core over ranks, and that of communication threads."""
    delays = sorted((seconds, rank) for rank, seconds in case.observed.delay_seconds.items())
    (least, _), (most, rank) = delays[0], delays[-1]
    small = least_share_saved() * case.own_seconds
    text = format_seconds(most)
    if len(delays) > 1 and most - least > small:
        text = f"{format_seconds(least)} (rank {rank}: {format_seconds(most)})"
    carried = case.observed.message_delay_seconds
    if carried > small:
        text += f", their communication threads for {format_seconds(carried)}"
    return text


def _host(case: DiagnosisInput) -> Iterator[Diagnosis]:
    lost = case.seconds("host")
    # Without states, the host's time contains waits for a core: it is as uncertain as the step.
    noise = 0.0 if case.step.states.knows_states else case.noise_seconds
    if lost > max(noise, least_share_saved() * case.own_seconds):
        line = case.step.states.lines.get("host/running", "")
        yield Diagnosis(
            Cause.HOST,
            lost,
            lost,
            "the host works between the phases of each step",
            f"{format_seconds(lost)} of each step is neither computation nor communication"
            + (f"; most often at {line}" if line else ""),
            "do it less often, compile the graph, use fewer and larger operations",
            case.width("host", lost),
            "the work is not needed in each step",
        )
