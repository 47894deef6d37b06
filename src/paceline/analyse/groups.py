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
        return configuration_words(self.first)

    @property
    def doubts(self) -> list[Doubt]:
        """Reasons not to trust the figures; single instrumented launches need no company."""
        if self.first.instrument != "none":
            return []
        return doubts(self.launches) + lateness(self)

    @property
    def cores_used(self) -> float:
        """CPU over wall time of the busiest process, the mean of the launches that tell it."""
        known = [one.cores_used for one in self.launches if math.isfinite(one.cores_used)]
        return math.fsum(known) / len(known) if known else math.nan


def configuration_words(launch: Launch) -> str:
    """What a launch was a repetition of, in a few words."""
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
    words += "".join(f", {told}" for told in (emulated_words(launch), lab_words(launch)) if told)
    told = {"framework", "model", "batch", "processes", "precision", "instrument", "scaling"}
    for name, level in launch.job.get("factors", {}).items():
        words += "" if name in told else f", {name.replace('_', ' ')} {level}"
    return words if launch.instrument == "none" else f"{words} ({launch.instrument} timed)"


LATE_SHARE = 0.01
"""Of a step that an emulated device may end too late before it is doubted."""


def lateness(group: LaunchGroup) -> list[Doubt]:
    """A doubt, where ranks of an emulated device did not wake in time."""
    late = max(one.outcome.facts.get("late_seconds", 0.0) for one in group.launches)
    if late <= LATE_SHARE * group.step.mean:
        return []
    return [
        Doubt(
            "late ranks",
            f"sleeping ranks woke up to {1e3 * late:.1f} ms late, "
            f"{late / group.step.mean:.0%} of a step",
            "end other programs, or emulate with a larger --time-scale",
        )
    ]


def emulated_words(launch: Launch) -> str:
    """What a launch emulated, with its scale; nothing for one that computed."""
    told = launch.job.get("emulated")
    if not told:
        return ""
    scale = told["time_scale"]
    slower = "" if scale == 1 else f", all times x {scale:g}"
    return f"emulated {told['device']}{slower}"


def lab_words(launch: Launch) -> str:
    """The links of the lab that a launch ran in; nothing for one outside."""
    told = launch.environment.get("lab")
    return f"lab of {told}" if told else ""


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
        ", ".join(filter(None, (_machine(launch), emulated_words(launch), lab_words(launch)))),
    )


def ran_as_it_is(launch: Launch) -> bool:
    """Whether a launch computed on this machine with nothing between: no lab, no emulation."""
    return not emulated_words(launch) and not lab_words(launch)


def _machine(launch: Launch) -> str:
    return f"{launch.environment.get('cpu_model')} x{launch.environment.get('cores')}"


def configuration(launch: Launch) -> tuple[object, ...]:
    """What repetitions of one measurement have in common, the job first."""
    return (
        job_key(launch),
        launch.world_size,
        launch.nodes,
        launch.instrument,
        launch.synchronised or launch.world_size == 1,
        launch.job.get("bucket_bytes"),
        launch.job.get("epochs", 0),
        repr(launch.job.get("data", {}).get("kind", "synthetic")),
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
