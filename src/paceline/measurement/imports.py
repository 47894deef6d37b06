"""Turns what other programs wrote into launches like any other, with provenance "imported"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.measurement.readers import ParsedLog, RateScope, RateUnit, StepRecord
from paceline.measurement.run import new_launch_id
from paceline.measurement.traces import ParsedTrace
from paceline.step import Origin, Phase, Step, Task, profile_steps
from paceline.store import Launch, LayerTiming, Outcome, RankSteps, Status
from paceline.store.database import now

IMPORTED = "imported"
MOST_STEPS = 20_000


@dataclass(frozen=True)
class UserFacts:
    """Facts given on the command line that a log lacks; None or empty where none was given."""

    model: str = ""
    batch_per_rank: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    precision: str = ""


def launch_of_log(log: ParsedLog, source: Path, study: str, told: UserFacts) -> Launch:
    """The launch that a log is about; raises `InputError` for what neither log nor user tells."""
    if log.contradictions:
        raise InputError(
            f"{source} contradicts itself, so nothing of it is stored: {log.contradictions[0]}",
            f"paceline import {source} --dry-run shows what was read",
        )
    ranks = told.ranks or log.ranks or 1
    global_batch = told.batch_per_rank * ranks if told.batch_per_rank else log.global_batch
    if not log.steps and log.throughput is None:
        raise _nothing_timed(source)
    if global_batch is None:
        raise InputError(
            f"{source} does not tell how many samples a step has",
            "give --batch, samples per process and step",
        )
    records = _records(log, global_batch, source)
    series = _rank_series(records)
    outcome = Outcome(
        Status.FINISHED,
        now(),
        ranks=tuple(RankSteps(rank, seconds) for rank, seconds in series.items()),
        layers=tuple(
            LayerTiming(
                layer.name, layer.forward_seconds, layer.backward_seconds, layer.gradient_bytes
            )
            for layer in log.layers
        ),
        timeline=_phase_step(log.phases, log.program),
        facts=_facts(log, told),
    )
    return _launch(
        source,
        study,
        told,
        program=log.program,
        model=log.model,
        ranks=ranks,
        nodes=log.nodes,
        global_batch=global_batch,
        precision=log.precision,
        instrument="layers" if log.layers else "phases" if log.phases else "none",
        warmup_steps=_leading_warm_up(records),
        outcome=outcome,
        sequence=log.sequence_length,
    )


def launch_of_trace(trace: ParsedTrace, source: Path, study: str, told: UserFacts) -> Launch:
    """The launch that a trace is about: its steps, and the typical one as timeline."""
    timeline = trace.typical_step
    if timeline is None or not trace.training_steps:
        raise InputError(
            f"{source} holds no training step", "record at least one whole training step"
        )
    if told.batch_per_rank is None:
        raise InputError(
            f"a trace does not tell how many samples a step has: {source}",
            "give --batch, samples per process and step",
        )
    ranks = told.ranks or trace.ranks or len(timeline.ranks)
    profile = profile_steps(trace.training_steps[1:] or trace.training_steps)
    outcome = Outcome(
        Status.FINISHED,
        now(),
        ranks=_trace_ranks(trace),
        timeline=timeline,
        facts={
            **trace.facts,
            "unread": trace.unread,
            "warnings": list(trace.warnings),
            "profile": None if profile is None else profile.to_json(),
        },
    )
    return _launch(
        source,
        study,
        told,
        program=trace.program,
        model="",
        ranks=ranks,
        nodes=None,
        global_batch=float(told.batch_per_rank * ranks),
        precision="",
        instrument="phases",
        warmup_steps=1 if len(trace.training_steps) > 1 else 0,
        outcome=outcome,
        sequence=None,
    )


def _launch(
    source: Path,
    study: str,
    told: UserFacts,
    *,
    program: str,
    model: str,
    ranks: int,
    nodes: int | None,
    global_batch: float,
    precision: str,
    instrument: str,
    warmup_steps: int,
    outcome: Outcome,
    sequence: int | None,
) -> Launch:
    return Launch(
        id=new_launch_id(),
        study=study,
        created_at=now(),
        framework=program,
        model=told.model or model or "unknown",
        world_size=ranks,
        nodes=told.nodes or nodes or 1,
        batch_per_rank=max(1, round(global_batch / ranks)),
        precision=told.precision or precision or "unknown",
        instrument=instrument,
        synchronised=True,
        warmup_steps=warmup_steps,
        job={"global_batch": global_batch, "sequence": sequence, "source": source.name},
        environment={"imported_from": source.name},
        outcome=outcome,
        provenance=IMPORTED,
    )


def _records(log: ParsedLog, global_batch: float, source: Path) -> list[StepRecord]:
    """The log's steps, or one that stands for its throughput."""
    if log.steps:
        return list(log.steps)
    rate = log.throughput
    if rate is None or rate.unit is not RateUnit.SAMPLES or rate.scope is not RateScope.GLOBAL:
        raise _nothing_timed(source)
    return [StepRecord(1, global_batch / rate.per_second)]


