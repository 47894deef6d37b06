"""Why a step is as long as it is: the way to it from the ideal, and what would shorten it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.analyse.diagnosis import diagnoses, worth_a_word
from paceline.analyse.finding import Case, Diagnosis, Outside
from paceline.analyse.groups import LaunchGroup, grouped, job_key
from paceline.analyse.host_causes import core_findings
from paceline.analyse.losses import Losses, losses_of, waited_for_cores, with_core_waits
from paceline.analyse.measured_job import measured_job
from paceline.analyse.message_causes import MeasuredExchange, measured_exchange
from paceline.analyse.observed import Observed, observed
from paceline.analyse.statistics import mean_rank_step_seconds
from paceline.analyse.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.errors import InputError
from paceline.frameworks.registry import frameworks
from paceline.hardware.profile import MachineProfile
from paceline.statistics.estimate import estimate
from paceline.step import Phase, StepProfile
from paceline.store import Launch
from paceline.units import format_bytes, format_seconds


@dataclass(frozen=True)
class Explanation:
    """A measured configuration, the way to it from the ideal, what to do, what is not known.

    ``alone`` are the launches on one process that it is compared with, None where there are none.
    ``profile`` has the phases of each rank where steps were looked into. ``findings`` are what a
    remedy would shorten by more than 2 %, the largest first. ``missing`` says which launches
    would tell more.
    """

    measured: LaunchGroup
    alone: LaunchGroup | None
    waterfall: Waterfall
    profile: StepProfile | None
    findings: tuple[Diagnosis, ...]
    missing: tuple[str, ...]

    @property
    def efficiency(self) -> float:
        """The ideal step over the measured one."""
        return self.waterfall.ideal_seconds / self.measured.step.mean


def explain(
    launches: Sequence[Launch],
    processes: int | None = None,
    profile: MachineProfile | None = None,
) -> Explanation:
    """Explain one configuration of a study; by default that with the most processes.

    Any launch will do, one alone too: what it does not tell is said. Communication that no launch
    timed is predicted where launches and the machine's ``profile`` suffice.
    """
    groups = grouped(launches)
    measured = _chosen(groups, processes)
    others = [group for group in groups if group is not measured and _is_ideal(group)]
    own = observed(measured, launches)
    job = job_key(measured.first)
    same = [g for g in others if job_key(g.first) == job] if own.processes > 1 else []
    alone = observed(_plainest(same), launches) if same else None
    larger = [
        g for g in others if job_key(g.first) == job._replace(batch=job.batch * own.processes)
    ]
    whole = observed(_plainest(larger), launches) if larger and own.processes > 1 else None
    beside = next((g for g in groups if _side_by_side(g, measured)), None)
    inside = own.profile
    if inside is None:
        losses = _outside(own, alone, whole, beside, launches, profile)
        found = worth_a_word(core_findings(Outside(own, losses, alone)), own.group.step.mean)
        return _explanation(own, alone, [losses], None, found, _missing(own, alone, None, beside))
    losses = losses_of(inside, own, alone, whole, beside)
    by_launch = [losses_of(one, own, alone, whole, beside) for one in own.profiles]
    exchange = measured_exchange(
        inside,
        inside.slowest.seconds(Phase.BACKWARD) - losses.handling,
        losses.handling,
        own.processes,
        measured.first.nodes,
        profile,
        own.crowding,
    )
    case = Case(own, losses, alone, inside, exchange, profile)
    missing = _missing(own, alone, inside, beside)
    return _explanation(own, alone, [losses, *by_launch], exchange, diagnoses(case), missing)


def _chosen(groups: Sequence[LaunchGroup], processes: int | None) -> LaunchGroup:
    """The configuration to explain: a plain one of the most processes, or of those asked for."""
    able = [
        g
        for g in groups
        if (g.first.synchronised or g.first.world_size == 1)
        and processes in (None, g.first.world_size)
    ]
    if not able:
        counts = sorted({group.first.world_size for group in groups})
        asked = "" if processes is None else f" on {processes} processes"
        raise InputError(
            f"no finished launch{asked} to explain",
            f"there are launches on {', '.join(map(str, counts))}"
            if counts
            else "'paceline measure -j 1x1,1x2' or 'paceline run -- python train.py' makes some",
        )
    return max(able, key=lambda g: (g.first.world_size, g.first.instrument == "none"))


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
    own: Observed,
    alone: Observed | None,
    whole: Observed | None,
    beside: LaunchGroup | None,
    launches: Sequence[Launch],
    profile: MachineProfile | None,
) -> Losses:
    """Losses of a step that nobody looked into: from other launches, parts and the predictor."""
    if alone is None:
        share = own.group.step.mean - waited_for_cores(own)
        if whole is not None:
            share = whole.group.step.mean * own.launch.batch_per_rank / whole.launch.batch_per_rank
        return Losses(ideal=share, cores=0.0 if whole is not None else waited_for_cores(own))
    losses = Losses(ideal=alone.group.step.mean)
    step = alone.group.step.mean
    if {"step", "local_step"} <= own.parts.keys():
        sharing = own.parts["local_step"] - step
        exposed = own.parts["step"] - own.parts["local_step"]
        losses = replace(losses, memory=sharing, exposed=exposed)
    else:
        if beside is not None:
            mean = estimate([mean_rank_step_seconds(launch) for launch in beside.launches]).mean
            losses = replace(losses, memory=mean - step, jitter=beside.step.mean - mean)
        losses = replace(losses, exposed=_predicted_exposure(own, launches, profile))
    return with_core_waits(losses, own, alone)


def _predicted_exposure(
    own: Observed, launches: Sequence[Launch], profile: MachineProfile | None
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
    own: Observed,
    alone: Observed | None,
    losses: Sequence[Losses],
    exchange: MeasuredExchange | None,
    findings: tuple[Diagnosis, ...],
    missing: tuple[str, ...],
) -> Explanation:
    """The explanation; ``losses`` are those of the mean step, then those of each launch."""
    words = "one process alone" if alone is not None else "what its ranks compute"
    if own.profile is None and alone is None:
        words = "the step as a whole: it was not instrumented"
    group = None if alone is None else alone.group
    width = math.nan if group is None else group.step.half_width
    ideal = WaterfallItem("ideal step", losses[0].ideal, ItemKind.IDEAL, words, width)
    mean, *others = (list(_items(own, one, exchange)) for one in losses)
    causes = [
        replace(item, half_width=estimate([one.seconds for one in same]).half_width)
        if (same := [launch[place] for launch in others])
        else item
        for place, item in enumerate(mean)
        if abs(item.seconds) > 1e-12
    ]
    waterfall = Waterfall.between(ideal, own.group.step.mean, causes)
    return Explanation(own.group, group, waterfall, own.profile, findings, missing)


def _items(
    own: Observed, losses: Losses, exchange: MeasuredExchange | None
) -> Iterator[WaterfallItem]:
    """The causes in their order, with what is known of each."""
    profile = own.profile
    yield WaterfallItem("smaller batch per device", losses.batch)
    yield WaterfallItem("waiting for input", losses.input)
    if profile is not None and profile.pauses is not None:
        paused = profile.pauses
        note = f"{paused.count} of {paused.steps} steps, {format_seconds(paused.each_seconds)} each"
        yield WaterfallItem("pauses", losses.pauses, note=note)
    yield WaterfallItem(
        "waiting for a core",
        losses.cores,
        note="as the system counted" if own.delay_seconds else "by CPU time",
    )
    if own.processes > own.launch.nodes:
        yield WaterfallItem("sharing the machine", losses.memory, note="memory bandwidth and cache")
    if profile is not None:
        name = f"rank {profile.slowest.rank} slower"
        yield WaterfallItem(
            name, losses.straggler, note=f"last in {profile.slowest.last_share:.0%} of steps"
        )
    yield WaterfallItem("waiting for the slower", losses.jitter, note="another one each time")
    yield from _communication(own, losses, exchange)
    yield WaterfallItem("host and framework", losses.framework + losses.idle)


def _communication(
    own: Observed, losses: Losses, exchange: MeasuredExchange | None
) -> Iterator[WaterfallItem]:
    profile = own.profile
    if profile is None or exchange is None:
        note = "" if own.parts else "predicted, not measured"
        yield WaterfallItem("exposed all-reduce", losses.exposed, note="" if profile else note)
        return
    starting = _starting_share(exchange) * losses.exposed
    count = len(profile.messages)
    words = f"{count} message{'s' if count != 1 else ''} of {format_bytes(exchange.size_bytes)}"
    hidden = f"{words}, {format_seconds(profile.hidden_seconds)} hidden"
    if exchange.cost.told_apart:
        start = format_seconds(exchange.cost.start_seconds)
        yield WaterfallItem("exposed all-reduce: start", starting, note=f"{start} each")
        yield WaterfallItem("exposed all-reduce: bytes", losses.exposed - starting, note=hidden)
    else:
        yield WaterfallItem("exposed all-reduce", losses.exposed, note=hidden)
    yield WaterfallItem("backward slowed by messages", losses.handling, note=words)


def _starting_share(exchange: MeasuredExchange) -> float:
    """The part of exposed communication that messages without a start would not have."""
    exposed = exchange.exposed_seconds
    if exposed <= 0:
        return 0.0
    at_once = replace(exchange.cost, start_seconds=0.0)
    saved = exchange.added_seconds(exchange.cost) - exchange.added_seconds(at_once)
    return min(1.0, max(0.0, saved / exposed))


def _missing(
    own: Observed,
    alone: Observed | None,
    inside: StepProfile | None,
    beside: LaunchGroup | None,
) -> tuple[str, ...]:
    """What the launches do not tell, each with the launch that would."""
    launch = own.launch
    found = []
    if alone is None and own.processes > 1:
        found.append(f"what one process alone takes, so what sharing costs: {_how_alone(launch)}")
    measured = launch.provenance != "imported" and "command" not in launch.job
    measured = measured and not launch.job.get("recorded")
    if own.processes > launch.nodes and beside is None and measured and alone is not None:
        again = _measured_again(launch, f"1x{own.processes}", "--no-sync")
        found.append(f"what sharing the machine costs by itself: {again}")
    if inside is None and not own.parts:
        counts = f"1x1,{launch.nodes}x{own.processes // launch.nodes}"
        how = "paceline run, or import a trace"
        if measured:
            adapter = frameworks().get(launch.framework)
            kind = "phases" if adapter and "phases" in adapter.instruments else "difference"
            how = _measured_again(launch, counts, f"--instrument none,{kind}")
        found.append(f"where the time goes inside a step: {how}")
    if inside is not None and len(inside.ranks) < own.processes:
        seen = ", ".join(str(rank.rank) for rank in inside.ranks)
        found.append(
            f"what {own.processes - len(inside.ranks)} of {own.processes} ranks do: only rank "
            f"{seen} was seen, which need not be like the others"
        )
    return tuple(found)


def _how_alone(launch: Launch) -> str:
    """The command that records the same job on one process."""
    if launch.provenance == "imported":
        return f"paceline import --study {launch.study} the log or trace of one process"
    if "command" in launch.job or launch.job.get("recorded"):
        return f"paceline run --study {launch.study} -- python ... on one process"
    return _measured_again(launch, "1x1")


def _measured_again(launch: Launch, places: str, options: str = "") -> str:
    """The command that measures the same job again, as far as a hint needs to tell."""
    job = f"--model {launch.model} --batch {launch.batch_per_rank} --framework {launch.framework}"
    return f"paceline measure {job} -j {places} {options}".rstrip()
