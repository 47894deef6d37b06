"""Reads what watched processes wrote, and makes one launch of them."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline.measurement.events import Event, layer_timings, only, read_events
from paceline.measurement.traces.spans import (
    Span,
    host_gaps,
    measured_step,
    outermost,
    subtract,
)
from paceline.step import Phase, Step, StepProfile, profile_steps
from paceline.step.breakdown import merge
from paceline.store import LayerTiming, RankSteps

EVALUATION_FACTOR = 1.5
"""A step that fetched so many times the usual number of batches did not only train."""
PROFILED_STEPS = 200
"""Most steps of a launch that its profile is made of."""


@dataclass(frozen=True)
class WatchedProcess:
    """One process that stepped: its steps as they were written, and how it ended."""

    rank: int
    world: int
    local_world: int
    steps: tuple[Event, ...]
    ended: bool
    failure: str
    forks: int
    versions: dict[str, str]
    memory: dict[str, float]
    layers: tuple[LayerTiming, ...]
    told_model: str = ""
    told_batch: int = 0
    cores: tuple[int, ...] = ()
    loader_workers: int = 0
    message_delay_seconds: float = 0.0

    @property
    def usual_samples(self) -> int:
        """Samples that it fetched for a step in the median; 0 where no data loader told."""
        return int(statistics.median_low([step["samples"] for step in self.steps] or [0]))


@dataclass(frozen=True)
class WatchedJob:
    """The ranks of a job, with the steps that all of them took and that only trained.

    ``samples`` is how many one rank fetched per step, 0 where no data loader told.
    ``missing`` says which ranks should have stepped here and did not, ``notes`` what was odd.
    ``told_model`` and ``told_batch`` are what the script itself said to `paceline.record`.
    """

    ranks: tuple[WatchedProcess, ...]
    kept: tuple[int, ...]
    world: int
    samples: int
    missing: str = ""
    notes: tuple[str, ...] = field(default=())
    told_model: str = ""
    told_batch: int = 0

    def rank_steps(self) -> tuple[RankSteps, ...]:
        """Wall and CPU seconds of the kept steps of each rank."""
        return tuple(
            RankSteps(
                process.rank,
                tuple(process.steps[index]["step_seconds"] for index in self.kept),
                tuple(process.steps[index]["cpu_seconds"] for index in self.kept),
                delay_seconds=self._delays(process),
            )
            for process in self.ranks
        )

    def _delays(self, process: WatchedProcess) -> tuple[float, ...]:
        steps = [process.steps[index] for index in self.kept]
        known = all("delay_seconds" in step for step in steps)
        return tuple(step["delay_seconds"] for step in steps) if known else ()

    def collection_seconds(self, skip: int) -> float:
        """What Python's garbage collection takes of a mean step after ``skip``.

        Of each step, on the rank that it holds longest.
        """
        longest = [
            max(process.steps[index].get("collection_seconds", 0.0) for process in self.ranks)
            for index in self._counted(skip)
        ]
        return statistics.fmean(longest) if longest else 0.0

    @property
    def synchronised_backwards(self) -> int:
        """How many backward passes of a usual step send the same gradients; 1 where one does."""
        counts = [same_exchanges(self.ranks[0].steps[index]) for index in self.kept]
        return statistics.mode(counts) if counts else 1

    def median_step(self, skip: int) -> Step | None:
        """The step whose slowest rank has the median duration, after ``skip`` steps."""
        indices = self._counted(skip)
        if not indices:
            return None
        slowest = [max(p.steps[i]["step_seconds"] for p in self.ranks) for i in indices]
        return self._step(indices[slowest.index(statistics.median_low(slowest))])

    def profile(self, skip: int) -> StepProfile | None:
        """Means by rank and phase over the steps after ``skip``, evenly chosen of many."""
        indices = self._counted(skip)
        return profile_steps(map(self._step, indices[:: math.ceil(len(indices) / PROFILED_STEPS)]))

    def _counted(self, skip: int) -> tuple[int, ...]:
        return self.kept[skip:] or self.kept

    def _step(self, index: int) -> Step:
        spans = {process.rank: step_spans(process.steps[index]) for process in self.ranks}
        return measured_step(spans, f"step {index}", dict.fromkeys(spans, 0.0))


@dataclass(frozen=True)
class Lifetime:
    """When a process began: by its machine's clock since boot, and by the time of day (seconds).

    The clock since boot is the same for all processes of a machine and is never set; the time of
    day stands in between machines.
    """

    boot: str
    moment: float
    time: float

    def saw(self, hello: Event, last: Event) -> bool:
        """Whether a process that wrote ``last`` was still there when this one began."""
        if hello.get("boot") == self.boot:
            return bool(last.get("moment", 0.0) >= self.moment)
        return bool(last.get("time", 0.0) >= self.time)


def read_processes(directory: Path, beside: Lifetime | None = None) -> list[WatchedProcess]:
    """Processes that took steps or failed; only those that ran ``beside`` another, if given."""
    found = []
    for path in sorted(directory.glob("process-*.events.jsonl")):
        events = read_events(path)
        hello = only(events, "hello")
        if hello is not None and (beside is None or beside.saw(hello, events[-1])):
            found.append(_process(hello, events))
    return found


def _process(hello: Event, events: list[Event]) -> WatchedProcess:
    end, failure, told = only(events, "end"), only(events, "failure"), only(events, "told") or {}
    steps = [step for e in events if e["event"] == "watched" for step in e["steps"]]
    words = ""
    if failure is not None:
        words = f"{failure['kind']}: {failure['message']} at {failure['place']}"
    return WatchedProcess(
        rank=hello["rank"],
        world=hello["world"],
        local_world=hello.get("local_world", 0),
        steps=tuple(steps),
        ended=end is not None,
        failure=words,
        forks=end.get("forks", 0) if end else 0,
        versions=dict(hello["versions"]),
        memory=dict(end.get("memory", {})) if end else {},
        layers=layer_timings(events),
        told_model=told.get("model", ""),
        told_batch=told.get("batch", 0),
        cores=tuple(hello.get("cores", ())),
        loader_workers=max((e.get("loader_workers", 0) for e in events), default=0),
        message_delay_seconds=_mean_message_delay(events),
    )


def _mean_message_delay(events: list[Event]) -> float:
    """Seconds per step that the thread of the messages waited for a core; 0 where unknown."""
    told = [event for event in events if "steps" in event and "message_delay_seconds" in event]
    steps = sum(len(event["steps"]) for event in told)
    return math.fsum(event["message_delay_seconds"] for event in told) / steps if steps else 0.0


def watched_job(processes: Sequence[WatchedProcess], all_nodes: bool = False) -> WatchedJob | None:
    """The job that the processes make up; None when none of them ever stepped.

    Every rank of this node must have stepped, with ``all_nodes`` every rank of the job.
    """
    stepped = [process for process in processes if process.steps]
    if not stepped:
        return None
    notes: list[str] = []
    by_rank: dict[int, WatchedProcess] = {}
    for process in stepped:
        known = by_rank.get(process.rank)
        if known is None or len(process.steps) > len(known.steps):
            by_rank[process.rank] = process
    if len(by_rank) < len(stepped):
        notes.append(
            f"{len(stepped)} processes stepped under {len(by_rank)} rank numbers: the one with "
            "the most steps counts for each"
        )
    ranks = tuple(by_rank[rank] for rank in sorted(by_rank))
    world = max(process.world for process in ranks)
    here = world if all_nodes else max(process.local_world for process in ranks)
    missing = ""
    if len(ranks) < here:
        absent = ", ".join(str(rank) for rank in range(world) if rank not in by_rank)
        missing = f"rank {absent} never stepped: {len(ranks)} of {here} ranks left a record"
    elif len(ranks) < world:
        notes.append(f"only {len(ranks)} of {world} ranks left a record")
    if any(process.forks for process in ranks):
        notes.append("the script forked: children that step are processes of their own")
    kept, dropped = _training_steps(ranks)
    if dropped:
        notes.append(f"{dropped} steps with more input than usual (evaluation?) are left out")
    samples = statistics.median_low([step["samples"] for p in ranks for step in p.steps])
    first = ranks[0]
    return WatchedJob(
        ranks, kept, world, samples, missing, tuple(notes), first.told_model, first.told_batch
    )


def _training_steps(ranks: Sequence[WatchedProcess]) -> tuple[tuple[int, ...], int]:
    """Indices of the steps that every rank took and that only trained; how many others were."""
    count = min(len(process.steps) for process in ranks)
    fetches = [step["fetches"] for process in ranks for step in process.steps]
    most = EVALUATION_FACTOR * statistics.median(fetches) + 1
    kept = tuple(
        index
        for index in range(count)
        if all(process.steps[index]["fetches"] <= most for process in ranks)
    )
    return kept, count - len(kept)


def outer_messages(messages: list[list[Any]]) -> list[list[Any]]:
    """Messages without those that a script's own hook sends for a bucket: the bucket has them."""
    buckets = [message for message in messages if message[0] == "bucket"]
    return [
        message
        for message in messages
        if message[0] == "bucket"
        or not any(b[1] == message[1] and b[2] <= message[2] <= b[3] for b in buckets)
    ]


