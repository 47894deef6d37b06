"""Findings about the host of a step: its input, pauses, cores and what lies between phases."""

import math
from collections.abc import Iterator

from paceline.analyse.finding import Case, Cause, Diagnosis, Outside, least_share_saved
from paceline.analyse.observed import Observed, computing_seconds
from paceline.constants import number
from paceline.units import format_seconds

_MOST_WORKERS = 16


def host_findings(case: Case) -> Iterator[Diagnosis]:
    """All findings about the host, in no order."""
    yield from _input(case)
    yield from _pauses(case)
    yield from _collection(case)
    yield from core_findings(case)
    yield from _host(case)


def _input(case: Case) -> Iterator[Diagnosis]:
    waited, step = case.losses.input, case.step_seconds
    if waited <= 0:
        return
    rest = max(step - waited, 1e-9)
    existing = case.observed.loader_workers
    told = f", with {existing} data-loader worker{'s' if existing > 1 else ''}" if existing else ""
    saved, remedy = _more_workers(case, rest) if existing else _first_workers(waited, rest)
    yield Diagnosis(
        Cause.INPUT,
        waited,
        saved,
        "training waits for input",
        f"{format_seconds(waited)} of each step ({waited / step:.0%}) pass before a batch is "
        f"there{told}",
        remedy,
    )


def _first_workers(waited: float, rest: float) -> tuple[float, str]:
    """What a data loader with workers saves where the step itself loads: seconds, and words."""
    workers = min(_MOST_WORKERS, max(1, math.ceil(waited / rest)))
    return (
        waited + rest - max(rest, waited / workers),
        f"prepare batches beside the step: num_workers={workers} in the data loader",
    )


def _more_workers(case: Case, rest: float) -> tuple[float, str]:
    """What more workers save where each batch takes ``existing`` steps of one; if cores are left.

    Where they are not, what input of half the cost saves.
    """
    existing, step = case.observed.loader_workers, case.step_seconds
    ranks = case.observed.processes / case.observed.launch.nodes
    cores = case.observed.available_cores
    most = max(existing, int(cores / ranks) - 1) if cores else _MOST_WORKERS
    workers = min(most, math.ceil(existing * step / rest))
    if workers > existing:
        words = f"num_workers={workers} in the data loader instead of {existing}"
        return step - max(rest, existing * step / workers), words
    return step - max(rest, step / 2.0), (
        f"{existing} workers for each process leave no core for more: make a batch half as costly "
        "(stored decoded or resized, fewer transformations, on the device)"
    )


def _collection(case: Case) -> Iterator[Diagnosis]:
    seconds = float(case.observed.launch.outcome.facts.get("collection_seconds") or 0.0)
    if seconds > 0:
        yield Diagnosis(
            Cause.COLLECTION,
            seconds,
            seconds,
            "Python's garbage collection stops training",
            f"it takes {format_seconds(seconds)} of a mean step on the rank that it holds longest",
            "gc.freeze() when the model is built, then gc.disable() and gc.collect() on all ranks "
            "in the same step, every few hundred",
        )


def _pauses(case: Case) -> Iterator[Diagnosis]:
    paused = case.profile.pauses
    if paused is None:
        return
    yield Diagnosis(
        Cause.PAUSES,
        paused.seconds,
        paused.seconds,
        f"training stops now and then: {paused.count} of {paused.steps} steps are "
        f"{format_seconds(paused.each_seconds)} longer",
        f"about every {paused.every:.0f} steps the host of rank {paused.rank} does something else "
        "between two steps: a checkpoint, an evaluation, the start of an epoch, garbage collection",
        "do that less often, or beside training (asynchronous checkpoints, persistent_workers)",
    )


