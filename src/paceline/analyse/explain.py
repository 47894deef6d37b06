"""Why several processes are slower than perfect scaling: the waterfall of a study."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.groups import LaunchGroup, grouped, job_key
from paceline.analyse.measured_job import measured_job
from paceline.analyse.statistics import Estimate, estimate, mean_rank_step_seconds
from paceline.analyse.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.errors import InputError
from paceline.hardware.profile import MachineProfile
from paceline.step import Breakdown, Step, breakdown
from paceline.store import Launch
from paceline.units import format_bytes, format_seconds


@dataclass(frozen=True)
class Explanation:
    """A measured configuration, the way to it from the ideal, and what would tell more.

    ``phases`` is the breakdown of an instrumented step of the same configuration, by rank, where
    there is one. ``missing`` says which launches would explain more.
    """

    measured: LaunchGroup
    alone: LaunchGroup
    waterfall: Waterfall
    phases: tuple[Breakdown, ...]
    missing: tuple[str, ...]

    @property
    def efficiency(self) -> float:
        """Throughput over that of perfect scaling."""
        return self.alone.step.mean / self.measured.step.mean


def explain(
    launches: Sequence[Launch],
    processes: int | None = None,
    profile: MachineProfile | None = None,
) -> Explanation:
    """Explain one configuration of a study; by default that with the most processes.

    Communication that no launch timed is predicted where launches and the machine's
    ``profile`` suffice.
    """
    groups = grouped(launches)
    plain = [group for group in groups if group.first.instrument == "none"]
    synchronised = [g for g in plain if g.first.world_size > 1 and g.first.synchronised]
    alone = [group for group in plain if group.first.world_size == 1]
    if processes is not None:
        synchronised = [g for g in synchronised if g.first.world_size == processes]
    if not synchronised or not alone:
        wanted = "several processes" if not synchronised else "one process"
        raise InputError(
            f"no finished plain launch with {wanted} to explain",
            "'paceline measure -j 1x1,1x2 --instrument none,phases --no-sync' makes all",
        )
    measured = max(synchronised, key=lambda group: group.first.world_size)
    base = _same_workload(alone, measured)
    ranks = measured.first.world_size
    job = job_key(measured.first)
    side_by_side = [
        g
        for g in plain
        if g.first.world_size == ranks and not g.first.synchronised and job_key(g.first) == job
    ]
    timeline = _timeline(launches, measured)
    phases: tuple[Breakdown, ...] = ()
    missing: list[str] = []
    causes: list[WaterfallItem] = []
    if side_by_side:
        causes += _sharing_and_waiting(side_by_side[0], base.step)
    else:
        missing.append("what sharing the machine costs: measure --no-sync")
    if timeline is not None:
        phases = tuple(breakdown(timeline, rank) for rank in timeline.ranks)
        causes.append(_exposed(phases, timeline))
    else:
        missing.append("how much communication is exposed: measure --instrument phases")
        causes += _predicted_exposure(launches, measured, profile)
    ideal = WaterfallItem("ideal step", base.step.mean, ItemKind.IDEAL, "one process alone")
    waterfall = Waterfall.between(ideal, measured.step.mean, causes)
    return Explanation(measured, base, waterfall, phases, tuple(missing))


def _same_workload(alone: Sequence[LaunchGroup], measured: LaunchGroup) -> LaunchGroup:
    for group in alone:
        if job_key(group.first) == job_key(measured.first):
            return group
    raise InputError(
        f"no launch of {measured.first.model} with batch {measured.first.batch_per_rank} on one "
        "process to compare with",
        f"'paceline measure --model {measured.first.model} --batch "
        f"{measured.first.batch_per_rank} -j 1x1' makes one",
    )


def _timeline(launches: Sequence[Launch], measured: LaunchGroup) -> Step | None:
    """A step of the same configuration with its phases and messages, where one was seen."""
    for launch in launches:
        timeline = launch.outcome.timeline
        if (
            timeline is not None
            and launch.instrument != "layers"
            and launch.synchronised
            and launch.world_size == measured.first.world_size
            and job_key(launch) == job_key(measured.first)
        ):
            return timeline
    return None


def _sharing_and_waiting(group: LaunchGroup, alone: Estimate) -> list[WaterfallItem]:
    mean = estimate([mean_rank_step_seconds(launch) for launch in group.launches]).mean
    return [
        WaterfallItem("sharing the machine", mean - alone.mean, note="memory bandwidth and cache"),
        WaterfallItem(
            "waiting for the slower", group.step.mean - mean, note="the step ends with the slowest"
        ),
    ]


def _predicted_exposure(
    launches: Sequence[Launch], measured: LaunchGroup, profile: MachineProfile | None
) -> list[WaterfallItem]:
    if profile is None:
        return []
    own = [launch for launch in launches if job_key(launch) == job_key(measured.first)]
    try:
        found = measured_job(own).on_processes(measured.first.world_size, profile)
    except InputError:
        return []
    seconds = found.exposed_communication_seconds
    return [WaterfallItem("exposed all-reduce", seconds, note="predicted, not measured")]


def _exposed(phases: Sequence[Breakdown], timeline: Step) -> WaterfallItem:
    """Communication nothing hides: that of the rank that waits least, which arrives last."""
    exposed = min(parts.exposed_communication_seconds for parts in phases)
    hidden = min(parts.hidden_communication_seconds for parts in phases)
    sizes = [task.size_bytes for task in timeline.tasks if task.rank == 0 and task.size_bytes > 0]
    words = f"{len(sizes)} message{'s' if len(sizes) != 1 else ''} of {format_bytes(sum(sizes))}"
    return WaterfallItem(
        "exposed all-reduce", exposed, note=f"{words}, {format_seconds(hidden)} hidden"
    )
