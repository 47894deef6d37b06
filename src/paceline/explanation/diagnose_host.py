"""Findings about the host: input, pauses, CPU contention, framework overhead."""

import math
from collections.abc import Iterator

from paceline.constants import number
from paceline.explanation.finding import (
    Cause,
    Diagnosis,
    DiagnosisInput,
    UninstrumentedInput,
    least_share_saved,
)
from paceline.explanation.measured_configuration import MeasuredConfiguration, computing_seconds
from paceline.units import format_seconds, plural

_MOST_WORKERS = 16
_CHEAPER = (
    "halve the cost of a batch (store it decoded or resized, transform less or on the device)"
)


def host_findings(case: DiagnosisInput) -> Iterator[Diagnosis]:
    """All findings about the host, unordered."""
    yield from _input(case)
    yield from _pauses(case)
    yield from _collection(case)
    yield from core_findings(case)
    yield from _host(case)


def _input(case: DiagnosisInput) -> Iterator[Diagnosis]:
    waited, step = case.overheads.input, case.step_seconds
    if waited <= 0:
        return
    rest = max(step - waited, 1e-9)
    existing = case.observed.loader_workers
    loader = f" ({plural(existing, 'data-loader worker')})" if existing else ""
    saved, remedy = (_more_workers if existing else _first_workers)(case, rest)
    yield Diagnosis(
        Cause.INPUT,
        waited,
        saved,
        "training waits for input",
        f"each step waits {format_seconds(waited)} ({waited / step:.0%}) for its batch{loader}",
        remedy,
    )


def _first_workers(case: DiagnosisInput, rest: float) -> tuple[float, str]:
    """Seconds that data-loader workers save where the step itself loads, and the remedy.

    Workers do the same work on free cores, so a step is no shorter than the CPU time of all ranks
    spread over these. If that leaves no gain, the remedy is input at half the cost.
    """
    waited, step, observed = case.overheads.input, case.step_seconds, case.observed
    workers = min(_MOST_WORKERS, max(1, math.ceil(waited / rest)))
    ranks = observed.processes / observed.launch.nodes
    busy = ranks * max(observed.cpu_seconds.values(), default=0.0)
    if observed.available_cores:
        busy /= max(observed.free_cores, 1e-9)
    saved = step - max(rest, waited / workers, busy)
    if saved > least_share_saved() * step:
        return saved, f"load batches in the background: num_workers={workers} in the data loader"
    return waited / 2.0, f"no core is free for data-loader workers: {_CHEAPER}"


def _more_workers(case: DiagnosisInput, rest: float) -> tuple[float, str]:
    """Seconds that more workers save if cores are free, and the remedy.

    A worker needs ``existing`` steps for a batch. Without free cores the remedy is input at half
    the cost.
    """
    # Each worker of a PyTorch DataLoader loads whole batches, and batches are consumed in order: a
    # step that waits takes 1 / existing of the time of one batch.
    existing, step = case.observed.loader_workers, case.step_seconds
    ranks = case.observed.processes / case.observed.launch.nodes
    most = _MOST_WORKERS
    if case.observed.available_cores:
        most = max(existing, int(case.observed.free_cores / ranks) - 1)
    workers = min(most, math.ceil(existing * step / rest))
    if workers > existing:
        remedy = f"num_workers={workers} in the data loader instead of {existing}"
        return step - max(rest, existing * step / workers), remedy
    return step - max(rest, step / 2.0), (
        f"no core is free for more than {plural(existing, 'worker')} per process: {_CHEAPER}"
    )


def _collection(case: DiagnosisInput) -> Iterator[Diagnosis]:
    seconds = float(case.observed.launch.outcome.facts.get("collection_seconds") or 0.0)
    if seconds > 0:
        yield Diagnosis(
            Cause.COLLECTION,
            seconds,
            seconds,
            "Python's garbage collection stops training",
            f"it takes {format_seconds(seconds)} of a mean step on the rank that it stops longest",
            "call gc.freeze() after building the model, then gc.disable(), and gc.collect() on "
            "all ranks in the same step every few hundred steps",
        )


def _pauses(case: DiagnosisInput) -> Iterator[Diagnosis]:
    paused = case.profile.pauses
    if paused is None or case.overheads.pauses <= 0:
        return
    yield Diagnosis(
        Cause.PAUSES,
        paused.seconds,
        paused.seconds,
        f"training pauses: {paused.count} of {paused.steps} steps are "
        f"{format_seconds(paused.each_seconds)} longer",
        f"about every {paused.every:.0f} steps the host of rank {paused.rank} does other work "
        "between two steps: a checkpoint, an evaluation, the start of an epoch, garbage collection",
        "do it less often or asynchronously (asynchronous checkpoints, persistent_workers)",
    )


