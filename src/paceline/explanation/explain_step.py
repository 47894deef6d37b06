"""Break a measured step down from the ideal step by cause, and find remedies."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.analysis.configurations import LaunchGroup, grouped, job_key
from paceline.analysis.launch_statistics import mean_rank_step_seconds
from paceline.calibration.measured_job import measured_job
from paceline.errors import InputError
from paceline.explanation.diagnose import diagnoses, reportable
from paceline.explanation.diagnose_comm import MeasuredExchange, measured_exchange
from paceline.explanation.diagnose_host import core_findings
from paceline.explanation.finding import Diagnosis, DiagnosisInput, UninstrumentedInput
from paceline.explanation.measured_configuration import (
    MeasuredConfiguration,
    launch_profile,
    observed,
    same_configuration,
)
from paceline.explanation.missing_measurements import missing_measurements
from paceline.explanation.overheads import (
    StepOverheads,
    cpu_contention_seconds,
    over_launches,
    overheads_of,
    with_contention_by_cpu,
    with_cpu_contention,
)
from paceline.hardware.machine_profile import MachineProfile
from paceline.stats.estimate import Estimate, estimate
from paceline.step import Phase
from paceline.step.step_profile import StepProfile
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.store import Launch
from paceline.units import format_bytes, format_seconds, plural

CONTENTION = "memory and cache contention"
LEAST_SHARE = 1e-3
"""Share of the step below which a cause has no item."""


@dataclass(frozen=True)
class Explanation:
    """A measured configuration with its waterfall, findings and missing measurements.

    ``alone`` is the one-process configuration that it is compared with, None without one.
    ``profile`` has the phases of each rank of instrumented steps. ``findings`` are those whose
    remedy saves more than 2 % of the step, the largest first. ``missing`` lists measurements that
    would add evidence. ``observed`` are the launches that the waterfall explains: the instrumented
    ones of the configuration, which may differ from ``measured``.
    """

    measured: LaunchGroup
    alone: LaunchGroup | None
    waterfall: Waterfall
    profile: StepProfile | None
    findings: tuple[Diagnosis, ...]
    missing: tuple[str, ...]
    observed: LaunchGroup

    @property
    def efficiency(self) -> float:
        """The ideal step over the observed one."""
        return self.waterfall.ideal_seconds / self.observed.step.mean

    @property
    def instrumented_difference(self) -> tuple[float, float] | None:
        """Difference of the mean steps of observed and plain launches, and half its 95 % interval.

        In seconds. NaN if either group has a single launch; None if both are the same launches.
        """
        if self.observed is self.measured:
            return None
        ours, plain = self.observed.step, self.measured.step
        return ours.mean - plain.mean, math.hypot(ours.half_width, plain.half_width)


def explain(
    launches: Sequence[Launch],
    processes: int | None = None,
    profile: MachineProfile | None = None,
) -> Explanation:
    """Explain one configuration of a study; by default the one with the most processes.

    One launch is enough; ``missing`` then lists the measurements that would add evidence.
    Communication that no launch timed is predicted if the launches and ``profile`` suffice.
    """
    groups = grouped(launches)
    measured = _chosen(groups, processes)
    others = [group for group in groups if group is not measured and _is_ideal(group)]
    own = observed(_instrumented(measured, groups), launches)
    job = job_key(measured.first)
    same = [g for g in others if job_key(g.first) == job] if own.processes > 1 else []
    alone = observed(_plainest(same), launches) if same else None
    larger = [
        g for g in others if job_key(g.first) == job._replace(batch=job.batch * own.processes)
    ]
    whole = observed(_plainest(larger), launches) if larger and own.processes > 1 else None
    no_sync = next((g for g in groups if _side_by_side(g, measured)), None)
    missing = missing_measurements(own, alone, own.profile, no_sync)
    inside = own.profile
    if inside is None:
        seen = own.each if own.parts else [own]
        by_launch = [_outside(one, alone, whole, no_sync, launches, profile) for one in seen]
        overheads, widths = over_launches(by_launch, _references(own, alone, no_sync))
        found = reportable(
            core_findings(UninstrumentedInput(own, overheads, alone)), own.group.step.mean
        )
        items, ideal = _items(own, overheads, widths, None), (overheads.ideal, widths.ideal)
        return _explanation(measured, own, alone, ideal, items, found, missing)
    overheads, widths = _inside(own, inside, alone, whole, no_sync)
    exchange = measured_exchange(
        inside,
        inside.slowest.seconds(Phase.BACKWARD) - overheads.handling,
        overheads.handling,
        own.processes,
        measured.first.nodes,
        profile,
        own.crowding,
    )
    found = diagnoses(DiagnosisInput(own, overheads, alone, inside, exchange, profile))
    items, ideal = _items(own, overheads, widths, exchange), (overheads.ideal, widths.ideal)
    return _explanation(measured, own, alone, ideal, items, found, missing)


def _chosen(groups: Sequence[LaunchGroup], processes: int | None) -> LaunchGroup:
    """The plain configuration of ``processes``, or of the most processes."""
    able = [
        g
        for g in groups
        if (g.first.synchronised or g.first.world_size == 1)
        and processes in (None, g.first.world_size)
    ]
    if not able:
        counts = sorted({group.first.world_size for group in groups})
        where = "" if processes is None else f" with {processes} processes"
        raise InputError(
            f"no finished launch{where} to explain",
            f"the study has launches with {', '.join(map(str, counts))} processes"
            if counts
            else "run 'paceline measure -j 1x1,1x2' or 'paceline run -- python train.py' first",
        )
    return max(able, key=lambda g: (g.first.world_size, g.first.instrument == "none"))


def _instrumented(measured: LaunchGroup, groups: Sequence[LaunchGroup]) -> LaunchGroup:
    """The instrumented launches of the configuration; all of its launches if there are none.

    Only these are explained: the causes of some launches do not sum to the step of others.
    """
    same = [g for g in groups if same_configuration(g.first, measured.first)]

    def has_parts(launch: Launch) -> bool:
        return "parts" in launch.outcome.facts

    for is_instrumented in (launch_profile, has_parts):
        for group in (measured, *same):
            seen = [one for one in group.launches if is_instrumented(one)]
            if seen:
                return group if len(seen) == len(group.launches) else grouped(seen)[0]
    return measured


def _inside(
    own: MeasuredConfiguration,
    mean: StepProfile,
    alone: MeasuredConfiguration | None,
    whole: MeasuredConfiguration | None,
    no_sync: LaunchGroup | None,
) -> tuple[StepOverheads, StepOverheads]:
    """Mean overheads of instrumented launches, and half their intervals.

    No-sync launches that vary too much to resolve the cost of messages do not resolve contention
    either: then they are not used.
    """
    by_launch = [overheads_of(p, one, alone, whole, no_sync) for one, p in _singly(own, mean)]
    overheads, widths = over_launches(by_launch, _references(own, alone, no_sync))
    if no_sync is not None and overheads.handling == 0.0 and any(one.handling for one in by_launch):
        return _inside(own, mean, alone, whole, None)
    return overheads, widths


def _singly(
    own: MeasuredConfiguration, mean: StepProfile
) -> Iterator[tuple[MeasuredConfiguration, StepProfile]]:
    """Each launch with its profile; the slowest and typical rank are those of the mean."""
    roles = (mean.slowest.rank, mean.usual.rank)
    for one in own.each:
        if one.profile is not None and len(one.profile.ranks) == len(mean.ranks):
            yield one, replace(one.profile, roles=roles)


def _references(
    own: MeasuredConfiguration, alone: MeasuredConfiguration | None, no_sync: LaunchGroup | None
) -> dict[str, list[Estimate]]:
    """Step times of other launches that an overhead is a difference from, by overhead."""
    without = [] if no_sync is None else [no_sync.step]
    before = []
    if alone is not None:
        ideals = [
            one.group.step.mean - cpu_contention_seconds(one)
            if own.profile is None
            else overheads_of(own.profile, own, one).ideal
            for one in alone.each
        ]
        before = [estimate(ideals)]
    return {"ideal": before, "memory": [*before, *without], "handling": without}


def _is_ideal(group: LaunchGroup) -> bool:
    return group.first.world_size == 1 and group.first.instrument in ("none", "phases")


def _plainest(groups: Sequence[LaunchGroup]) -> LaunchGroup:
    return min(groups, key=lambda group: group.first.instrument != "none")


def _side_by_side(group: LaunchGroup, measured: LaunchGroup) -> bool:
    first = group.first
    return (
        not first.synchronised
        and first.instrument == "none"
        and first.world_size == measured.first.world_size
        and first.world_size > 1
        and job_key(first) == job_key(measured.first)
    )


def _outside(
    own: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    whole: MeasuredConfiguration | None,
    no_sync: LaunchGroup | None,
    launches: Sequence[Launch],
    profile: MachineProfile | None,
) -> StepOverheads:
    """Overheads of an uninstrumented step, from other launches, timed parts and the predictor."""
    if alone is None:
        share = own.group.step.mean - cpu_contention_seconds(own)
        if whole is not None:
            share = whole.group.step.mean * own.launch.batch_per_rank / whole.launch.batch_per_rank
        return StepOverheads(
            ideal=share, cores=0.0 if whole is not None else cpu_contention_seconds(own)
        )
    overheads = StepOverheads(ideal=alone.group.step.mean)
    step = alone.group.step.mean
    if {"step", "local_step"} <= own.parts.keys():
        sharing = own.parts["local_step"] - step
        exposed = own.parts["step"] - own.parts["local_step"]
        overheads = replace(overheads, memory=sharing, exposed=exposed)
    else:
        if no_sync is not None:
            mean = estimate([mean_rank_step_seconds(launch) for launch in no_sync.launches]).mean
            overheads = replace(overheads, memory=mean - step, jitter=no_sync.step.mean - mean)
        overheads = replace(overheads, exposed=_predicted_exposure(own, launches, profile))
    return with_contention_by_cpu(with_cpu_contention(overheads, own, alone), own, alone)


def _predicted_exposure(
    own: MeasuredConfiguration, launches: Sequence[Launch], profile: MachineProfile | None
) -> float:
    same = [launch for launch in launches if job_key(launch) == job_key(own.launch)]
    if profile is None:
        return 0.0
    try:
        found = measured_job(same).on_processes(own.processes, profile)
    except InputError:
        return 0.0
    return found.exposed_communication_seconds


def _explanation(
    measured: LaunchGroup,
    own: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    ideal: tuple[float, float],
    causes: Iterable[WaterfallItem],
    findings: tuple[Diagnosis, ...],
    missing: tuple[str, ...],
) -> Explanation:
    # The waterfall ends at the step of the instrumented launches: causes must sum to it.
    note = "one process alone" if alone is not None else "compute time of its ranks"
    if own.profile is None and alone is None:
        note = "the whole step: not instrumented"
    group = None if alone is None else alone.group
    waterfall = Waterfall.between(
        WaterfallItem("ideal step", ideal[0], ItemKind.IDEAL, note, ideal[1]),
        own.group.step.mean,
        [item for item in causes if abs(item.seconds) > LEAST_SHARE * own.group.step.mean],
    )
    return Explanation(measured, group, waterfall, own.profile, findings, missing, own.group)


def _items(
    own: MeasuredConfiguration,
    overheads: StepOverheads,
    widths: StepOverheads,
    exchange: MeasuredExchange | None,
) -> Iterator[WaterfallItem]:
    """The causes in the order of the waterfall; ``widths`` are half intervals."""

    def cause(label: str, name: str, note: str = "") -> WaterfallItem:
        seconds, width = getattr(overheads, name), getattr(widths, name)
        return WaterfallItem(label, seconds, note=note, half_width=width)

    profile = own.profile
    yield cause("smaller batch per device", "batch")
    yield cause("waiting for input", "input")
    if profile is not None and profile.pauses is not None:
        paused = profile.pauses
        note = f"{paused.count} of {paused.steps} steps, {format_seconds(paused.each_seconds)} each"
        yield cause("pauses", "pauses", note)
    counted = "runnable, no core" if own.delay_seconds else "estimated from CPU time"
    yield cause("CPU contention", "cores", counted)
    if own.processes > own.launch.nodes:
        yield cause(CONTENTION, "memory", "CPU time grew")
    if profile is not None:
        last = f"last in {profile.slowest.last_share:.0%} of steps"
        yield cause(f"straggler: rank {profile.slowest.rank}", "straggler", last)
    yield cause("jitter", "jitter", "the slowest rank varies")
    yield from _communication(own, overheads, widths, exchange)
    width = math.hypot(widths.framework, widths.idle)
    yield WaterfallItem(
        "framework overhead", overheads.framework + overheads.idle, half_width=width
    )


def _communication(
    own: MeasuredConfiguration,
    overheads: StepOverheads,
    widths: StepOverheads,
    exchange: MeasuredExchange | None,
) -> Iterator[WaterfallItem]:
    profile = own.profile

    def exposed(label: str, share: float, note: str) -> WaterfallItem:
        seconds, width = share * overheads.exposed, share * widths.exposed
        return WaterfallItem(label, seconds, note=note, half_width=width)

    if profile is None or exchange is None:
        note = "" if own.parts or profile is not None else "predicted, not measured"
        yield exposed("exposed all-reduce", 1.0, note)
        return
    starting = _starting_share(exchange)
    count = plural(len(profile.messages), "message")
    size = f"{count}, {format_bytes(exchange.size_bytes)}"
    hidden = f"{size}, {format_seconds(profile.hidden_seconds)} overlapped"
    if exchange.cost.separable:
        start = format_seconds(exchange.cost.start_seconds)
        yield exposed("exposed all-reduce: latency", starting, f"{start} each")
        yield exposed("exposed all-reduce: bandwidth", 1.0 - starting, hidden)
    else:
        yield exposed("exposed all-reduce", 1.0, hidden)
    yield WaterfallItem(
        "backward slowed by messages", overheads.handling, note=size, half_width=widths.handling
    )


def _starting_share(exchange: MeasuredExchange) -> float:
    """Share of exposed communication that is due to the latency of messages."""
    exposed = exchange.exposed_seconds
    if exposed <= 0:
        return 0.0
    at_once = replace(exchange.cost, start_seconds=0.0)
    saved = exchange.added_seconds(exchange.cost) - exchange.added_seconds(at_once)
    return min(1.0, max(0.0, saved / exposed))
