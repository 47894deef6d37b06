"""Analysis of a trace: phases, stragglers, communication, and the gain of each fix by replay.

A fix gives one stage, rank or kind of operation its usual duration.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.traces import ParsedTrace, read_trace
from paceline.step import Step
from paceline.step.clocks import align_clocks
from paceline.step.replay import Replay, Selection
from paceline.step.step_profile import StepProfile, profile_steps
from paceline.units import plural

MOST_OPERATIONS = 200_000
"""Limit of replayed operations; of longer traces, evenly spaced steps are replayed."""
MOST_FIXES = 64
"""Limit of ranks, stages or kinds that are fixed one at a time."""
LEAST_GAIN = 1.01


@dataclass(frozen=True)
class Remedy:
    """Step time with ``what`` (``stage 3``, ``rank 5``, ``forward``) at its usual duration."""

    group: str
    what: str
    step_seconds: float
    speed_up: float


@dataclass(frozen=True)
class RemedyAnalysis:
    """Replays of a trace: as recorded, with all durations usual, and with one fix each.

    ``measured_seconds`` is the mean step, ``replayed_seconds`` the same without the host's delays
    between operations, ``ideal_seconds`` the step with every operation at its usual duration.
    """

    steps: int
    operations: int
    measured_seconds: float
    replayed_seconds: float
    ideal_seconds: float
    remedies: tuple[Remedy, ...]

    @property
    def slowdown(self) -> float:
        """Factor by which variation of the same operation lengthens the step."""
        return self.replayed_seconds / self.ideal_seconds if self.ideal_seconds > 0 else 1.0

    @property
    def launching(self) -> float:
        """Factor by which delays between operations lengthen the step."""
        if self.replayed_seconds <= 0:
            return 1.0
        return self.measured_seconds / self.replayed_seconds

    @property
    def cause(self) -> Remedy | None:
        """The rank or stage whose fix gains most; None if the gain is negligible."""
        located = [one for one in self.remedies if one.group != "operation"]
        best = max(located, key=lambda one: one.speed_up, default=None)
        return best if best is not None and best.speed_up > LEAST_GAIN else None


def analyse_remedies(
    steps: Sequence[Step], coordinates: Mapping[int, Mapping[str, str]], common_clock: bool
) -> RemedyAnalysis | None:
    """Replay steps of one or several ranks; None if there are no tasks."""
    sampled = _bounded([step for step in steps if step.tasks and step.seconds > 0])
    if not sampled:
        return None
    replay = Replay(
        sampled if common_clock else [align_clocks(step) for step in sampled], coordinates
    )
    replayed = replay.seconds()
    remedies = [
        Remedy(group, what, seconds, replayed / seconds if seconds > 0 else 1.0)
        for group, what, seconds in _fixed(replay)
    ]
    return RemedyAnalysis(
        len(sampled),
        sum(len(step) for step in replay.steps),
        replay.measured_seconds,
        replayed,
        replay.seconds(lambda operation: True),
        tuple(sorted(remedies, key=lambda one: (one.group, -one.speed_up))),
    )


def _bounded(steps: list[Step]) -> list[Step]:
    """Evenly spaced steps with at most ``MOST_OPERATIONS`` operations."""
    total = sum(len(step.tasks) for step in steps)
    every = max(1, -(-total // MOST_OPERATIONS))
    return steps[::every]


def _fixed(replay: Replay) -> Iterator[tuple[str, str, float]]:
    """Group, name and step time of each single fix."""
    operations = [one for step in replay.steps for one in step]
    for name in _few(one.name for one in operations):
        yield "operation", name, replay.seconds(_called(name))
    ranks = sorted({rank for one in operations for rank in one.ranks})
    if len(ranks) < 2:
        return
    for rank in ranks[:MOST_FIXES]:
        yield "rank", f"rank {rank}", replay.seconds(_of({rank}))
    for axis in dict.fromkeys(name for own in replay.coordinates.values() for name in own):
        for value in _few(own.get(axis, "") for own in replay.coordinates.values()):
            own = {rank for rank, at in replay.coordinates.items() if at.get(axis) == value}
            yield axis, f"{axis} {value}", replay.seconds(_of(own))


def _called(name: str) -> Selection:
    return lambda operation: operation.name == name


def _of(ranks: Set[int]) -> Selection:
    return lambda operation: not ranks.isdisjoint(operation.ranks)


def _few(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))[:MOST_FIXES]


@dataclass(frozen=True)
class TraceAnalysis:
    """A trace, the mean of its steps by rank and phase, and the gains of fixes.

    ``typical`` is the recorded step of median length, with all ranks on one clock.
    """

    trace: ParsedTrace
    profile: StepProfile
    remedies: RemedyAnalysis
    typical: Step


def analyse_trace(paths: Sequence[Path], program: str | None = None) -> TraceAnalysis:
    """Read and analyse a trace of one file, or of one file per rank."""
    trace = read_trace(paths, program)
    steps = trace.training_steps
    counted = steps[1:] if len(steps) > 1 and not trace.common_clock else steps
    profile, typical = profile_steps(counted), trace.typical_step
    remedies = analyse_remedies(counted, trace.coordinates, trace.common_clock)
    if profile is None or remedies is None or typical is None:
        raise InputError(
            f"{paths[0]} has no training step"
            + (f"; {plural(trace.unread, 'entry')} could not be read" if trace.unread else ""),
            "record at least one complete training step",
        )
    shown = typical if trace.common_clock else align_clocks(typical)
    return TraceAnalysis(trace, profile, remedies, shown)