def core_findings(case: UninstrumentedInput) -> Iterator[Diagnosis]:
    """Causes of CPU contention; uninstrumented steps have this evidence too."""
    waited = case.overheads.cores
    if waited <= case.noise_seconds or case.observed.undisturbed:
        return
    cores, facts = case.observed.cores, case.observed.launch.outcome.facts
    ranks = case.observed.processes // case.observed.launch.nodes
    others = facts.get("other_busy_cores") or 0.0
    if case.observed.delay_seconds:
        why = f"ranks were runnable without a core for {_delays(case)} of each step"
    else:
        why = f"computation takes {_stretch(case.observed):.1f} times its CPU time"

    def contention(seconds: float, reason: str, remedy: str) -> Diagnosis:
        verdict = f"CPU contention: {reason}"
        return Diagnosis(Cause.CORES, seconds, seconds, verdict, why, remedy)

    oversubscribed, fewer = _crowding_workers(case)
    if case.observed.confined:
        turns = waited
        if case.observed.delay_seconds and others > number("explain.finding.some_core"):
            turns = min(waited, (ranks / len(cores) - 1.0) * (case.step_seconds - waited))
        yield contention(
            turns,
            f"{ranks} processes are pinned to {plural(len(cores), 'core')}",
            "give each process its own core (taskset, --cpus-per-task, pinning)",
        )
        waited -= turns
        if waited <= 0:
            return
    if others > number("explain.finding.some_core"):
        yield contention(
            waited,
            f"other programs used {others:.1f} cores{oversubscribed and ', and ' + oversubscribed}",
            f"stop other programs, or use an idle machine{oversubscribed and '; ' + fewer}",
        )
    elif oversubscribed:
        yield contention(waited, oversubscribed, fewer)
    else:
        yield contention(
            waited,
            "there are more processes and threads than cores",
            "use fewer threads or processes (OMP_NUM_THREADS=1)",
        )


def _stretch(observed: MeasuredConfiguration) -> float:
    """Wall time over CPU time of the typical rank's computation."""
    usual = None if observed.profile is None else observed.profile.usual
    cpu = observed.cpu_seconds.get(0 if usual is None else usual.rank, 0.0)
    computing = observed.group.step.mean if usual is None else computing_seconds(usual)
    return computing / max(cpu, 1e-9)


def _crowding_workers(case: UninstrumentedInput) -> tuple[str, str]:
    """Reason and remedy if there are more data-loader workers than cores, else empty strings."""
    workers, cores = case.observed.loader_workers, case.observed.available_cores
    ranks = case.observed.processes // case.observed.launch.nodes
    if not workers or not 0 < cores < ranks * (1 + workers):
        return "", ""
    fewer = max(1, cores // ranks - 1)
    reason = (
        f"{plural(ranks, 'process')} with {plural(workers, 'data-loader worker')} each share "
        f"{plural(cores, 'core')}"
    )
    if fewer >= workers:
        return reason, "use fewer processes or cheaper input"
    return reason, f"num_workers={fewer} in the data loader"


def _delays(case: UninstrumentedInput) -> str:
    """Shortest and longest time without a core over ranks, and that of communication threads."""
    delays = sorted((seconds, rank) for rank, seconds in case.observed.delay_seconds.items())
    (least, _), (most, rank) = delays[0], delays[-1]
    small = least_share_saved() * case.step_seconds
    text = format_seconds(most)
    if len(delays) > 1 and most - least > small:
        text = f"{format_seconds(least)} (rank {rank}: {format_seconds(most)})"
    carried = case.observed.message_delay_seconds
    if carried > small:
        text += f", their communication threads for {format_seconds(carried)}"
    return text


def _host(case: DiagnosisInput) -> Iterator[Diagnosis]:
    lost = case.overheads.framework + max(0.0, case.overheads.idle)
    if lost > case.noise_seconds:
        yield Diagnosis(
            Cause.HOST,
            lost,
            lost,
            "framework overhead: devices wait for the host between phases",
            f"{format_seconds(lost)} of each step is neither computation nor communication",
            "compile the graph, use fewer and larger operations, log less often",
        )
