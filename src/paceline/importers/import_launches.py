"""Convert parsed logs and traces to launches with provenance "imported"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.importers.logs import ParsedLog, RateScope, RateUnit, StepRecord
from paceline.importers.traces import ParsedTrace
from paceline.step import Origin, Phase, Step, Task
from paceline.step.step_profile import profile_steps
from paceline.store import Launch, LayerTiming, Outcome, RankSteps, Status
from paceline.store.database import now
from paceline.store.launch import new_launch_id

IMPORTED = "imported"
MOST_STEPS = 20_000


@dataclass(frozen=True)
class UserFacts:
    """Facts that the user passes on the command line; None or empty if not passed."""

    model: str = ""
    batch_per_rank: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    precision: str = ""


def launch_of_log(log: ParsedLog, source: Path, study: str, given: UserFacts) -> Launch:
    """Convert a log to a launch; raise `InputError` if log and user leave a required fact open."""
    if log.contradictions:
        raise InputError(
            f"{source} is inconsistent and was not imported: {log.contradictions[0]}",
            f"inspect it with: paceline import {source} --dry-run",
        )
    if log.facts.get("srun_tasks") and not (given.ranks or log.ranks):
        raise InputError(
            f"{source} has output of {log.facts['srun_tasks']:.0f} srun tasks but no number of "
            "processes (a task may run several)",
            "set -j NODESxPROCESSES",
        )
    ranks = given.ranks or log.ranks or 1
    global_batch = given.batch_per_rank * ranks if given.batch_per_rank else log.global_batch
    if not log.steps and log.throughput is None:
        raise _nothing_timed(source)
    if global_batch is None:
        raise InputError(
            f"{source} does not state the batch size",
            "set --batch to the samples per process and step",
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
        facts=_facts(log, given),
    )
    return _launch(
        source,
        study,
        given,
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


def launch_of_trace(trace: ParsedTrace, source: Path, study: str, given: UserFacts) -> Launch:
    """Convert a trace to a launch: all its steps, and the typical one as timeline."""
    timeline = trace.typical_step
    if timeline is None or not trace.training_steps:
        raise InputError(
            f"{source} contains no training step", "record at least one complete training step"
        )
    if given.batch_per_rank is None:
        raise InputError(
            f"traces do not state the batch size: {source}",
            "set --batch to the samples per process and step",
        )
    ranks = given.ranks or trace.ranks or len(timeline.ranks)
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
        given,
        program=trace.program,
        model="",
        ranks=ranks,
        nodes=None,
        global_batch=float(given.batch_per_rank * ranks),
        precision="",
        instrument="phases",
        warmup_steps=1 if len(trace.training_steps) > 1 else 0,
        outcome=outcome,
        sequence=None,
    )


def _launch(
    source: Path,
    study: str,
    given: UserFacts,
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
        model=given.model or model or "unknown",
        world_size=ranks,
        nodes=given.nodes or nodes or 1,
        batch_per_rank=max(1, round(global_batch / ranks)),
        precision=given.precision or precision or "unknown",
        instrument=instrument,
        synchronised=True,
        warmup_steps=warmup_steps,
        job={"global_batch": global_batch, "sequence": sequence, "source": source.name},
        environment={"imported_from": source.name},
        outcome=outcome,
        provenance=IMPORTED,
    )


def _records(log: ParsedLog, global_batch: float, source: Path) -> list[StepRecord]:
    """The steps of the log, or a single step computed from its throughput."""
    if log.steps:
        return list(log.steps)
    rate = log.throughput
    if rate is None or rate.unit is not RateUnit.SAMPLES or rate.scope is not RateScope.GLOBAL:
        raise _nothing_timed(source)
    return [StepRecord(1, global_batch / rate.per_second)]


def _nothing_timed(source: Path) -> InputError:
    return InputError(
        f"{source} contains neither step times nor a throughput of the whole job",
        f"inspect it with: paceline import {source} --dry-run",
    )


def _rank_series(records: Sequence[StepRecord]) -> dict[int, tuple[float, ...]]:
    """Seconds of each step by rank; a record that averages n steps is repeated n times.

    Only records that all ranks have are kept, since steps are compared across ranks.
    """
    by_rank: dict[int, dict[int, StepRecord]] = {}
    for record in records:
        by_rank.setdefault(record.rank or 0, {})[record.index] = record
    # Files of ranks may be truncated at different steps.
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
    """Leading steps that the program itself marks as warm-up; 0 if all of them are."""
    first_rank = records[0].rank
    ordered = sorted((r for r in records if r.rank == first_rank), key=lambda r: r.index)
    if all(step.warm_up for step in ordered):  # nothing would be left to count
        return 0
    steps = 0
    for step in ordered:
        if not step.warm_up:
            break
        steps += step.count
    return steps


def _phase_step(phases: Mapping[str, float], label: str) -> Step | None:
    """A step of the mean phases in sequence; phases that are timed together become ``other``."""
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


def contradictions_of(given: UserFacts, log: ParsedLog) -> list[str]:
    """Differences between the user's facts and the log; the user's facts take precedence."""
    ranks = given.ranks or log.ranks or 1
    pairs = (
        ("processes", given.ranks, log.ranks),
        ("nodes", given.nodes, log.nodes),
        ("batch", given.batch_per_rank, log.global_batch and log.global_batch / ranks),
        ("precision", given.precision, log.precision),
        ("model", given.model, log.model),
    )
    return [
        f"using {name} {given}; the log states {read:,.6g}"
        if isinstance(read, int | float)
        else f"using {name} {given}; the log states {read}"
        for name, given, read in pairs
        if given and read and given != read
    ]


def _facts(log: ParsedLog, given: UserFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {
        **log.facts,
        "versions": {"framework": f"{log.program} {log.version}".strip()},
        "lines": log.lines,
        "unread_lines": log.unread_lines,
        "complete": log.finished,
        "warnings": [*log.warnings, *contradictions_of(given, log)],
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
    """Step seconds of each rank: the period if the trace has one, else the end of its last task."""
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
