"""State of a study: its completed launches, and the next one."""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paceline.measurement.study_design import Design, JobDigests, job_from_json
from paceline.stats.estimate import estimate
from paceline.store import Launch, Status

TRIES = 2
"""A failed launch is repeated once."""


class NextLaunch(NamedTuple):
    """A planned launch: its position in the order, its job, and its number within the job."""

    position: int
    job: int
    replicate: int


@dataclass
class StudyState:
    """Launches of a study by job and replicate; they alone determine the next launch.

    A study that is resumed after a crash therefore continues as if it had not been interrupted.
    """

    design: Design
    seconds_per_step: dict[int, dict[int, float]]
    tries: Counter[tuple[int, int]]
    seconds: list[float]
    tries_of_job: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, design: Design, launches: Sequence[Launch]) -> "StudyState":
        digests = JobDigests()
        by_digest = {digests.of(job): index for index, job in enumerate(design.jobs)}
        found = cls(design, {index: {} for index in range(len(design.jobs))}, Counter(), [])
        for launch in launches:
            if launch.status not in (Status.FINISHED, Status.FAILED):  # interrupted: runs again
                continue
            position = launch.job.get("position")
            if position is None:  # of `paceline run` or `import`
                continue
            index = by_digest.get(digests.of(job_from_json(launch.job)))
            if index is None:  # of a level that the study no longer has
                continue
            replicate = launch.job.get("replicate", found._replicate_at(position))
            found.add(NextLaunch(position, index, replicate), launch)
            found.seconds.append(launch.outcome.facts.get("seconds", 0.0))
        return found

    def add(self, planned: NextLaunch, launch: Launch) -> None:
        """Count a launch that ended; an unstable one counts as failed, since it has no mean."""
        self.tries[planned.job, planned.replicate] += 1
        self.tries_of_job[planned.job] += 1
        if launch.status is Status.FINISHED and launch.is_steady:
            self.seconds_per_step[planned.job][planned.replicate] = _step_seconds(launch)

    def next_launch(self) -> NextLaunch | None:
        """Next launch, or None at the end of the study.

        Failed launches are repeated after all others.
        """
        for limit in range(1, TRIES + 1):
            for planned in self._planned_launches():
                if not self._is_done(planned, limit):
                    return planned
        return None

    def left(self) -> list[NextLaunch]:
        return [one for one in self._planned_launches() if not self._is_done(one, TRIES)]

    def progress(self) -> tuple[int, int]:
        """Number of launches that are done, including failed ones, and planned so far."""
        done = [self._is_done(planned, TRIES) for planned in self._planned_launches()]
        return sum(done), len(done)

    @property
    def failures(self) -> int:
        """Number of failed launches, including repeated ones."""
        finished = sum(len(own) for own in self.seconds_per_step.values())
        return sum(self.tries.values()) - finished

    def estimates(self) -> dict[str, tuple[float, float]]:
        """Mean seconds per step and relative half width of jobs with three launches or more."""
        found = {}
        for index, own in self.seconds_per_step.items():
            if len(own) > 2:
                known = estimate(list(own.values()), self.design.stopping is not None)
                found[describe_position(self.design, index)] = (
                    known.mean,
                    known.relative_half_width,
                )
        return found

    def ended(self, by: str) -> dict[str, Any]:
        """Rule that stopped each configuration: design, interval, maximum of launches or time."""
        rule = self.design.stopping
        reasons = []
        for index, own in self.seconds_per_step.items():
            seconds = list(own.values())
            if self._is_abandoned(index):
                reason = "failed"
            elif rule is None or by == "time":
                reason = by if rule is None or not rule.is_met(seconds) else "narrow enough"
            else:
                reason = "narrow enough" if rule.is_met(seconds) else "most launches"
            reasons.append(
                {
                    "configuration": describe_position(self.design, index),
                    "launches": len(seconds),
                    "stopped_by": reason,
                }
            )
        return {"by": by, "configurations": reasons}

    def _is_done(self, planned: NextLaunch, limit: int) -> bool:
        if planned.replicate in self.seconds_per_step[planned.job]:
            return True
        tries = self.tries[planned.job, planned.replicate]
        return tries >= limit or self._is_abandoned(planned.job)

    def _is_abandoned(self, job: int) -> bool:
        """Whether two launches of a job failed and none finished."""
        return not self.seconds_per_step[job] and self.tries_of_job[job] >= TRIES

    def _planned_launches(self) -> Iterator[NextLaunch]:
        """Every launch of the design, then those that the stopping rule adds so far, in order."""
        counts: Counter[int] = Counter()
        position = 0
        for index in self.design.order:
            yield NextLaunch(position, index, counts[index])
            counts[index] += 1
            position += 1
        if self.design.stopping is None:
            return
        # Added launches run in blocks too, so that drift affects the remaining jobs equally.
        for number in itertools.count(max(counts.values())):
            members = [index for index in counts if self._wanted(index, counts[index]) > number]
            if not members:
                return
            for index in self.design.further_block(number, members):
                yield NextLaunch(position, index, counts[index])
                counts[index] += 1
                position += 1

    def _wanted(self, index: int, asked: int) -> int:
        """Number of launches of a job that the stopping rule requires.

        Each look uses only the launches up to it, so that the result is the same after a resume.
        """
        rule = self.design.stopping
        if rule is None or self._is_abandoned(index):
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
        """Replicate at a position, for launches of older stores that did not record it."""
        order = self.design.order
        return order[:position].count(order[position]) if position < len(order) else position


def describe_position(design: Design, index: int) -> str:
    """Describe a configuration by its levels or, without factors, by its job."""
    job = design.jobs[index]
    if job.factors:
        return ", ".join(f"{name} {level}" for name, level in job.factors.items())
    text = f"{job.framework} {job.nodes}x{job.world_size // job.nodes}, batch {job.batch_per_rank}"
    text += f", {job.threads} threads" if job.threads > 1 else ""
    text += "" if job.synchronise else ", co-located"
    return text if job.instrument == "none" else f"{text}, {job.instrument}"


def _step_seconds(launch: Launch) -> float:
    """Mean seconds of a counted step on the slowest rank."""
    skip = launch.warmup_steps
    ranks = [rank.wall_seconds[skip:] for rank in launch.outcome.ranks]
    return statistics.fmean(max(step) for step in zip(*ranks, strict=False))