def _nothing_timed(source: Path) -> InputError:
    return InputError(
        f"{source} has neither step times nor a throughput of the whole job",
        "'paceline import --dry-run' shows what could be read",
    )


def _rank_series(records: Sequence[StepRecord]) -> dict[int, tuple[float, ...]]:
    """Seconds of each step by rank; averaged records are dealt out to the steps they average.

    Ranks keep only records that all of them have, since steps are compared across ranks.
    """
    by_rank: dict[int, dict[int, StepRecord]] = {}
    for one in records:
        by_rank.setdefault(one.rank or 0, {})[one.index] = one
    common = set.intersection(*(set(own) for own in by_rank.values()))
    if not common:
        largest = max(by_rank, key=lambda rank: len(by_rank[rank]))
        by_rank, common = {largest: by_rank[largest]}, set(by_rank[largest])
    indices = sorted(common)
    counts = {index: max(own[index].count for own in by_rank.values()) for index in indices}
    share = max(1.0, sum(counts.values()) / MOST_STEPS)
    return {
        rank: tuple(
            chain.from_iterable(
                repeat(own[index].seconds, max(1, round(counts[index] / share)))
                for index in indices
            )
        )
        for rank, own in sorted(by_rank.items())
    }


def _leading_warm_up(records: Sequence[StepRecord]) -> int:
    """Steps at the beginning that the program itself leaves out, unless all are."""
    first_rank = records[0].rank
    ordered = sorted((r for r in records if r.rank == first_rank), key=lambda r: r.index)
    if all(one.warm_up for one in ordered):
        return 0
    steps = 0
    for one in ordered:
        if not one.warm_up:
            break
        steps += one.count
    return steps


def _phase_step(phases: Mapping[str, float], label: str) -> Step | None:
    """Mean phases one after the other; what a program times together is ``other``."""
    if not phases:
        return None
    tasks: list[Task] = []
    starts: list[float] = []
    clock = 0.0
    for name, seconds in phases.items():
        phase = Phase(name) if name in {str(phase) for phase in Phase} else Phase.OTHER
        resource = "network" if phase is Phase.COMMUNICATE else "compute"
        tasks.append(Task(name, phase, resource, seconds))
        starts.append(clock)
        clock += seconds
    metadata: dict[str, str | float] = {"order": "nominal: only means per phase were logged"}
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED, f"{label}, mean step", metadata)


def contradictions_of(told: UserFacts, log: ParsedLog) -> list[str]:
    """What the user says and the log says otherwise; the user's word is taken."""
    ranks = told.ranks or log.ranks or 1
    pairs = (
        ("processes", told.ranks, log.ranks),
        ("nodes", told.nodes, log.nodes),
        ("batch", told.batch_per_rank, log.global_batch and log.global_batch / ranks),
        ("precision", told.precision, log.precision),
        ("model", told.model, log.model),
    )
    return [
        f"{what} {said} was given, but the log says {read:,.6g}"
        if isinstance(read, int | float)
        else f"{what} {said} was given, but the log says {read}"
        for what, said, read in pairs
        if said and read and said != read
    ]


def _facts(log: ParsedLog, told: UserFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {
        **log.facts,
        "versions": {"framework": f"{log.program} {log.version}".strip()},
        "lines": log.lines,
        "unread_lines": log.unread_lines,
        "complete": log.finished,
        "warnings": [*log.warnings, *contradictions_of(told, log)],
    }
    if log.throughput is not None:
        facts["printed_throughput"] = {
            "per_second": log.throughput.per_second,
            "unit": str(log.throughput.unit),
            "scope": str(log.throughput.scope),
            "source": log.throughput.source,
        }
    if log.losses:
        facts["first_loss"], facts["last_loss"] = log.losses[0][1], log.losses[-1][1]
    return facts


def _trace_ranks(trace: ParsedTrace) -> tuple[RankSteps, ...]:
    """When each rank ended each step; a period that the trace tells counts before that."""
    series: dict[int, list[float]] = {}
    for step in trace.training_steps:
        period = step.metadata.get("period_seconds")
        ends: dict[int, float] = {}
        for task, start in zip(step.tasks, step.starts, strict=True):
            ends[task.rank] = max(ends.get(task.rank, 0.0), start + task.seconds)
        for rank, end in ends.items():
            series.setdefault(rank, []).append(float(period) if period else end)
    complete = {rank: own for rank, own in series.items() if len(own) == len(trace.training_steps)}
    return tuple(RankSteps(rank, tuple(own)) for rank, own in sorted(complete.items()))