def core_findings(case: Outside) -> Iterator[Diagnosis]:
    """Who kept the processes from their cores; known too of steps that nobody looked into."""
    waited = case.losses.cores
    if waited <= case.noise_seconds or case.observed.undisturbed:
        return
    cores, facts = case.observed.cores, case.observed.launch.outcome.facts
    ranks = case.observed.processes // case.observed.launch.nodes
    others = facts.get("other_busy_cores") or 0.0
    if case.observed.delay_seconds:
        why = f"they were ready to run and had no core for {_delays(case)} of each step"
    else:
        why = f"computing takes {_stretch(case.observed):.1f} times its CPU time"

    def told(seconds: float, words: str, remedy: str) -> Diagnosis:
        verdict = f"processes wait for a core: {words}"
        return Diagnosis(Cause.CORES, seconds, seconds, verdict, why, remedy)

    crowd, fewer = _crowding_workers(case)
    if case.observed.confined:
        turns = waited
        if case.observed.delay_seconds and others > number("explain.finding.some_core"):
            turns = min(waited, (ranks / len(cores) - 1.0) * (case.step_seconds - waited))
        yield told(
            turns,
            f"{ranks} processes may run on {len(cores)} core{'s' if len(cores) > 1 else ''} only",
            "give each process a core of its own (taskset, --cpus-per-task, pinning)",
        )
        waited -= turns
        if waited <= 0:
            return
    if others > number("explain.finding.some_core"):
        yield told(
            waited,
            f"other programs had {others:.1f} of the cores{crowd and ', and ' + crowd}",
            f"end other programs, or use a machine alone{crowd and '; ' + fewer}",
        )
    elif crowd:
        yield told(waited, crowd, fewer)
    else:
        yield told(
            waited,
            "processes and their threads are more than the cores",
            "use fewer threads or processes (OMP_NUM_THREADS=1)",
        )


def _stretch(observed: Observed) -> float:
    """Seconds that the usual rank computes over its CPU time."""
    usual = None if observed.profile is None else observed.profile.usual
    cpu = observed.cpu_seconds.get(0 if usual is None else usual.rank, 0.0)
    computing = observed.group.step.mean if usual is None else computing_seconds(usual)
    return computing / max(cpu, 1e-9)


def _crowding_workers(case: Outside) -> tuple[str, str]:
    """That data-loader workers are too many for the cores, and what to do; empty otherwise."""
    workers, cores = case.observed.loader_workers, case.observed.available_cores
    ranks = case.observed.processes // case.observed.launch.nodes
    if not workers or not 0 < cores < ranks * (1 + workers):
        return "", ""
    fewer = max(1, cores // ranks - 1)
    words = (
        f"{ranks} process{'es' if ranks > 1 else ''} with {workers} data-loader "
        f"worker{'s' if workers > 1 else ''} each share {cores} core{'s' if cores > 1 else ''}"
    )
    if fewer >= workers:
        return words, "fewer processes, or input that costs less"
    return words, f"num_workers={fewer} in the data loader"


def _delays(case: Outside) -> str:
    """How long ranks had no core, the longest and the shortest, and their messages."""
    delays = sorted((seconds, rank) for rank, seconds in case.observed.delay_seconds.items())
    (least, _), (most, rank) = delays[0], delays[-1]
    small = least_share_saved() * case.step_seconds
    words = format_seconds(most)
    if len(delays) > 1 and most - least > small:
        words = f"{format_seconds(least)} (rank {rank}: {format_seconds(most)})"
    carried = case.observed.message_delay_seconds
    return f"{words}, their messages for {format_seconds(carried)}" if carried > small else words


def _host(case: Case) -> Iterator[Diagnosis]:
    lost = case.losses.framework + max(0.0, case.losses.idle)
    if lost > case.noise_seconds:
        yield Diagnosis(
            Cause.HOST,
            lost,
            lost,
            "the host is at work between the phases of a step, and devices wait",
            f"{format_seconds(lost)} of each step are neither computing nor messages",
            "issue less often: compiled graphs, fewer and larger operations, less logging",
        )
