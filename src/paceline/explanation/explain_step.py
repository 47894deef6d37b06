"""Break the observed step down by cause, and find remedies."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.analysis.configurations import LaunchGroup, grouped, job_key
from paceline.analysis.launch_statistics import mean_rank_step_seconds
from paceline.calibration.measured_job import measured_job
from paceline.constants import number
from paceline.errors import InputError
from paceline.explanation.core_holders import holders_of
from paceline.explanation.diagnose import diagnoses
from paceline.explanation.diagnose_comm import (
    MeasuredExchange,
    measured_exchange,
    sends_gradients_itself,
)
from paceline.explanation.estimated_step import EstimatedStep, estimate_step
from paceline.explanation.finding import Diagnosis, DiagnosisInput
from paceline.explanation.launch_states import shards
from paceline.explanation.levels import Level, levels_of
from paceline.explanation.measured_configuration import (
    MeasuredConfiguration,
    launch_profile,
    observed,
    same_configuration,
)
from paceline.explanation.missing_measurements import missing_measurements
from paceline.explanation.step_parts import Contention, Roles, StepParts, ThreadUse
from paceline.hardware.machine_profile import MachineProfile
from paceline.stats.estimate import estimate
from paceline.step import Phase
from paceline.step.state_profile import StateProfile
from paceline.step.step_profile import StepProfile
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.store import Launch, Status
from paceline.units import format_bytes, format_seconds, plural

CONTENTION = "memory and cache contention"
LEAST_SHARE = 5e-3
"""Share of the step below which parts are summed in one item."""


@dataclass(frozen=True)
class Explanation:
    """A measured configuration with its waterfall, findings and missing measurements.

    ``alone`` is the one-process configuration that it is compared with, None without one.
    ``alone_waterfall`` has the same parts of its step. ``levels`` are means of launches from one
    process to the ranks with communication. ``profile`` has the phases of each rank. ``findings``
    are the causes with a remedy, the largest first; what other programs cost comes last.
    ``missing`` lists measurements that would add evidence. ``observed`` are the launches that the
    waterfall explains: those of the configuration whose threads and phases were recorded.
    ``by_steps`` is whether intervals are over the steps of the only launch.
    """

    measured: LaunchGroup
    alone: LaunchGroup | None
    waterfall: Waterfall
    profile: StepProfile | None
    findings: tuple[Diagnosis, ...]
    missing: tuple[str, ...]
    observed: LaunchGroup
    alone_waterfall: Waterfall | None = None
    levels: tuple[Level, ...] = ()
    by_steps: bool = False

    @property
    def own_seconds(self) -> float:
        """The step without what other programs and a slow core cost."""
        others = math.fsum(one.seconds for one in self.findings if not one.of_the_job)
        return self.observed.step.mean - others

    @property
    def bottlenecks(self) -> tuple[Diagnosis, ...]:
        """Causes in the job that make it unhealthy."""
        least = number("explain.finding.bottleneck") * self.own_seconds
        return tuple(one for one in self.findings if one.of_the_job and one.seconds > least)

    @property
    def healthy(self) -> bool:
        """Whether the job has no bottleneck, nearly all time has an owner, and most is compute."""
        unknown = abs(self.waterfall.unexplained_seconds)
        return (
            not self.bottlenecks
            and unknown <= number("explain.finding.unattributed") * self.own_seconds
            and self.waterfall.ideal_seconds >= number("explain.finding.compute") * self.own_seconds
        )

    @property
    def study_command(self) -> str:
        """How to repeat the measurement, for `--try`; empty if no command is known."""
        return "paceline explain STUDY" if "command" in self.observed.first.job else ""

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
    untried = [launch for launch in launches if not tried_remedies(launch)]
    launches = _steady(untried or launches)
    groups = grouped(launches)
    measured = _chosen(groups, processes)
    others = [group for group in groups if group is not measured and _is_ideal(group)]
    own = observed(_observed_group(measured, groups), launches)
    job = job_key(measured.first)
    same = [g for g in others if job_key(g.first) == job] if own.processes > 1 else []
    alone = observed(_plainest(same), launches) if same else None
    larger = [
        g for g in others if job_key(g.first) == job._replace(batch=job.batch * own.processes)
    ]
    whole = observed(_plainest(larger), launches) if larger and own.processes > 1 else None
    no_sync = next((g for g in groups if _side_by_side(g, measured)), None)
    before = None
    if alone is not None:
        before = estimate_step(alone) or _outside(alone, None, None, launches, profile)
    step = estimate_step(own, before, _shared_growth(no_sync, alone, before))
    if step is None:
        step = _outside(own, alone, no_sync, launches, profile)
        before = None
    step = _with_batch(step, before, own, alone, whole)
    case = _case(own, alone, step, before, profile)
    items = tuple(_items(case))
    waterfall = Waterfall.between(items[0], own.group.step.mean, items[1:])
    return Explanation(
        measured,
        None if alone is None else alone.group,
        waterfall,
        own.profile,
        diagnoses(case),
        missing_measurements(own, alone, own.profile, no_sync),
        own.group,
        None if alone is None or before is None else _waterfall_alone(alone, before),
        levels_of(None if alone is None else alone.group, no_sync, own.group),
        step.by_steps,
    )


def _shared_growth(
    no_sync: LaunchGroup | None,
    alone: MeasuredConfiguration | None,
    before: EstimatedStep | None,
) -> float | None:
    """Growth of computing over one process in ranks that do not communicate; None if unknown."""
    if no_sync is None or alone is None or before is None:
        return None
    beside = estimate_step(observed(no_sync, no_sync.launches))
    if beside is not None:
        return beside.parts.compute - before.parts.compute
    means = estimate([mean_rank_step_seconds(launch) for launch in no_sync.launches])
    return means.mean - alone.group.step.mean


def _case(
    own: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    step: EstimatedStep,
    before: EstimatedStep | None,
    profile: MachineProfile | None,
) -> DiagnosisInput:
    exchange, inside = None, own.profile
    if inside is not None:
        handling = step.parts.handling
        backward = inside.slowest.seconds(Phase.BACKWARD) - handling
        buckets = own.launch.outcome.facts.get("buckets") or ()
        exchange = measured_exchange(
            inside,
            backward,
            handling,
            own.processes,
            own.launch.nodes,
            profile,
            own.crowding,
            [float(size) for _, sizes in buckets for size in sizes],
            step.parts.collectives > step.parts.exposed and sends_gradients_itself(own.launch),
            bool(own.launch.outcome.facts.get("collectives")),
        )
    holders = holders_of(own, step, before)
    return DiagnosisInput(own, alone, step, before, holders, inside, exchange, profile)


def _with_batch(
    step: EstimatedStep,
    before: EstimatedStep | None,
    own: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    whole: MeasuredConfiguration | None,
) -> EstimatedStep:
    """Separate the lower efficiency of a smaller batch from computing."""
    if whole is None:
        return step
    larger = estimate_step(whole)
    seconds = whole.group.step.mean if larger is None else larger.parts.compute
    share = own.launch.batch_per_rank / whole.launch.batch_per_rank * seconds
    batch = step.parts.compute - share
    return replace(step, parts=step.parts.plus(batch=batch, compute=-batch))


def _steady(launches: Sequence[Launch]) -> Sequence[Launch]:
    """The launches; if no finished one is steady, the unsteady ones count."""
    done = [launch for launch in launches if launch.status is Status.FINISHED]
    if any(launch.is_steady for launch in done):
        return launches
    return [
        replace(launch, outcome=replace(launch.outcome, facts=_without_steadiness(launch)))
        for launch in done
    ]


def _without_steadiness(launch: Launch) -> dict[str, Any]:
    return {name: v for name, v in launch.outcome.facts.items() if name != "steadiness"}


def tried_remedies(launch: Launch) -> str:
    """The remedies that `run --try` applied to a launch; empty for a launch as it is."""
    return str(launch.job.get("factors", {}).get("try", ""))


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
        where = "" if processes is None else f" with {plural(processes, 'process')}"
        raise InputError(
            f"no finished launch{where} to explain",
            f"the study has launches with {', '.join(map(str, counts))} processes"
            if counts
            else "run 'paceline measure -j 1x1,1x2' or 'paceline run -- python train.py' first",
        )
    return max(able, key=lambda g: (g.first.world_size, g.first.instrument == "none"))


def _observed_group(measured: LaunchGroup, groups: Sequence[LaunchGroup]) -> LaunchGroup:
    """The launches that are explained: those whose threads and phases were recorded.

    The causes of some launches do not sum to the step of others.
    """
    same = [g for g in groups if same_configuration(g.first, measured.first)]
    tests = (
        lambda launch: "states" in launch.outcome.facts and launch.outcome.facts["states"],
        launch_profile,
        lambda launch: "parts" in launch.outcome.facts,
    )
    for is_observed in tests:
        for group in (measured, *same):
            seen = [one for one in group.launches if is_observed(one)]
            if seen:
                return group if len(seen) == len(group.launches) else grouped(seen)[0]
    return measured


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
    no_sync: LaunchGroup | None,
    launches: Sequence[Launch],
    profile: MachineProfile | None,
) -> EstimatedStep:
    """Parts of a step that was not instrumented, from other launches and timed parts.

    The operating system counted the time without a core; the rest is compared with one process.
    """
    step = own.group.step.mean
    late = _delay(own)
    parts = StepParts(compute=step - late, contention=late)
    if alone is not None:
        base = min(alone.group.step.mean - _delay(alone), step)
        parts, left = StepParts(compute=base, contention=min(late, step - base)), step - base
        left -= parts.contention
        exposed, shared = 0.0, 0.0
        if {"step", "local_step"} <= own.parts.keys():
            shared = own.parts["local_step"] - alone.group.step.mean
            exposed = own.parts["step"] - own.parts["local_step"]
        else:
            exposed = _predicted_exposure(own, launches, profile)
            if no_sync is not None:
                ranks = [mean_rank_step_seconds(launch) for launch in no_sync.launches]
                shared = estimate(ranks).mean - alone.group.step.mean
        # Contention for memory shows in CPU time.
        cpu, cpu_alone = own.cpu_seconds.get(0), alone.cpu_seconds.get(0)
        grown = 0.0 if cpu is None or cpu_alone is None else cpu - cpu_alone
        memory = max(0.0, min(shared, grown, left))
        exposed = max(0.0, min(exposed, left - memory))
        parts = parts.plus(memory=memory, exposed=exposed)
    parts = parts.plus(unattributed=step - parts.total)
    unknown = StepParts(**dict.fromkeys(vars(parts), math.nan))
    states = StateProfile(0, step, {}, ())
    return EstimatedStep(parts, unknown, False, Roles(None, ()), states, {}, ThreadUse(), (parts,))


def _delay(one: MeasuredConfiguration) -> float:
    """CPU contention of an uninstrumented step: the longest delay of each step counts."""
    if not (one.crowded_by_others or one.confined):
        return 0.0
    longest = max(one.delay_seconds.values(), default=0.0) + one.uneven_delay_seconds
    return min(0.95 * one.group.step.mean, longest)


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


_LABELS = {
    "batch": "smaller batch per device",
    "memory": CONTENTION,
    "handling": "backward slowed by messages",
    "collection": "garbage collection",
    "search": "search for unused parameters",
    "host": "host work between phases",
    "blocked": "host blocked",
    "input": "waiting for input",
    "stalls": "stalls",
    "drift": "drift",
    "straggler": "straggler",
    "jitter": "jitter",
    "collectives": "blocking collectives",
}
_NOTES = {
    "memory": "CPU time grew",
    "blocked": "sleep, I/O, .item()",
    "jitter": "the slowest rank varies",
}


def _items(case: DiagnosisInput) -> Iterator[WaterfallItem]:
    """The ideal step and the causes in the order of the waterfall; small parts are one item."""
    parts, widths = case.step.parts, case.step.widths
    note = "one process alone" if case.alone is not None else "on the typical rank"
    least = LEAST_SHARE * case.step_seconds
    if case.before is not None and parts.compute + parts.batch < case.before.parts.compute - least:
        note = "on the typical rank"  # faster than one process
    if not case.step.states.critical:
        note = note if case.alone is not None else "the whole step: not instrumented"
    yield WaterfallItem("compute", parts.compute, ItemKind.IDEAL, note, widths.compute)
    found = [*_causes(case), *_contention_items(case), *_communication_items(case)]
    small = [item for item in found if abs(item.seconds) < least]
    yield from (item for item in found if abs(item.seconds) >= least)
    rest = math.fsum(item.seconds for item in small)
    if abs(rest) > least / 5:
        width = math.sqrt(math.fsum(i.half_width**2 for i in small if math.isfinite(i.half_width)))
        yield WaterfallItem("other parts below 0.5 %", rest, half_width=width or math.nan)


def _causes(case: DiagnosisInput) -> Iterator[WaterfallItem]:
    parts, widths, states = case.step.parts, case.step.widths, case.step.states
    for name, label in _LABELS.items():
        note = _NOTES.get(name, "")
        if name == "straggler":
            rank = case.step.roles.straggler
            if rank is None:
                continue
            label = f"straggler: rank {rank}"
            note = f"longest in {_last_share(states, rank):.0%} of steps"
        if name == "stalls" and states.stalls is not None:
            stalls = states.stalls
            label = f"stalls: {stalls.kind}" if stalls.kind else label
            each = format_seconds(stalls.each_seconds)
            note = f"{stalls.count} of {stalls.steps} steps, {each} each"
        if name == "drift" and states.drift is not None:
            drift = states.drift
            first, last = format_seconds(drift.first_seconds), format_seconds(drift.last_seconds)
            note = f"from {first} to {last}"
        if name == "blocked":
            note = case.line_of("blocked") or note
        if name == "handling":
            sharded = bool(shards(case.observed.launch))
            label = "work of sharding" if sharded else label
            note = f"CPU time{'' if sharded else ' of backward'} grew"
        yield WaterfallItem(
            label, getattr(parts, name), note=note, half_width=getattr(widths, name)
        )


def _last_share(states: StateProfile, rank: int) -> float:
    return next(one.last_share for one in states.ranks if one.rank == rank)


def _contention_items(case: DiagnosisInput) -> Iterator[WaterfallItem]:
    """CPU contention by who held the cores."""
    seconds, width = case.step.parts.contention, case.step.widths.contention
    held: Contention = case.holders
    named = [*held.by_holder.items(), *([("", held.unknown)] if held.unknown > 0 else [])]
    for name, own in named:
        label = f"CPU contention: {name}" if name else "CPU contention"
        share = own / seconds if seconds > 0 else 0.0
        yield WaterfallItem(label, own, note="runnable, no core", half_width=share * width)


def _communication_items(case: DiagnosisInput) -> Iterator[WaterfallItem]:
    profile, exchange = case.profile, case.exchange
    seconds, width = case.step.parts.exposed, case.step.widths.exposed

    def exposed(label: str, share: float, note: str) -> WaterfallItem:
        return WaterfallItem(label, share * seconds, note=note, half_width=share * width)

    if profile is None or exchange is None:
        note = "" if case.observed.parts or profile is not None else "predicted, not measured"
        yield exposed("exposed all-reduce", 1.0, note)
        return
    size = f"{plural(len(exchange.messages), 'message')}, {format_bytes(exchange.size_bytes)}"
    hidden = f"{size}, {format_seconds(profile.hidden_seconds)} overlapped"
    if exchange.cost.separable:
        starting = _starting_share(exchange)
        start = format_seconds(exchange.cost.start_seconds)
        yield exposed("exposed all-reduce: latency", starting, f"{start} each")
        yield exposed("exposed all-reduce: bandwidth", 1.0 - starting, hidden)
    else:
        yield exposed("exposed all-reduce", 1.0, hidden)


def _waterfall_alone(alone: MeasuredConfiguration, before: EstimatedStep) -> Waterfall:
    """The parts of the one-process step under the labels of `_items`."""
    parts, widths = before.parts, before.widths
    items = [
        WaterfallItem(label, getattr(parts, name), half_width=getattr(widths, name))
        for name, label in _LABELS.items()
    ]
    items.append(WaterfallItem("CPU contention", parts.contention, half_width=widths.contention))
    first = WaterfallItem("compute", parts.compute, ItemKind.IDEAL, "", widths.compute)
    return Waterfall.between(first, alone.group.step.mean, items)


def _starting_share(exchange: MeasuredExchange) -> float:
    """Share of exposed communication that is due to the latency of messages."""
    exposed = exchange.exposed_seconds
    if exposed <= 0:
        return 0.0
    at_once = replace(exchange.cost, start_seconds=0.0)
    saved = exchange.added_seconds(exchange.cost) - exchange.added_seconds(at_once)
    return min(1.0, max(0.0, saved / exposed))