def same_exchanges(step: dict[str, Any]) -> int:
    """Backward passes of a step that each sent buckets of the same sizes; 1 where there are none.

    Passes of different networks (a generator, a discriminator) send different buckets.
    """
    sent = []
    for name, start, end in step["segments"]:
        if name == "backward":
            buckets = [m for m in step["messages"] if m[0] == "bucket" and start <= m[2] <= end]
            sent.append(tuple(sorted(message[1] for message in buckets)))
    counted = Counter(sizes for sizes in sent if sizes)
    return max(counted.values(), default=1)


def step_spans(step: dict[str, Any]) -> list[Span]:
    """A watched step as spans: what was seen, forward in between, and the host's own time.

    While the script waits for a message it computes nothing.
    """
    messages = [
        Span(operation, Phase.COMMUNICATE, "network", start, max(start, end), f"bucket {n}", size)
        for n, (operation, size, start, end) in enumerate(outer_messages(step["messages"]))
    ]
    compute: list[Span] = []
    reached: float | None = None
    segments = sorted(step["segments"], key=lambda segment: segment[1])
    waits = merge([(start, end) for name, start, end in segments if name == "wait"])
    for name, start, end in segments:
        if name == "wait":
            continue
        if name == "backward":
            begin = 0.0 if reached is None else reached
            compute.append(Span("forward", Phase.FORWARD, "compute", begin, start))
            sent = [m.start for m in messages if start <= m.start <= end]
            compute.append(Span(name, Phase.BACKWARD, "compute", start, max(sent, default=end)))
        else:
            phase = Phase.INPUT if name == "input" else Phase.UPDATE
            compute.append(Span(name, phase, "compute", start, end))
        reached = end
    kept = [
        replace(span, start=start, end=end)
        for span in outermost(span for span in compute if span.seconds > 0)
        for start, end in subtract(span.start, span.end, waits)
    ]
    return [*kept, *host_gaps(kept, messages, 0.0, step["step_seconds"]), *messages]
