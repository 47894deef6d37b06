"""Reads the records of watched processes and combines them to one launch."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline.importers.traces.parsing.spans import (
    Span,
    host_gaps,
    measured_step,
    outermost,
    subtract,
)
from paceline.measurement.events import Event, last_event, layer_timings, read_events
from paceline.step import Phase, Step
from paceline.step.breakdown import merge
from paceline.step.critical_states import RankStep, profile_states
from paceline.step.state_profile import (
    COLLECTIVE,
    COMMUNICATE,
    GROUP_COLLECTIVE,
    HOST,
    StateProfile,
)
from paceline.step.step_profile import BUCKET, GRADIENTS, StepProfile, profile_steps
from paceline.store import LayerTiming, RankSteps

EVALUATION_FACTOR = 1.5
"""A step with more than this multiple of the usual number of batches did not only train."""
PROFILED_STEPS = 200
"""Maximum number of steps in the profile of a launch."""
MOST_STATES = 1000
"""Maximum number of steps, the last ones, whose activities and states are summarised."""
WAITS = {"wait": COLLECTIVE, "group wait": GROUP_COLLECTIVE}
"""Activities of segments in which the script waits for all ranks, or for some of them."""
SCALAR_BYTES = 8
"""Bytes of a loss: gradients are larger."""
_NOT_BY_HAND = (BUCKET, "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor")
"""Messages of a library (DDP, FSDP) that carry gradients."""
NAMED_ACTIVITIES = (*WAITS, "checkpoint", "evaluation", "graph search")
"""Segments that interrupt the phase around them."""


@dataclass(frozen=True)
class CoreUse:
    """What used the cores while a process trained, in seconds per step.

    ``threads`` has, by class of thread (main, messages, compute), their number, their time on a
    core, and the longest time that one of them was runnable; data-loader workers were runnable for
    ``worker_delay_seconds`` in all. ``busy_cores`` is the mean number of busy cores of the machine.
    """

    threads: Mapping[str, list[float]]
    worker_seconds: float
    busy_cores: float
    compute_threads: int
    worker_delay_seconds: float = 0.0


@dataclass(frozen=True)
class WatchedProcess:
    """One process that took steps: its recorded steps, and its end."""

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
    given_model: str = ""
    given_batch: int = 0
    cores: tuple[int, ...] = ()
    loader_workers: int = 0
    message_delay_seconds: float = 0.0
    core_use: CoreUse | None = None
    buckets: tuple[tuple[float, tuple[float, ...]], ...] = ()
    ddp: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usual_samples(self) -> int:
        """Median number of samples per step; 0 without a data loader."""
        return int(statistics.median_low([step["samples"] for step in self.steps] or [0]))

    @property
    def usual_elements(self) -> float:
        """Mean number of elements of input per step; 0 without a data loader."""
        counts = [step.get("elements", 0) for step in self.steps]
        return statistics.fmean(counts) if counts else 0.0


@dataclass(frozen=True)
class WatchedJob:
    """The ranks of a job, with the training steps that all of them completed.

    ``samples`` is the number per rank and step, 0 without a data loader. ``missing`` names ranks
    that took no step on this node, ``notes`` lists anomalies. ``given_model`` and ``given_batch``
    are the arguments of `paceline.record` in the script.
    """

    ranks: tuple[WatchedProcess, ...]
    kept: tuple[int, ...]
    world: int
    samples: int
    missing: str = ""
    notes: tuple[str, ...] = field(default=())
    given_model: str = ""
    given_batch: int = 0

    def rank_steps(self) -> tuple[RankSteps, ...]:
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
        """Mean seconds of garbage collection per step after ``skip``, on the slowest rank."""
        longest = [
            max(process.steps[index].get("collection_seconds", 0.0) for process in self.ranks)
            for index in self._counted(skip)
        ]
        return statistics.fmean(longest) if longest else 0.0

    @property
    def synchronised_backwards(self) -> int:
        """Number of backward passes of a usual step that send the same gradients, at least 1."""
        counts = [same_exchanges(self.ranks[0].steps[index]) for index in self.kept]
        return statistics.mode(counts) if counts else 1

    def median_step(self, skip: int) -> Step | None:
        """Step after ``skip`` whose slowest rank has the median duration."""
        indices = self._counted(skip)
        if not indices:
            return None
        slowest = [max(p.steps[i]["step_seconds"] for p in self.ranks) for i in indices]
        return self._step(indices[slowest.index(statistics.median_low(slowest))])

    def profile(self, skip: int) -> StepProfile | None:
        """Means by rank and phase over steps after ``skip``, evenly selected if there are many."""
        indices = self._counted(skip)
        return profile_steps(map(self._step, indices[:: math.ceil(len(indices) / PROFILED_STEPS)]))

    def collectives(self, skip: int) -> dict[str, list[float]]:
        """By operation: its number per step and rank, mean bytes, and seconds per step.

        The rank that waits least in a message arrived last.
        """
        indices = self._counted(skip)
        found: dict[str, list[float]] = {}
        for index in indices:
            first, *others = (_message_spans(process.steps[index]) for process in self.ranks)
            same = [own for own in others if len(own) == len(first)]
            for message, *more in zip(first, *same, strict=True):
                own = found.setdefault(message.name, [0.0, 0.0, 0.0])
                least = min(one.seconds for one in (message, *more))
                own[:] = [own[0] + 1.0, own[1] + message.size_bytes, own[2] + least]
        steps = max(1, len(indices))
        return {
            name: [count / steps, size / count, seconds / steps]
            for name, (count, size, seconds) in found.items()
        }

    def states(self, skip: int) -> StateProfile | None:
        """Activities and states of the ranks over steps after ``skip``, consecutive ones."""
        indices = self._counted(skip)[-MOST_STATES:]
        return profile_states(
            [{p.rank: rank_step(p.steps[index]) for p in self.ranks} for index in indices]
        )

    def _counted(self, skip: int) -> tuple[int, ...]:
        return self.kept[skip:] or self.kept

    def _step(self, index: int) -> Step:
        spans = {process.rank: step_spans(process.steps[index]) for process in self.ranks}
        return measured_step(spans, f"step {index}", dict.fromkeys(spans, 0.0))


@dataclass(frozen=True)
class Lifetime:
    """Start of a process by the clock since boot and by the time of day (seconds).

    The clock since boot is common to all processes of a machine and cannot be set; the time of day
    is used between machines.
    """

    boot: str
    moment: float
    time: float

    def saw(self, hello: Event, last: Event) -> bool:
        """Whether a process whose last record is ``last`` was alive when this one began."""
        if hello.get("boot") == self.boot:
            return bool(last.get("moment", 0.0) >= self.moment)
        return bool(last.get("time", 0.0) >= self.time)


def read_processes(
    directory: Path, concurrent_with: Lifetime | None = None
) -> list[WatchedProcess]:
    """Processes that took steps or failed; if given, only those ``concurrent_with`` another."""
    found = []
    for path in sorted(directory.glob("process-*.events.jsonl")):
        events = read_events(path)
        hello = last_event(events, "hello")
        if hello is not None and (
            concurrent_with is None or concurrent_with.saw(hello, events[-1])
        ):
            found.append(_process(hello, events))
    return found


def _process(hello: Event, events: list[Event]) -> WatchedProcess:
    end, failure, given = (
        last_event(events, "end"),
        last_event(events, "failure"),
        last_event(events, "told") or {},
    )
    steps = [step for e in events if e["event"] == "watched" for step in e["steps"]]
    reason = ""
    if failure is not None:
        reason = f"{failure['kind']}: {failure['message']} at {failure['place']}"
    return WatchedProcess(
        rank=hello["rank"],
        world=hello["world"],
        local_world=hello.get("local_world", 0),
        steps=tuple(steps),
        ended=end is not None,
        failure=reason,
        forks=end.get("forks", 0) if end else 0,
        versions=dict(hello["versions"]),
        memory=dict(end.get("memory", {})) if end else {},
        layers=layer_timings(events),
        given_model=given.get("model", ""),
        given_batch=given.get("batch", 0),
        cores=tuple(hello.get("cores", ())),
        loader_workers=max((e.get("loader_workers", 0) for e in events), default=0),
        message_delay_seconds=_mean_message_delay(events),
        core_use=_core_use(events),
        buckets=tuple(
            (float(size), tuple(map(float, tensors)))
            for size, tensors in next((e["buckets"] for e in events if "buckets" in e), ())
        ),
        ddp=next((e["ddp"] for e in events if "ddp" in e), {}),
    )


def _core_use(events: list[Event]) -> CoreUse | None:
    """Means over the steps after the first write, which covers the start of training."""
    known = [event for event in events if event["event"] == "watched" and "threads" in event]
    later = known[1:] or known
    steps = sum(len(event["steps"]) for event in later)
    elapsed = math.fsum(event.get("elapsed_seconds", 0.0) for event in later)
    if not steps or elapsed <= 0:
        return None
    sums: dict[str, list[float]] = {}
    for event in later:
        for kind, (count, running, waited) in event["threads"].items():
            own = sums.setdefault(kind, [0.0, 0.0, 0.0])
            own[:] = [max(own[0], count), own[1] + running, own[2] + waited]
    return CoreUse(
        {kind: [own[0], own[1] / steps, own[2] / steps] for kind, own in sums.items()},
        math.fsum(event.get("worker_seconds", 0.0) for event in later) / steps,
        math.fsum(event.get("busy_seconds", 0.0) for event in later) / elapsed,
        max(int(event.get("compute_threads", 0)) for event in later),
        math.fsum(event.get("worker_delay_seconds", 0.0) for event in later) / steps,
    )


def _mean_message_delay(events: list[Event]) -> float:
    """CPU contention of the communication thread in seconds per step; 0 if unknown."""
    known = [event for event in events if "steps" in event and "message_delay_seconds" in event]
    steps = sum(len(event["steps"]) for event in known)
    return math.fsum(event["message_delay_seconds"] for event in known) / steps if steps else 0.0


def watched_job(processes: Sequence[WatchedProcess], all_nodes: bool = False) -> WatchedJob | None:
    """The job of these processes; None if none of them took a step.

    Requires steps of every rank of this node, with ``all_nodes`` of every rank of the job.
    """
    stepped = [process for process in processes if process.steps]
    if not stepped:
        return None
    notes: list[str] = []
    by_rank: dict[int, WatchedProcess] = {}
    # A restarted process has the rank of the one that it replaces.
    for process in stepped:
        known = by_rank.get(process.rank)
        if known is None or len(process.steps) > len(known.steps):
            by_rank[process.rank] = process
    if len(by_rank) < len(stepped):
        notes.append(
            f"several processes have the same rank (processes: {len(stepped)}, ranks: "
            f"{len(by_rank)}): the one with the most steps counts"
        )
    ranks = tuple(by_rank[rank] for rank in sorted(by_rank))
    world = max(process.world for process in ranks)
    here = world if all_nodes else max(process.local_world for process in ranks)
    missing = ""
    if len(ranks) < here:
        absent = ", ".join(str(rank) for rank in range(world) if rank not in by_rank)
        missing = f"rank {absent} took no step: found records of {len(ranks)} of {here} ranks"
    elif len(ranks) < world:
        notes.append(f"found records of only {len(ranks)} of {world} ranks")
    if any(process.forks for process in ranks):
        notes.append("the script forked: child processes that take steps are recorded separately")
    kept, dropped = _training_steps(ranks)
    if dropped:
        plural = "s" * (dropped != 1)
        notes.append(f"left out {dropped} step{plural} with more input than usual (evaluation?)")
    samples = statistics.median_low([step["samples"] for p in ranks for step in p.steps])
    first = ranks[0]
    return WatchedJob(
        ranks, kept, world, samples, missing, tuple(notes), first.given_model, first.given_batch
    )


def _training_steps(ranks: Sequence[WatchedProcess]) -> tuple[tuple[int, ...], int]:
    """Indices of the training steps that every rank completed, and the number of other steps."""
    count = min(len(process.steps) for process in ranks)
    fetches = [step["fetches"] for process in ranks for step in process.steps]
    # A step ends with the optimiser, so an evaluation after it is recorded in the next step, which
    # then fetches more batches than gradient accumulation does.
    most = EVALUATION_FACTOR * statistics.median(fetches) + 1
    kept = tuple(
        index
        for index in range(count)
        if all(process.steps[index]["fetches"] <= most for process in ranks)
    )
    return kept, count - len(kept)


def outer_messages(messages: list[list[Any]]) -> list[list[Any]]:
    """Messages without those inside a bucket, sent by a communication hook of the script."""
    buckets = [message for message in messages if message[0] == "bucket"]
    return [
        message
        for message in messages
        if message[0] == "bucket"
        or not any(b[1] == message[1] and b[2] <= message[2] <= b[3] for b in buckets)
    ]


def same_exchanges(step: dict[str, Any]) -> int:
    """Number of backward passes of a step with equal bucket sizes, at least 1.

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
    """A watched step as spans: recorded segments, forward in between, and time on the host.

    The script does not compute while it waits for a message.
    """
    messages = _message_spans(step)
    kept = _compute_spans(step, messages)
    return [*kept, *host_gaps(kept, messages, 0.0, step["step_seconds"]), *messages]


