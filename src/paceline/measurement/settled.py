"""Which launches of a study have been made, and which one comes next."""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paceline.measurement.design import Design, JobDigests, job_from_json
from paceline.statistics.estimate import estimate
from paceline.store import Launch, Status

TRIES = 2
"""A launch that fails is tried once more."""


class Turn(NamedTuple):
    """A launch to be made: its place in the order, its job, and which launch of the job it is."""

    position: int
    job: int
    replicate: int


@dataclass
class Settled:
    """Launches of a study by job and replicate; what comes next follows from them alone."""

    design: Design
    seconds_per_step: dict[int, dict[int, float]]
    tries: Counter[tuple[int, int]]
    seconds: list[float]
    tries_of_job: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, design: Design, launches: Sequence[Launch]) -> "Settled":
        """What the launches of a study have settled; those of ``run`` and ``import`` nothing."""
        digests = JobDigests()
        by_digest = {digests.of(job): index for index, job in enumerate(design.jobs)}
        found = cls(design, {index: {} for index in range(len(design.jobs))}, Counter(), [])
        for launch in launches:
            if launch.status not in (Status.FINISHED, Status.FAILED):
                continue
            position = launch.job.get("position")
            if position is None:
                continue
            index = by_digest.get(digests.of(job_from_json(launch.job)))
            if index is None:
                continue
            replicate = launch.job.get("replicate", found._replicate_at(position))
            found.add(Turn(position, index, replicate), launch)
            found.seconds.append(launch.outcome.facts.get("seconds", 0.0))
        return found

    def add(self, turn: Turn, launch: Launch) -> None:
        """Count a launch that ended."""
        self.tries[turn.job, turn.replicate] += 1
        self.tries_of_job[turn.job] += 1
        if launch.status is Status.FINISHED and launch.is_steady:
            self.seconds_per_step[turn.job][turn.replicate] = _step_seconds(launch)

    def next_turn(self) -> Turn | None:
        """The launch that comes next; None when all is settled.

        First those of the order, then what failed once more, then what the stopping rule adds.
        """
        for limit in range(1, TRIES + 1):
            for turn in self._asked_for():
                if not self._is_settled(turn, limit):
                    return turn
        return None

    def left(self) -> list[Turn]:
        """Launches that are asked for and not settled."""
        return [turn for turn in self._asked_for() if not self._is_settled(turn, TRIES)]

    @property
    def done(self) -> int:
        """Launches that are settled, failed ones too."""
        return sum(self._is_settled(turn, TRIES) for turn in self._asked_for())

    @property
    def total(self) -> int:
        """Launches that are asked for so far."""
        return sum(1 for _ in self._asked_for())

    @property
    def failures(self) -> int:
        """Launches that failed, tries and tries again."""
        finished = sum(len(own) for own in self.seconds_per_step.values())
        return sum(self.tries.values()) - finished

    def estimates(self) -> dict[str, tuple[float, float]]:
        """Mean seconds per step and relative half width, of what has three launches or more."""
        found = {}
        for index, own in self.seconds_per_step.items():
            if len(own) > 2:
                known = estimate(list(own.values()), self.design.stopping is not None)
                found[words_of(self.design, index)] = (known.mean, known.relative_half_width)
        return found

    def ended(self, by: str) -> dict[str, Any]:
        """Which rule stopped each configuration: the design, the interval, the cap or the time."""
        rule = self.design.stopping
        reasons = []
        for index, own in self.seconds_per_step.items():
            seconds = list(own.values())
            if self._is_given_up(index):
                reason = "failed"
            elif rule is None or by == "time":
                reason = by if rule is None or not rule.is_met(seconds) else "narrow enough"
            else:
                reason = "narrow enough" if rule.is_met(seconds) else "most launches"
            reasons.append(
                {
                    "configuration": words_of(self.design, index),
                    "launches": len(seconds),
                    "stopped_by": reason,
                }
            )
        return {"by": by, "configurations": reasons}

    def _is_settled(self, turn: Turn, limit: int) -> bool:
        if turn.replicate in self.seconds_per_step[turn.job]:
            return True
        return self.tries[turn.job, turn.replicate] >= limit or self._is_given_up(turn.job)

    def _is_given_up(self, job: int) -> bool:
        """Whether nothing of this job ever finished in two tries."""
        return not self.seconds_per_step[job] and self.tries_of_job[job] >= TRIES

    def _asked_for(self) -> Iterator[Turn]:
        """Every launch that the design, and the stopping rule so far, ask for, in order."""
        counts: Counter[int] = Counter()
        position = 0
        for index in self.design.order:
            yield Turn(position, index, counts[index])
            counts[index] += 1
            position += 1
        if self.design.stopping is None:
            return
        for number in itertools.count(max(counts.values())):
            members = [index for index in counts if self._wanted(index, counts[index]) > number]
            if not members:
                return
            for index in self.design.further_block(number, members):
                yield Turn(position, index, counts[index])
                counts[index] += 1
                position += 1

    def _wanted(self, index: int, asked: int) -> int:
        """How many launches of a job the stopping rule wants; it looks at whole numbers of them."""
        rule = self.design.stopping
        if rule is None or self._is_given_up(index):
            return asked
        own = self.seconds_per_step[index]
        wanted = rule.looks[0]
        for look in rule.looks:
            wanted = look
            made = [own[n] for n in range(look) if n in own]
            failed = sum(n not in own and self.tries[index, n] >= TRIES for n in range(look))
            if len(made) + failed < look or rule.is_met(made):
                break
        return wanted

    def _replicate_at(self, position: int) -> int:
        """Which launch of its job is at a position, for launches that do not say."""
        order = self.design.order
        return order[:position].count(order[position]) if position < len(order) else position


def words_of(design: Design, index: int) -> str:
    """A configuration in a few words: its levels, else what jobs differ in."""
    job = design.jobs[index]
    if job.factors:
        return ", ".join(f"{name} {level}" for name, level in job.factors.items())
    words = f"{job.framework} {job.nodes}x{job.world_size // job.nodes}, batch {job.batch_per_rank}"
    words += f", {job.threads} threads" if job.threads > 1 else ""
    words += "" if job.synchronise else ", co-located"
    return words if job.instrument == "none" else f"{words}, {job.instrument}"


def _step_seconds(launch: Launch) -> float:
    """Mean seconds of a counted step on the slowest rank."""
    skip = launch.warmup_steps
    ranks = [rank.wall_seconds[skip:] for rank in launch.outcome.ranks]
    return statistics.fmean(max(step) for step in zip(*ranks, strict=False))
