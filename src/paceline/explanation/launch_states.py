"""States of a launch for an explanation: as counted, or derived from its profile."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

from paceline.constants import number
from paceline.explanation.step_parts import ThreadUse
from paceline.step import Phase
from paceline.step.state_profile import (
    COMMUNICATE,
    HOST,
    INPUT,
    MESSAGES,
    Batch,
    Cell,
    Cells,
    RankStates,
    Stalls,
    StateProfile,
    ThreadState,
)
from paceline.step.step_profile import RankProfile, StepProfile
from paceline.store import Launch

_GATHERS = ("all_gather_into_tensor", "all_gather_single")
"""Gathers of one tensor: lists and objects are those of the script."""
_ACTIVITY = {
    Phase.COMMUNICATE: COMMUNICATE,
    Phase.WAIT: "idle",
    Phase.OTHER: HOST,
    Phase.COPY: HOST,
}


def launch_states(
    launch: Launch, profile: StepProfile | None, delays: Mapping[int, float], uneven: float
) -> StateProfile | None:
    """States of a launch; those of its profile if the system counted none; None without both.

    A device computes while its host waits, and an emulated one while it sleeps: then a blocked
    thread is no evidence.
    """
    document = launch.outcome.facts.get("states")
    if document is not None:
        found = StateProfile.from_json(document)
        return _without_states(found) if waits_for_a_device(launch) else found
    if profile is None:
        return None
    found = states_of_profile(profile, delays, uneven)
    collected = float(launch.outcome.facts.get("collection_seconds") or 0.0)
    return replace(found, collection_seconds=collected)


def waits_for_a_device(launch: Launch) -> bool:
    """Whether the work of a step is not that of the processor."""
    memory = launch.outcome.facts.get("memory") or ()
    return (
        launch.job.get("device", "cpu") != "cpu"
        or bool(launch.job.get("emulated"))
        or any("device_bytes" in one for one in memory)
    )


def shards(launch: Launch) -> dict[str, list[float]]:
    """Collectives that gather weights and scatter gradients (FSDP); empty without sharding."""
    sent = launch.outcome.facts.get("collectives") or {}
    scattered = [name for name in sent if name.startswith("reduce_scatter")]
    gathered = [name for name in sent if name.startswith(_GATHERS)]
    return {name: sent[name] for name in (*gathered, *scattered)} if gathered and scattered else {}


def states_of_profile(
    profile: StepProfile, delays: Mapping[int, float], uneven: float = 0.0
) -> StateProfile:
    """States from phases and the time that each rank was runnable without a core.

    The kernel counted the delay of the whole step: it is spread over the work of the rank.
    ``uneven`` is the additional delay because the delayed rank varies.
    """
    ranks = tuple(
        RankStates(
            r.rank,
            _with_delay(_cells(r), delays.get(r.rank, 0.0)),
            r.last_share,
            r.deviation_seconds,
        )
        for r in profile.ranks
    )
    slowest = next(r for r in ranks if r.rank == profile.slowest.rank)
    jitter = max(0.0, profile.slowest_seconds - profile.slowest.computing_seconds)
    late = min(jitter, uneven)
    critical = {
        cell: s for cell, s in slowest.cells.items() if cell.activity not in (*MESSAGES, "idle")
    }
    runnable = Cell("jitter", ThreadState.RUNNABLE)
    critical |= {
        Cell("jitter", ThreadState.UNKNOWN): jitter - late,
        runnable: late,
        Cell(COMMUNICATE, ThreadState.UNKNOWN): profile.exposed_seconds,
        Cell("idle", ThreadState.UNKNOWN): profile.idle_seconds,
    }
    pauses, stalls = profile.pauses, None
    if pauses is not None:
        critical[Cell("stall", ThreadState.RUNNING)] = pauses.seconds
        stalls = Stalls(pauses.count, pauses.steps, pauses.every, pauses.each_seconds, pauses.rank)
    return StateProfile(
        profile.steps,
        sum(critical.values()),
        critical,
        tuple(
            replace(r, cells={**r.cells, Cell("idle", ThreadState.UNKNOWN): profile.idle_seconds})
            for r in ranks
        ),
        stalls=stalls,
    )


def _cells(rank: RankProfile) -> dict[Cell, float]:
    found: dict[Cell, float] = {}
    for phase, seconds in rank.phases.items():
        if phase in (Phase.WAIT,):
            continue
        cell = Cell(_ACTIVITY.get(phase, str(phase)), ThreadState.UNKNOWN)
        found[cell] = found.get(cell, 0.0) + seconds
    return found


def _with_delay(cells: dict[Cell, float], delay: float) -> dict[Cell, float]:
    """Cells with their share of the delay of the rank."""
    work = sum(s for cell, s in cells.items() if cell.activity not in MESSAGES)
    if work <= 0 or delay <= 0:
        return cells
    share = min(number("explain.finding.most_delay"), delay / work)
    found = {}
    for cell, seconds in cells.items():
        late = 0.0 if cell.activity in MESSAGES else share * seconds
        found[cell] = seconds - late
        if late:
            found[Cell(cell.activity, ThreadState.RUNNABLE)] = late
    return found


def _without_states(states: StateProfile) -> StateProfile:
    def merged(cells: Cells) -> dict[Cell, float]:
        found: dict[Cell, float] = {}
        for cell, seconds in cells.items():
            own = Cell(cell.activity, ThreadState.UNKNOWN)
            found[own] = found.get(own, 0.0) + seconds
        return found

    return _changed(states, merged)


def _changed(states: StateProfile, change: Callable[[Cells], dict[Cell, float]]) -> StateProfile:
    """States with all cells changed by a function."""

    def changed(ranks: tuple[RankStates, ...]) -> tuple[RankStates, ...]:
        return tuple(replace(rank, cells=change(rank.cells)) for rank in ranks)

    return replace(
        states,
        critical=change(states.critical),
        ranks=changed(states.ranks),
        common=change(states.common),
        batches=tuple(
            Batch(change(one.critical), changed(one.ranks), change(one.common))
            for one in states.batches
        ),
    )


def with_late_workers(states: StateProfile, launch: Launch, others_share: float) -> StateProfile:
    """A wait for a data-loader worker that other programs keep from its core is CPU contention.

    A batch is late by at most the time for which its worker was runnable.
    """
    workers = max(launch.outcome.facts.get("loader_workers") or [0])
    known = [one for one in launch.outcome.facts.get("core_use") or () if one]
    late = max((one.get("worker_delay_seconds", 0.0) for one in known), default=0.0)
    waits = Cell(INPUT, ThreadState.BLOCKED)
    waited = states.critical.get(waits, 0.0)
    if not workers or min(late, waited) <= 0:
        return states
    share = others_share * min(1.0, late / workers / waited)

    def moved(cells: Cells) -> dict[Cell, float]:
        seconds = share * cells.get(waits, 0.0)
        runnable = Cell(INPUT, ThreadState.RUNNABLE)
        found = {**cells, runnable: cells.get(runnable, 0.0) + seconds}
        return {**found, waits: found.get(waits, 0.0) - seconds}

    return _changed(states, moved)


def thread_use(launch: Launch, states: StateProfile, profile: StepProfile | None) -> ThreadUse:
    """Threads of the rank that they delay most; zero if not counted."""
    hidden = 0.0
    if profile is not None and profile.exposed_seconds + profile.hidden_seconds > 0:
        hidden = profile.hidden_seconds / (profile.exposed_seconds + profile.hidden_seconds)
    known = [one for one in launch.outcome.facts.get("core_use") or () if one]
    if waits_for_a_device(launch):
        return ThreadUse(hidden_share=hidden)
    if not known or not states.knows_states:
        carried = launch.outcome.facts.get("message_delay_seconds") or [0.0]
        return ThreadUse(float(max(carried)), hidden_share=hidden)
    nothing = (0.0, 0.0, 0.0)
    messages = [one["threads"].get("messages", nothing) for one in known]
    compute = [one["threads"].get("compute", nothing) for one in known]
    pool = max((one.get("compute_threads", 0) for one in known), default=0) != 1
    return ThreadUse(
        max(own[2] for own in messages),
        max(own[2] for own in compute) if pool else 0.0,
        statistics.fmean(own[1] for own in compute) if pool else 0.0,
        hidden,
    )