def _message_spans(step: dict[str, Any]) -> list[Span]:
    """Messages of a step; those by which a script itself sends gradients are named so."""
    messages, segments = outer_messages(step["messages"]), step["segments"]
    begin = min((start for name, start, _ in segments if name == "backward"), default=math.inf)
    ends = (start for name, start, _ in segments if name == "update" and start > begin)
    end, known = min(ends, default=math.inf), any(one[0] in _NOT_BY_HAND for one in messages)

    def name(operation: str, size: float, start: float) -> str:
        by_hand = not known and size > SCALAR_BYTES and begin <= start <= end
        return GRADIENTS if by_hand else operation

    return [
        Span(name(op, size, a), Phase.COMMUNICATE, "network", a, max(a, b), f"bucket {n}", size)
        for n, (op, size, a, b) in enumerate(messages)
    ]


def _compute_spans(step: dict[str, Any], messages: Sequence[Span]) -> list[Span]:
    """Phases without the segments that interrupt them; these are spans of the host."""
    compute: list[Span] = []
    reached: float | None = None
    segments = sorted(step["segments"], key=lambda segment: segment[1])
    waits = merge([(start, end) for name, start, end in segments if name in WAITS])
    named = [Span(n, Phase.OTHER, "compute", a, b) for n, a, b in segments if n in NAMED_ACTIVITIES]
    others = outermost(span for span in named if span.name not in WAITS)
    holes = merge([*waits, *((span.start, span.end) for span in others)])
    calls = [start for name, start, _ in segments if name == "forward"]
    for name, start, end in segments:
        if name in NAMED_ACTIVITIES or name == "forward":
            continue
        if name == "backward":
            begin = 0.0 if reached is None else reached
            # Before the first call of a module, the host prepares the pass.
            begin = next((call for call in calls if begin <= call <= start), begin)
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
        for start, end in subtract(span.start, span.end, holes)
    ]
    kept += [
        replace(span, start=start, end=end)
        for span in others
        for start, end in subtract(span.start, span.end, waits)
    ]
    return sorted(kept, key=lambda span: span.start)


