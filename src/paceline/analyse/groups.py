"""Launches of one configuration belong together: they are repetitions of one measurement."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paceline.analyse.statistics import Doubt, doubts, mean_step_seconds
from paceline.statistics.estimate import Estimate, estimate
from paceline.store import Launch, Status


@dataclass(frozen=True)
class LaunchGroup:
    """Finished launches that asked for the same; throughput and step over them."""

    launches: tuple[Launch, ...]
    throughput: Estimate
    step: Estimate

    @property
    def first(self) -> Launch:
        """A launch of the group: they all asked for the same."""
        return self.launches[0]

    @property
    def words(self) -> str:
        """The configuration in a few words."""
        launch = self.first
        processes = "process" if launch.world_size == 1 else "processes"
        words = f"{launch.model} b={launch.batch_per_rank}, {launch.world_size} {processes}"
        if launch.nodes > 1:
            words += f" on {launch.nodes} nodes"
        if launch.precision != "fp32":
            words += f", {launch.precision}"
        if launch.framework != "torch-ddp":
            words += f", {launch.framework}"
        if not launch.synchronised and launch.world_size > 1:
            words += ", co-located"
        told = {"framework", "model", "batch", "processes", "precision", "instrument", "scaling"}
        for name, level in launch.job.get("factors", {}).items():
            words += "" if name in told else f", {name.replace('_', ' ')} {level}"
        return words if launch.instrument == "none" else f"{words} ({launch.instrument} timed)"

    @property
    def doubts(self) -> list[Doubt]:
        """Reasons not to trust the figures; single instrumented launches need no company."""
        if self.first.instrument != "none":
            return []
        return doubts(self.launches)

    @property
    def cores_used(self) -> float:
        """CPU over wall time of the busiest process, the mean of the launches that tell it."""
        known = [one.cores_used for one in self.launches if math.isfinite(one.cores_used)]
        return math.fsum(known) / len(known) if known else math.nan


NAMED_GROUPS = 3
"""Groups that a line of doubt names; of more it says how many."""


def doubt_lines(groups: Sequence[LaunchGroup]) -> list[str]:
    """Every reason to doubt these groups, one line each, naming the groups it holds for."""
    by_cause: dict[str, list[tuple[LaunchGroup, Doubt]]] = {}
    for group in groups:
        for doubt in group.doubts:
            by_cause.setdefault(doubt.cause, []).append((group, doubt))
    lines = []
    for cause, found in by_cause.items():
        whom = "; ".join(group.words for group, _ in found[:NAMED_GROUPS])
        if len(found) > NAMED_GROUPS:
            whom += f"; and {len(found) - NAMED_GROUPS} more"
        _, first = found[0]
        lines.append(f"{cause} ({whom}): {first.message}; {first.remedy}")
    return lines


def grouped(launches: Sequence[Launch]) -> list[LaunchGroup]:
    """Groups of the finished launches, in order of model, processes and kind."""
    by_configuration: dict[tuple[object, ...], list[Launch]] = {}
    for launch in launches:
        if launch.status is Status.FINISHED and launch.is_steady:
            by_configuration.setdefault(configuration(launch), []).append(launch)
    groups = [_group(members) for members in by_configuration.values()]
    return sorted(groups, key=lambda group: _order(group.first))


def _group(members: Sequence[Launch]) -> LaunchGroup:
    """Seconds are averaged over launches and then inverted: rates have a harmonic mean."""
    sequential = any(launch.job.get("stopping") for launch in members)
    step = estimate([mean_step_seconds(launch) for launch in members], sequential)
    return LaunchGroup(tuple(members), step.rate_of(members[0].samples_per_step), step)


class JobKey(NamedTuple):
    """What launches must have in common to be evidence of one job on one machine."""

    model: str
    batch: int
    framework: str
    precision: str
    sequence: int | None
    threads: int | None
    machine: str

    @property
    def words(self) -> str:
        """The job in a few words."""
        parts = [f"{self.model} b={self.batch}", self.framework]
        parts += [self.precision] if self.precision != "fp32" else []
        parts += [f"{self.sequence} tokens"] if self.sequence is not None else []
        parts += [f"{self.threads} threads"] if (self.threads or 1) > 1 else []
        return ", ".join(parts)


def job_key(launch: Launch) -> JobKey:
    """The job that a launch was one of, whatever its number of processes or its instrument."""
    return JobKey(
        launch.model,
        launch.batch_per_rank,
        launch.framework,
        launch.precision,
        launch.job.get("sequence"),
        launch.job.get("threads"),
        f"{launch.environment.get('cpu_model')} x{launch.environment.get('cores')}",
    )


def configuration(launch: Launch) -> tuple[object, ...]:
    """What repetitions of one measurement have in common, the job first."""
    return (
        job_key(launch),
        launch.world_size,
        launch.nodes,
        launch.instrument,
        launch.synchronised or launch.world_size == 1,
        launch.job.get("bucket_bytes"),
        tuple(sorted(map(repr, launch.job.get("factors", {}).items()))),
    )


def _order(launch: Launch) -> tuple[object, ...]:
    return (
        launch.model,
        launch.instrument != "none",
        launch.world_size,
        launch.synchronised,
        launch.framework,
        launch.batch_per_rank,
        launch.job.get("threads") or 1,
    )
