"""One configuration as its launches saw it: how long, by rank and phase, and on which cores."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.analyse.groups import LaunchGroup, job_key
from paceline.constants import number
from paceline.step import Phase, RankProfile, StepProfile, combined, profile_steps
from paceline.store import Launch, Status


@dataclass(frozen=True)
class Observed:
    """Launches of one configuration, and the profiles of those whose steps were looked into.

    ``group`` gives the length of the step; ``profiles`` are of the same launches or of
    instrumented ones beside them. ``cpu_seconds`` is the CPU time of each rank per step, of the
    launches that the profiles are of (empty where unknown, and for steps on an accelerator, where
    a host that waits is healthy), ``delay_seconds`` how long its thread was ready to run and had
    no core, likewise; ``uneven_delay_seconds`` is what a step loses because another rank had none
    each time. ``parts`` are means of parts of the step that were run alone.
    """

    group: LaunchGroup
    profiles: tuple[StepProfile, ...]
    cpu_seconds: dict[int, float]
    parts: dict[str, float]
    delay_seconds: dict[int, float] = field(default_factory=dict)
    uneven_delay_seconds: float = 0.0

    @property
    def launch(self) -> Launch:
        """A launch of the configuration."""
        return self.group.first

    @property
    def processes(self) -> int:
        """Ranks in all."""
        return self.launch.world_size

    @property
    def profile(self) -> StepProfile | None:
        """The mean of the profiles; None where no step was looked into."""
        return combined(self.profiles)

    @property
    def input_seconds(self) -> float:
        """Input that nothing hides, of the usual rank; 0 where it is not known."""
        return 0.0 if self.profile is None else self.profile.usual.seconds(Phase.INPUT)

    @property
    def host_seconds(self) -> float:
        """What the host of the usual rank does between the phases of every step; 0 if unknown."""
        return 0.0 if self.profile is None else self.profile.usual.seconds(Phase.OTHER)

    @property
    def computing_seconds(self) -> float:
        """The mean step without waiting for input and without pauses, as far as they are known."""
        pauses = 0.0 if self.profile is None else self.profile.pause_seconds
        return self.group.step.mean - self.input_seconds - pauses

    @property
    def plain_delay_seconds(self) -> float | None:
        """How long rank 0 had no core in the launches that the step's length is of, if known."""
        return _mean_by_rank(self.group.launches, "delay_seconds").get(0)

    @property
    def message_delay_seconds(self) -> float:
        """Seconds of a step in which the thread of the messages had no core; 0 where unknown."""
        facts = self.launch.outcome.facts.get("message_delay_seconds") or [0.0]
        return float(max(facts)) if self.delay_seconds else 0.0

    @property
    def loader_workers(self) -> int:
        """Workers of the data loader of a rank; 0 where there are none or nothing told."""
        return int(max(self.launch.outcome.facts.get("loader_workers") or [0]))

    @property
    def available_cores(self) -> int:
        """Cores that ranks of a machine may use; 0 where unknown."""
        return len(self.cores) or int(self.launch.environment.get("cores") or 0)

    @property
    def crowding(self) -> float:
        """How many wanted each core while this ran; 1 where none waited.

        By how long the usual rank had no core. Where that is not known, by the machine's load, and
        no more than computing took longer than its CPU time: a rank that was never kept waiting
        was not crowded, whatever the load.
        """
        known = None if self.profile is None else self.profile.usual
        if known is not None and known.rank in self.delay_seconds:
            computing, delay = computing_seconds(known), self.delay_seconds[known.rank]
            least = (1.0 - number("explain.finding.most_delay")) * computing
            return computing / max(computing - delay, least) if computing > 0 else 1.0
        facts = self.launch.outcome.facts
        loads = [facts[name] for name in ("load_before", "load_after") if facts.get(name)]
        cores = int(self.launch.environment.get("cores") or 0)
        if not loads or not cores:
            return 1.0
        crowd = statistics.fmean(loads) / cores
        usual = None if self.profile is None else self.profile.usual
        cpu = 0.0 if usual is None else self.cpu_seconds.get(usual.rank, 0.0)
        if usual is not None and cpu > 0:
            crowd = min(crowd, computing_seconds(usual) / cpu)
        return max(1.0, crowd)

    @property
    def cores(self) -> set[int]:
        """Cores that any rank may run on; empty where unknown."""
        return {core for rank in self.launch.outcome.facts.get("cores") or () for core in rank}

    @property
    def confined(self) -> bool:
        """Whether ranks of a machine may run on fewer cores than they are."""
        return 0 < len(self.cores) < self.processes / self.launch.nodes

    @property
    def crowded_by_others(self) -> bool:
        """Whether others may have had the cores: other programs, or workers of a data loader.

        Where they had not, ranks with a core each wait for nothing but their own messages.
        """
        others = self.launch.outcome.facts.get("other_busy_cores")
        if others is None or self.loader_workers > 0:
            return True
        return float(others) > number("explain.finding.some_core")

    @property
    def undisturbed(self) -> bool:
        """Whether every thread that computes had a core, and nobody else wanted it."""
        threads = self.launch.job.get("threads")
        if not threads or self.confined or self.crowded_by_others:
            return False
        return float(self.processes / self.launch.nodes * threads) <= self.available_cores

    @property
    def short_of_cores(self) -> bool:
        """Whether ranks, or they and other programs, had fewer cores than they could use."""
        launch = self.launch
        available = self.available_cores
        others = float(launch.outcome.facts.get("other_busy_cores") or 0.0)
        spare = available + number("explain.finding.some_core")
        return available > 0 and self.processes / launch.nodes + others > spare

    @property
    def noise_seconds(self) -> float:
        """How far the mean step may be off: twice its standard error, over launches or steps."""
        step = self.group.step
        if step.launches > 1:
            return 2.0 * step.standard_deviation / math.sqrt(step.launches)
        ranks = [r.wall_seconds[self.launch.warmup_steps :] for r in self.launch.outcome.ranks]
        steps = [max(one) for one in zip(*ranks, strict=False)]
        return 2.0 * statistics.stdev(steps) / math.sqrt(len(steps)) if len(steps) > 1 else 0.0