def rank_step(step: dict[str, Any]) -> RankStep:
    """A watched step as activities in order; the end of backward waits for buckets in flight."""
    messages, seconds = _message_spans(step), step["step_seconds"]
    kept = _compute_spans(step, messages)
    tails = []
    for name, start, end in step["segments"]:
        sent = [m for m in messages if name == "backward" and start <= m.start <= end]
        if sent:
            tails.append((max(m.start for m in sent), end))
    by_kind = [[(a, b) for n, a, b in step["segments"] if n == kind] for kind in WAITS]
    *waits, ends = (
        merge([(max(0.0, a), min(seconds, b)) for a, b in own if min(seconds, b) > max(0.0, a)])
        for own in (*by_kind, tails)
    )
    pieces = [
        (activity, start, end)
        for activity, own in zip(WAITS.values(), waits, strict=True)
        for start, end in own
    ]
    blocking = merge([(start, end) for _, start, end in pieces])
    pieces += [
        (COMMUNICATE, a, b) for begin, stop in ends for a, b in subtract(begin, stop, blocking)
    ]
    waiting = merge([(start, end) for _, start, end in pieces])
    pieces += [
        (_activity(span), start, end)
        for span in kept
        for start, end in subtract(max(0.0, span.start), min(seconds, span.end), waiting)
    ]
    covered = merge([(start, end) for _, start, end in pieces])
    pieces += [(HOST, start, end) for start, end in subtract(0.0, seconds, covered)]
    return RankStep(
        seconds,
        sorted(pieces, key=lambda piece: piece[1]),
        [(at, running, waited) for at, running, waited in step.get("marks", ())],
        step.get("begun"),
        merge([(m.start, m.end) for m in messages if m.size_bytes > 0]),
        step.get("collection_seconds", 0.0),
        [(at, bool(off), line, bool(loads)) for at, off, line, loads in step.get("stacks", ())],
    )


def _activity(span: Span) -> str:
    return span.name if span.phase is Phase.OTHER else str(span.phase)
