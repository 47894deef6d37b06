"""Summary of many steps of a job: means by rank and phase, stragglers, messages."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from paceline.step.breakdown import Breakdown, breakdowns
from paceline.step.pauses import Pauses, paused_steps, summarise_pauses
from paceline.step.task import Phase, Step

MOST_MESSAGES = 2000
"""Steps with more messages are profiled without them."""
BUCKET, GRADIENTS = "bucket", "gradients"
"""Messages of gradients: of DDP, or of the script itself."""
BUFFERS = "buffers"
"""Broadcast of DDP before forward."""
_NOT_COMPUTING = (Phase.COMMUNICATE, Phase.WAIT)


@dataclass(frozen=True)
class RankProfile:
    """Mean seconds by phase of one rank; each instant belongs to one phase.

    ``last_share`` is the fraction of steps in which it computed longest of all ranks: collectives
    end together on all ranks, so the straggler is the rank that waits least.
    ``deviation_seconds`` is the standard deviation of its computing time over steps.
    """

    rank: int
    phases: Mapping[Phase, float]
    last_share: float
    deviation_seconds: float = 0.0

    def seconds(self, *phases: Phase) -> float:
        """Sum over these phases."""
        return math.fsum(self.phases.get(phase, 0.0) for phase in phases)

    @property
    def computing_seconds(self) -> float:
        """Time without exposed communication and waiting."""
        return math.fsum(s for phase, s in self.phases.items() if phase not in _NOT_COMPUTING)


@dataclass(frozen=True)
class MessageProfile:
    """One message of a step: its bytes, the time it is ready on all ranks, and its duration.

    ``ready_seconds`` counts from the start of the step. ``seconds`` counts from when every rank is
    ready and the previous message has ended: network time without waiting. ``operation`` is its
    name, empty in older records.
    """

    size_bytes: float
    ready_seconds: float
    seconds: float
    operation: str = ""


@dataclass(frozen=True)
class StepProfile:
    """Means over ``steps`` steps, seconds.

    ``step_seconds`` is the step of its slowest rank, ``slowest_seconds`` the longest computing time
    of any rank, ``exposed_seconds`` the exposed communication of that rank: it arrives last, so
    this contains no waiting. The remainder of the step is ``idle_seconds``.
    ``backward_end_seconds`` is the end of its last gradient, from the start of the step.
    Steps that pause for work of the host are excluded; ``pauses`` is their extra time.
    ``roles`` fixes the slowest and the usual rank; None selects them by computing time.
    """

    steps: int
    step_seconds: float
    slowest_seconds: float
    exposed_seconds: float
    hidden_seconds: float
    backward_end_seconds: float
    ranks: tuple[RankProfile, ...]
    messages: tuple[MessageProfile, ...] = ()
    pauses: Pauses | None = None
    roles: tuple[int, int] | None = None

    @property
    def pause_seconds(self) -> float:
        return 0.0 if self.pauses is None else self.pauses.seconds

    @property
    def idle_seconds(self) -> float:
        """Idle time of the rank that computes longest."""
        return self.step_seconds - self.slowest_seconds - self.exposed_seconds

    @property
    def slowest(self) -> RankProfile:
        """The rank that computes longest in the mean step: the straggler, if there is one."""
        if self.roles is not None:
            return next(rank for rank in self.ranks if rank.rank == self.roles[0])
        return max(self.ranks, key=lambda rank: rank.computing_seconds)

    @property
    def usual(self) -> RankProfile:
        """The median rank without the slowest; the only rank if there is one."""
        if self.roles is not None:
            return next(rank for rank in self.ranks if rank.rank == self.roles[1])
        others = [rank for rank in self.ranks if rank is not self.slowest]
        ordered = sorted(others, key=lambda rank: rank.computing_seconds)
        return ordered[len(ordered) // 2] if ordered else self.slowest

    @property
    def straggling_seconds(self) -> float:
        """Excess computation of the slowest rank over the typical one in the mean step."""
        return self.slowest.computing_seconds - self.usual.computing_seconds

    @property
    def jitter_seconds(self) -> float:
        """Jitter: the loss because the slowest rank changes from step to step."""
        return max(0.0, self.slowest_seconds - self.slowest.computing_seconds)

    @property
    def message_bytes(self) -> float:
        """Bytes that a rank sends in a step."""
        return math.fsum(message.size_bytes for message in self.messages)

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: value for name, value in vars(self).items() if isinstance(value, float | int)},
            "ranks": [
                {**asdict(rank), "phases": {str(p): s for p, s in rank.phases.items()}}
                for rank in self.ranks
            ],
            "messages": [asdict(message) for message in self.messages],
            "pauses": None if self.pauses is None else asdict(self.pauses),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "StepProfile":
        ranks = tuple(
            RankProfile(
                int(rank["rank"]),
                {Phase(phase): float(value) for phase, value in rank["phases"].items()},
                float(rank["last_share"]),
                float(rank.get("deviation_seconds", 0.0)),
            )
            for rank in document["ranks"]
        )
        messages = tuple(MessageProfile(**message) for message in document["messages"])
        paused = document.get("pauses")
        pauses = None if paused is None else Pauses(**paused)
        return cls(**{**document, "ranks": ranks, "messages": messages, "pauses": pauses})


def profile_steps(steps: Iterable[Step]) -> StepProfile | None:
    """Means over steps with the same ranks; None without steps."""
    every: list[dict[int, Breakdown]] = []
    messages: list[list[MessageProfile]] = []
    backward: list[dict[int, float]] = []
    for step in steps:
        ranks = step.ranks
        if ranks and step.seconds > 0 and (not every or ranks == sorted(every[0])):
            every.append(breakdowns(step))
            messages.append(_messages(step))
            backward.append(_backward_ends(step))
    if not every:
        return None
    paused = paused_steps(every)
    kept = [index for index in range(len(every)) if index not in set(paused)]
    pauses = summarise_pauses(every, paused)
    seen, messages, backward = (
        [every[index] for index in kept],
        [messages[index] for index in kept],
        [backward[index] for index in kept],
    )
    computing = [{rank: _computing(parts) for rank, parts in step.items()} for step in seen]
    # All ranks wait for the one that computes longest, so its times are those of the step.
    last = [max(own, key=lambda rank: own[rank]) for own in computing]
    critical = [step[rank] for step, rank in zip(seen, last, strict=True)]
    return StepProfile(
        steps=len(seen),
        step_seconds=statistics.fmean(parts.step_seconds for parts in critical),
        slowest_seconds=statistics.fmean(_computing(parts) for parts in critical),
        exposed_seconds=statistics.fmean(p.exposed_communication_seconds for p in critical),
        hidden_seconds=statistics.fmean(p.hidden_communication_seconds for p in critical),
        backward_end_seconds=statistics.fmean(
            ends.get(rank, 0.0) for ends, rank in zip(backward, last, strict=True)
        ),
        ranks=tuple(
            RankProfile(
                rank,
                _mean_phases([step[rank] for step in seen]),
                last.count(rank) / len(last),
                statistics.pstdev(own[rank] for own in computing),
            )
            for rank in sorted(seen[0])
        ),
        messages=_mean_messages(messages),
        pauses=pauses,
    )


def mean_profile(profiles: Sequence[StepProfile]) -> StepProfile | None:
    """Mean of profiles of one configuration, with equal weights; None without profiles."""
    first = profiles[0] if profiles else None
    if first is None or len(profiles) == 1:
        return first
    same = [profile for profile in profiles if len(profile.ranks) == len(first.ranks)]

    def mean(name: str) -> float:
        return statistics.fmean(getattr(profile, name) for profile in same)

    phases = dict.fromkeys(
        phase for profile in same for rank in profile.ranks for phase in rank.phases
    )
    return StepProfile(
        steps=sum(profile.steps for profile in same),
        step_seconds=mean("step_seconds"),
        slowest_seconds=mean("slowest_seconds"),
        exposed_seconds=mean("exposed_seconds"),
        hidden_seconds=mean("hidden_seconds"),
        backward_end_seconds=mean("backward_end_seconds"),
        ranks=tuple(
            RankProfile(
                ranks[0].rank,
                {
                    phase: statistics.fmean(rank.seconds(phase) for rank in ranks)
                    for phase in phases
                },
                statistics.fmean(rank.last_share for rank in ranks),
                _pooled_deviation(ranks),
            )
            for ranks in zip(*(profile.ranks for profile in same), strict=True)
        ),
        messages=_mean_messages([list(profile.messages) for profile in same]),
        pauses=_mean_pauses([profile.pauses for profile in same]),
    )


def _pooled_deviation(ranks: Sequence[RankProfile]) -> float:
    """Standard deviation over steps within launches and over launches."""
    within = statistics.fmean(rank.deviation_seconds**2 for rank in ranks)
    return math.sqrt(within + statistics.pvariance(rank.computing_seconds for rank in ranks))


def _mean_pauses(launches: Sequence[Pauses | None]) -> Pauses | None:
    """Pauses of the launch with the longest, with their mean length over launches."""
    longest = max(
        (pauses for pauses in launches if pauses), key=lambda pauses: pauses.seconds, default=None
    )
    if longest is None:
        return None
    mean = math.fsum(launch.seconds for launch in launches if launch) / len(launches)
    return replace(longest, each_seconds=mean * longest.steps / longest.count)


def _computing(parts: Breakdown) -> float:
    return math.fsum(s for phase, s in parts.exposed.items() if phase not in _NOT_COMPUTING)


def _backward_ends(step: Step) -> dict[int, float]:
    ends: dict[int, float] = {}
    for task, end in zip(step.tasks, step.ends, strict=True):
        if task.phase is Phase.BACKWARD:
            ends[task.rank] = max(ends.get(task.rank, 0.0), end)
    return ends


def _mean_phases(parts: Sequence[Breakdown]) -> dict[Phase, float]:
    phases = dict.fromkeys(phase for part in parts for phase in part.exposed)
    return {
        phase: math.fsum(part.exposed.get(phase, 0.0) for part in parts) / len(parts)
        for phase in phases
    }


def _messages(step: Step) -> list[MessageProfile]:
    """Messages of one step, matched by their order on each rank.

    Empty if ranks differ in the number or groups of messages, or have too many. A collective ends
    on all ranks together, so the rank for which it was shortest arrived last.
    """
    by_rank: dict[int, list[tuple[float, float, float, str]]] = {rank: [] for rank in step.ranks}
    for task, start in zip(step.tasks, step.starts, strict=True):
        if task.phase is Phase.COMMUNICATE:
            own = (start, start + task.seconds, task.size_bytes, task.name)
            by_rank[task.rank].append(own)
    lanes = [sorted(own) for own in by_rank.values()]
    groups: dict[int, set[str]] = {rank: set() for rank in by_rank}
    for task in step.tasks:
        groups[task.rank].add(task.group)
    if any(own_groups != groups[min(groups)] for own_groups in groups.values()):
        return []
    if len({len(own) for own in lanes}) != 1 or len(lanes[0]) > MOST_MESSAGES:
        return []
    found = []
    ended = [0.0] * len(lanes)
    for matched in zip(*lanes, strict=True):
        # A rank sends one message at a time: waiting for the previous one is not part of this.
        taken = [
            max(0.0, end - max(start, before))
            for (start, end, *_), before in zip(matched, ended, strict=True)
        ]
        latest = min(range(len(matched)), key=lambda rank: taken[rank])
        start, _, size, name = matched[latest]
        found.append(MessageProfile(size, start, taken[latest], name))
        ended = [max(before, end) for (_, end, *_), before in zip(matched, ended, strict=True)]
    return found


def _mean_messages(steps: Sequence[list[MessageProfile]]) -> tuple[MessageProfile, ...]:
    """Medians of the messages over the steps with the most common number of them."""
    count = Counter(map(len, steps)).most_common(1)[0][0]
    usual = [messages for messages in steps if len(messages) == count]
    return tuple(
        MessageProfile(
            statistics.median(message.size_bytes for message in same),
            statistics.median(message.ready_seconds for message in same),
            statistics.median(message.seconds for message in same),
            same[0].operation,
        )
        for same in zip(*usual, strict=True)
    )