def observed(group: LaunchGroup, launches: Sequence[Launch]) -> Observed:
    """A configuration with what any launch of it, timed or not, tells of the inside of a step."""
    beside = [one for one in launches if _same_configuration(one, group.first)]
    own = [one for one in group.launches if launch_profile(one) is not None]
    seen = own or [one for one in beside if launch_profile(one) is not None]
    profiles = tuple(p for p in map(launch_profile, seen) if p is not None)
    parts: dict[str, list[float]] = next(
        (one.outcome.facts["parts"] for one in beside if "parts" in one.outcome.facts), {}
    )
    return Observed(
        group,
        profiles,
        _mean_by_rank(seen or group.launches, "cpu_seconds"),
        {name: statistics.fmean(rounds) for name, rounds in parts.items() if rounds},
        _mean_by_rank(seen or group.launches, "delay_seconds"),
        statistics.fmean(map(_uneven_delay, seen or group.launches)),
    )


def launch_profile(launch: Launch) -> StepProfile | None:
    """Means over the launch's steps; of older records and single steps, that of the one kept."""
    if launch.instrument == "layers":
        return None
    document = launch.outcome.facts.get("profile")
    if document is not None:
        return StepProfile.from_json(document)
    timeline = launch.outcome.timeline
    return None if timeline is None else profile_steps([timeline])


def computing_seconds(rank: RankProfile) -> float:
    """What a rank computes in a step, without what it waits for input."""
    return rank.computing_seconds - rank.seconds(Phase.INPUT)


def _same_configuration(launch: Launch, other: Launch) -> bool:
    return (
        launch.status is Status.FINISHED
        and job_key(launch) == job_key(other)
        and launch.world_size == other.world_size
        and launch.nodes == other.nodes
        and (launch.synchronised or launch.world_size == 1)
        and launch.job.get("bucket_bytes") == other.job.get("bucket_bytes")
    )


def _uneven_delay(launch: Launch) -> float:
    """The longest delay of a mean step, less that of the rank whose mean is longest."""
    ranks = [rank.delay_seconds[launch.warmup_steps :] for rank in launch.outcome.ranks]
    if not ranks or not all(ranks):
        return 0.0
    longest = statistics.fmean(map(max, zip(*ranks, strict=False)))
    return max(0.0, longest - max(map(statistics.fmean, ranks)))


def _mean_by_rank(launches: Sequence[Launch], name: str) -> dict[int, float]:
    """Means over counted steps of a time that ranks recorded; none of steps on an accelerator."""
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
