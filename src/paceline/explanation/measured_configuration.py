"""Measurements of one configuration: step time, phases by rank, CPU time and cores."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.analysis.configurations import LaunchGroup, grouped, job_key
from paceline.constants import number
from paceline.explanation.launch_states import launch_states
from paceline.step import Phase
from paceline.step.state_profile import StateProfile
from paceline.step.step_profile import RankProfile, StepProfile, mean_profile, profile_steps
from paceline.store import Launch, Status


@dataclass(frozen=True)
class MeasuredConfiguration:
    """Launches of one configuration, and the profiles of the instrumented ones.

    ``group`` has the step time; ``profiles`` are from the same launches or from instrumented ones
    of the configuration. ``cpu_seconds`` is the CPU time per step of each rank of these launches;
    it is empty if unknown, and on accelerators, where a waiting host is normal. ``delay_seconds``
    is how long its thread was runnable without a core; ``uneven_delay_seconds`` is the additional
    loss because the delayed rank varies. ``parts`` are mean times of parts of the step that ran
    alone.
    """

    group: LaunchGroup
    profiles: tuple[StepProfile, ...]
    cpu_seconds: dict[int, float]
    parts: dict[str, float]
    delay_seconds: dict[int, float] = field(default_factory=dict)
    uneven_delay_seconds: float = 0.0

    @property
    def launch(self) -> Launch:
        return self.group.first

    @property
    def processes(self) -> int:
        return self.launch.world_size

    @property
    def each(self) -> "list[MeasuredConfiguration]":
        """One configuration per launch."""
        return [observed(grouped([one])[0], [one]) for one in self.group.launches]

    @property
    def profile(self) -> StepProfile | None:
        """The mean of the profiles; None if no launch was instrumented."""
        return mean_profile(self.profiles)

    @property
    def delays(self) -> dict[int, float]:
        """CPU contention by rank; of older launches, wall time without CPU time on full cores."""
        if self.delay_seconds or self.profile is None or not self.short_of_cores:
            return self.delay_seconds
        return {
            rank.rank: max(0.0, computing_seconds(rank) - self.cpu_seconds[rank.rank])
            for rank in self.profile.ranks
            if rank.rank in self.cpu_seconds
        }

    @property
    def states(self) -> StateProfile | None:
        """Activities and states of the only launch, or of the first one; None if unknown."""
        return launch_states(self.launch, self.profile, self.delays, self.uneven_delay_seconds)

    @property
    def computing_seconds(self) -> float:
        """The mean step without input time and pauses, if known."""
        if self.profile is None:
            return self.group.step.mean
        waited = self.profile.usual.seconds(Phase.INPUT) + self.profile.pause_seconds
        return self.group.step.mean - waited

    @property
    def message_delay_seconds(self) -> float:
        """CPU contention of the communication thread per step, seconds; 0 if unknown."""
        facts = self.launch.outcome.facts.get("message_delay_seconds") or [0.0]
        return float(max(facts)) if self.delay_seconds else 0.0

    @property
    def loader_workers(self) -> int:
        """Data-loader workers per rank; 0 if none or unknown."""
        return int(max(self.launch.outcome.facts.get("loader_workers") or [0]))

    @property
    def available_cores(self) -> int:
        """Cores that the ranks of a machine may use; 0 if unknown."""
        return len(self.cores) or int(self.launch.environment.get("cores") or 0)

    @property
    def other_cores(self) -> float:
        """Mean number of cores that other programs used; 0 if unknown."""
        facts, step = self.launch.outcome.facts, self.group.step.mean
        use = [one for one in facts.get("core_use") or () if one]
        if use and self.launch.nodes == 1 and len(use) == self.processes and step > 0:
            ours = math.fsum(
                one["worker_seconds"] + math.fsum(kind[1] for kind in one["threads"].values())
                for one in use
            )
            busy = max(float(one["busy_cores"]) for one in use)
            if busy > 0:
                return max(0.0, busy - ours / step)
        return float(facts.get("other_busy_cores") or 0.0)

    @property
    def others_share(self) -> float:
        """Share of the cores that other programs used; 1 if unknown."""
        facts = self.launch.outcome.facts
        known = facts.get("core_use") or facts.get("other_busy_cores") is not None
        if not known or not self.available_cores:
            return 1.0
        return min(1.0, self.other_cores / self.available_cores)

    @property
    def crowding(self) -> float:
        """Runnable programs per core; 1 without contention.

        Derived from the CPU contention of the typical rank. If unknown, from the machine's load,
        limited by wall over CPU time: a rank that never waited had no contention at any load.
        """
        known = None if self.profile is None else self.profile.usual
        if known is not None and known.rank in self.delay_seconds:
            computing, delay = computing_seconds(known), self.delay_seconds[known.rank]
            # The kernel counts delays of the whole step, computation is only a part of it: the
            # bound avoids a division by zero.
            least = (1.0 - number("explain.finding.most_delay")) * computing
            return computing / max(computing - delay, least) if computing > 0 else 1.0
        facts = self.launch.outcome.facts
        loads = [facts[name] for name in ("load_before", "load_after") if facts.get(name)]
        cores = int(self.launch.environment.get("cores") or 0)
        if not loads or not cores:
            return 1.0
        oversubscribed = statistics.fmean(loads) / cores
        usual = None if self.profile is None else self.profile.usual
        cpu = 0.0 if usual is None else self.cpu_seconds.get(usual.rank, 0.0)
        if usual is not None and cpu > 0:
            oversubscribed = min(oversubscribed, computing_seconds(usual) / cpu)
        return max(1.0, oversubscribed)

    @property
    def cores(self) -> set[int]:
        """Cores that any rank may run on; empty if unknown."""
        return {core for rank in self.launch.outcome.facts.get("cores") or () for core in rank}

    @property
    def confined(self) -> bool:
        """Whether a machine's ranks are pinned to fewer cores than there are ranks."""
        return 0 < len(self.cores) < self.processes / self.launch.nodes

    @property
    def crowded_by_others(self) -> bool:
        """Whether other programs or data-loader workers may have used the cores.

        If not, ranks that have a core each wait only for their own messages.
        """
        others = self.launch.outcome.facts.get("other_busy_cores")
        if others is None or self.loader_workers > 0:
            return True
        return float(others) > number("explain.finding.some_core")

    @property
    def short_of_cores(self) -> bool:
        """Whether ranks and other programs could use more cores than there are."""
        launch = self.launch
        available = self.available_cores
        others = float(launch.outcome.facts.get("other_busy_cores") or 0.0)
        spare = available + number("explain.finding.some_core")
        return available > 0 and self.processes / launch.nodes + others > spare

    @property
    def noise_seconds(self) -> float:
        """Twice the standard error of the mean step, over launches or steps."""
        step = self.group.step
        if step.launches > 1:
            return 2.0 * step.standard_deviation / math.sqrt(step.launches)
        ranks = [r.wall_seconds[self.launch.warmup_steps :] for r in self.launch.outcome.ranks]
        steps = [max(one) for one in zip(*ranks, strict=False)]
        return 2.0 * statistics.stdev(steps) / math.sqrt(len(steps)) if len(steps) > 1 else 0.0


