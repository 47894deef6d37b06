"""Groups of launches with the same configuration: repetitions of one measurement."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paceline.analysis.launch_statistics import ResultWarning, launch_warnings, mean_step_seconds
from paceline.stats.estimate import Estimate, estimate
from paceline.store import Launch, Status
from paceline.units import plural


@dataclass(frozen=True)
class LaunchGroup:
    """Finished launches with the same settings; throughput and step time over them."""

    launches: tuple[Launch, ...]
    throughput: Estimate
    step: Estimate

    @property
    def first(self) -> Launch:
        """First launch of the group; all have the same settings."""
        return self.launches[0]

    @property
    def description(self) -> str:
        return describe_configuration(self.first)

    @property
    def warnings(self) -> list[ResultWarning]:
        """Warnings about the results; none for instrumented launches, which need no repetition."""
        if self.first.instrument != "none":
            return []
        return launch_warnings(self.launches) + late_rank_warnings(self)

    @property
    def cores_used(self) -> float:
        """CPU time over wall time of the busiest process, the mean of launches with known times."""
        known = [one.cores_used for one in self.launches if math.isfinite(one.cores_used)]
        return math.fsum(known) / len(known) if known else math.nan


def describe_configuration(launch: Launch) -> str:
    count = plural(launch.world_size, "process")
    text = f"{launch.model} b={launch.batch_per_rank}, {count}"
    if launch.nodes > 1:
        text += f" on {launch.nodes} nodes"
    if launch.precision != "fp32":
        text += f", {launch.precision}"
    if launch.framework != "torch-ddp" or "framework" in launch.job.get("factors", {}):
        text += f", {launch.framework}"
    if not launch.synchronised and launch.world_size > 1:
        text += ", co-located"
    environment = (describe_emulation(launch), describe_lab(launch))
    text += "".join(f", {part}" for part in environment if part)
    included = {"framework", "model", "batch", "processes", "precision", "instrument", "scaling"}
    for name, level in launch.job.get("factors", {}).items():
        text += "" if name in included else f", {name.replace('_', ' ')} {level}"
    return text if launch.instrument == "none" else f"{text} ({launch.instrument} timed)"


LATE_SHARE = 0.01
"""Fraction of a step that ranks of an emulated device may wake up late without a warning."""


def late_rank_warnings(group: LaunchGroup) -> list[ResultWarning]:
    late = max(one.outcome.facts.get("late_seconds", 0.0) for one in group.launches)
    if late <= LATE_SHARE * group.step.mean:
        return []
    return [
        ResultWarning(
            "late ranks",
            f"emulated ranks woke up to {1e3 * late:.1f} ms late, "
            f"{late / group.step.mean:.0%} of a step",
            "stop other programs, or increase --time-scale",
        )
    ]


def describe_emulation(launch: Launch) -> str:
    """Emulated device of a launch, with its scale; empty for a launch that computed."""
    emulated = launch.job.get("emulated")
    if not emulated:
        return ""
    scale = emulated["time_scale"]
    slower = "" if scale == 1 else f", times scaled by {scale:g}"
    return f"emulated {emulated['device']}{slower}"


def describe_lab(launch: Launch) -> str:
    """Links of the lab of a launch; empty without a lab."""
    links = launch.environment.get("lab")
    return f"lab of {links}" if links else ""


NAMED_GROUPS = 3
"""Maximum number of groups that a warning names."""


def warning_lines(groups: Sequence[LaunchGroup]) -> list[str]:
    """Warnings about these groups, one line per cause with the names of its groups."""
    by_cause: dict[str, list[tuple[LaunchGroup, ResultWarning]]] = {}
    for group in groups:
        for warning in group.warnings:
            by_cause.setdefault(warning.cause, []).append((group, warning))
    lines = []
    for cause, found in by_cause.items():
        names = "; ".join(group.description for group, _ in found[:NAMED_GROUPS])
        if len(found) > NAMED_GROUPS:
            names += f"; and {len(found) - NAMED_GROUPS} more"
        _, first = found[0]
        lines.append(f"{cause} ({names}): {first.message}; {first.remedy}")
    return lines


def finished(launches: Sequence[Launch]) -> list[Launch]:
    """Finished launches; all launches if none finished.

    A failed launch has no part in comparisons: for ``run`` even its framework and batch are
    unknown.
    """
    return [one for one in launches if one.status is Status.FINISHED] or list(launches)


def grouped(launches: Sequence[Launch]) -> list[LaunchGroup]:
    """Groups of finished launches, sorted by model, processes and kind."""
    by_configuration: dict[tuple[object, ...], list[Launch]] = {}
    for launch in launches:
        if launch.status is Status.FINISHED and launch.is_steady:
            by_configuration.setdefault(configuration(launch), []).append(launch)
    groups = [_group(members) for members in by_configuration.values()]
    return sorted(groups, key=lambda group: _order(group.first))


def _group(members: Sequence[Launch]) -> LaunchGroup:
    sequential = any(launch.job.get("stopping") for launch in members)
    # Costs have an arithmetic mean, rates a harmonic one (Hoefler and Belli, SC 2015, rule 3).
    step = estimate([mean_step_seconds(launch) for launch in members], sequential)
    return LaunchGroup(tuple(members), step.rate_of(members[0].samples_per_step), step)


class JobKey(NamedTuple):
    """Settings that launches share if they are evidence of one job on one machine."""

    model: str
    batch: int
    framework: str
    precision: str
    sequence: int | None
    threads: int | None
    machine: str

    @property
    def description(self) -> str:
        parts = [f"{self.model} b={self.batch}", self.framework]
        parts += [self.precision] if self.precision != "fp32" else []
        parts += [f"{self.sequence} tokens"] if self.sequence is not None else []
        parts += [f"{self.threads} threads"] if (self.threads or 1) > 1 else []
        return ", ".join(parts)


def job_key(launch: Launch) -> JobKey:
    """Job of a launch, without its number of processes and its instrument."""
    return JobKey(
        launch.model,
        launch.batch_per_rank,
        launch.framework,
        launch.precision,
        launch.job.get("sequence"),
        launch.job.get("threads"),
        ", ".join(
            filter(None, (_machine(launch), describe_emulation(launch), describe_lab(launch)))
        ),
    )


def ran_natively(launch: Launch) -> bool:
    """Whether a launch computed on the machine itself: no lab, no emulation."""
    return not describe_emulation(launch) and not describe_lab(launch)


def _machine(launch: Launch) -> str:
    return f"{launch.environment.get('cpu_model')} x{launch.environment.get('cores')}"


def configuration(launch: Launch) -> tuple[object, ...]:
    """Settings that repetitions of one measurement share, beginning with the job."""
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