def observed(group: LaunchGroup, launches: Sequence[Launch]) -> MeasuredConfiguration:
    """A configuration with the profiles of any of its launches."""
    same = [one for one in launches if same_configuration(one, group.first)]
    own = [one for one in group.launches if launch_profile(one) is not None]
    seen = own or [one for one in same if launch_profile(one) is not None]
    profiles = tuple(p for p in map(launch_profile, seen) if p is not None)
    rounds: dict[str, list[float]] = {}
    timed = [one for one in group.launches if "parts" in one.outcome.facts]
    for one in timed or same:
        for name, seconds in one.outcome.facts.get("parts", {}).items():
            rounds.setdefault(name, []).extend(seconds)
    return MeasuredConfiguration(
        group,
        profiles,
        _mean_by_rank(seen or group.launches, "cpu_seconds"),
        {name: statistics.fmean(seconds) for name, seconds in rounds.items() if seconds},
        _mean_by_rank(seen or group.launches, "delay_seconds"),
        statistics.fmean(map(_uneven_delay, seen or group.launches)),
    )


def launch_profile(launch: Launch) -> StepProfile | None:
    """Means over the launch's steps; for older records, the profile of the one recorded step."""
    if launch.instrument == "layers":
        return None
    document = launch.outcome.facts.get("profile")
    if document is not None:
        return StepProfile.from_json(document)
    timeline = launch.outcome.timeline
    return None if timeline is None else profile_steps([timeline])


def computing_seconds(rank: RankProfile) -> float:
    """Computation time of a rank per step, without input time."""
    return rank.computing_seconds - rank.seconds(Phase.INPUT)


def same_configuration(launch: Launch, other: Launch) -> bool:
    """Whether a finished launch ran the same configuration as ``other`` with any instrument."""
    return (
        launch.status is Status.FINISHED
        and job_key(launch) == job_key(other)
        and launch.world_size == other.world_size
        and launch.nodes == other.nodes
        and (launch.synchronised or launch.world_size == 1)
        and launch.job.get("bucket_bytes") == other.job.get("bucket_bytes")
    )


def _uneven_delay(launch: Launch) -> float:
    """Mean over steps of the longest delay, less the longest mean delay of a rank."""
    ranks = [rank.delay_seconds[launch.warmup_steps :] for rank in launch.outcome.ranks]
    if not ranks or not all(ranks):
        return 0.0
    longest = statistics.fmean(map(max, zip(*ranks, strict=False)))
    return max(0.0, longest - max(map(statistics.fmean, ranks)))


def _mean_by_rank(launches: Sequence[Launch], name: str) -> dict[int, float]:
    """Mean by rank of a recorded time after warm-up; empty for steps on an accelerator."""
    found: dict[int, list[float]] = {}
    for launch in launches:
        memory = launch.outcome.facts.get("memory") or ()
        if launch.job.get("device", "cpu") != "cpu" or any("device_bytes" in m for m in memory):
            return {}
        for rank in launch.outcome.ranks:
            counted = getattr(rank, name)[launch.warmup_steps :]
            if counted and (name != "cpu_seconds" or math.fsum(counted) > 0):
                found.setdefault(rank.rank, []).append(statistics.fmean(counted))
    return {rank: statistics.fmean(values) for rank, values in found.items()}
