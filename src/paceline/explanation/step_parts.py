"""Parts of the observed step of one launch: each instant along the critical path has one owner."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from paceline.step.state_profile import (
    COLLECTIVE,
    COMMUNICATE,
    GROUP_COLLECTIVE,
    HOST,
    Cell,
    Cells,
    RankStates,
    StateProfile,
    ThreadState,
    mean_cells,
    total,
    work_seconds,
)

LAYERS = ("forward", "backward", "update")
SEARCH = "graph search"
RECURRENT = 0.7
"""A straggler works longest in at least this share of the steps ..."""
LEAST_EXCESS = 0.02
"""... and longer than the typical rank by at least this share of the step."""


@dataclass(frozen=True)
class StepParts:
    """Seconds per step of each part; they sum to the observed step.

    - ``compute``: forward, backward and update on a core, on the typical rank
    - ``batch``: lower efficiency of a smaller batch
    - ``memory``: more CPU time than one process needs for the same work
    - ``handling``: CPU time of backward for its messages (copies, submission), or of sharding
    - ``collection``: garbage collection
    - ``search``: search of the graph for unused parameters
    - ``host``: work of the host between the phases of every step
    - ``blocked``: the training thread sleeps or waits for something else than messages
    - ``input``: waiting for input, or preparing it
    - ``stalls``: rare steps that stop for other work
    - ``drift``: growth of the step over the launch
    - ``contention``: runnable without a core, and waiting for threads of the process that are
    - ``straggler``: longer work of one rank in most steps
    - ``jitter``: longer work of a rank that changes from step to step
    - ``collectives``: blocking collectives of the script
    - ``exposed``: gradients that are still in flight when backward ends
    - ``unattributed``: what no evidence owns
    """

    compute: float = 0.0
    batch: float = 0.0
    memory: float = 0.0
    handling: float = 0.0
    collection: float = 0.0
    search: float = 0.0
    host: float = 0.0
    blocked: float = 0.0
    input: float = 0.0
    stalls: float = 0.0
    drift: float = 0.0
    contention: float = 0.0
    straggler: float = 0.0
    jitter: float = 0.0
    collectives: float = 0.0
    exposed: float = 0.0
    unattributed: float = 0.0

    @property
    def total(self) -> float:
        return math.fsum(vars(self).values())

    def plus(self, **more: float) -> "StepParts":
        """With these seconds added to parts."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})


NAMES = tuple(one.name for one in fields(StepParts))


@dataclass(frozen=True)
class Roles:
    """The straggler, if there is one, and the ranks that are typical."""

    straggler: int | None
    typical: tuple[int, ...]


@dataclass(frozen=True)
class ThreadUse:
    """Threads of a rank, seconds per step: the longest delay of one that carries messages, and of
    one that computes; time on a core of those that compute.

    ``others_share`` is the share of the cores that other programs used.
    """

    message_delay: float = 0.0
    compute_delay: float = 0.0
    compute_running: float = 0.0
    hidden_share: float = 0.0
    others_share: float = 1.0


def roles_of(states: Sequence[StateProfile]) -> Roles:
    """Roles of the ranks over launches: the straggler works longest in most steps."""
    ranks = [rank.rank for rank in states[0].ranks]
    work = {rank: _mean(work_seconds(_rank(one, rank).cells) for one in states) for rank in ranks}
    last = {rank: _mean(_rank(one, rank).last_share for one in states) for rank in ranks}
    slowest = max(ranks, key=lambda rank: work[rank])
    others = tuple(rank for rank in ranks if rank != slowest)
    if not others:
        return Roles(None, tuple(ranks))
    usual = sorted(work[rank] for rank in others)[len(others) // 2]
    step = _mean(one.step_seconds for one in states)
    excess = work[slowest] - usual
    deviation = _mean(_rank(one, slowest).deviation_seconds for one in states)
    noise = 2.0 * deviation / math.sqrt(max(1, sum(one.steps for one in states)))
    if last[slowest] >= RECURRENT and excess > max(LEAST_EXCESS * step, noise):
        return Roles(slowest, others)
    return Roles(None, tuple(ranks))


def parts_of(
    states: StateProfile, roles: Roles, threads: ThreadUse, step_seconds: float
) -> StepParts:
    """Parts of one launch, which sum to ``step_seconds``."""
    critical = states.critical
    typical = typical_cells(states, roles)
    usual = sum_by_part(typical)
    collection = min(states.collection_seconds, usual.get("compute", 0.0) + usual.get("host", 0.0))
    from_host = min(collection, usual.get("host", 0.0))
    path = sum_by_part(critical)
    work, path_work = work_seconds(typical), work_seconds(critical)
    straggler = 0.0
    if roles.straggler is not None:
        straggler = work_seconds(_rank(states, roles.straggler).cells) - work
    parts = StepParts(
        compute=usual.get("compute", 0.0) - (collection - from_host),
        collection=collection,
        search=usual.get("search", 0.0),
        host=usual.get("host", 0.0) - from_host,
        blocked=usual.get("blocked", 0.0),
        input=usual.get("input", 0.0),
        stalls=path.get("stalls", 0.0),
        drift=path.get("drift", 0.0),
        contention=path.get("contention", 0.0),
        straggler=straggler,
        jitter=path_work - work - straggler,
        collectives=path.get("collectives", 0.0),
        exposed=path.get("exposed", 0.0),
    )
    parts = _with_threads(parts, threads)
    # A rank without a core is late only by what exceeds the work of the other ranks.
    if parts.jitter < 0:
        moved = min(-parts.jitter, parts.contention)
        parts = parts.plus(jitter=moved, contention=-moved)
    return replace(parts, unattributed=step_seconds - parts.total)


def _with_threads(parts: StepParts, threads: ThreadUse) -> StepParts:
    """Waiting for threads of the own process: of those that compute, or that carry messages."""
    if threads.compute_running > 0:
        # The training thread is blocked while the other threads of its pool compute.
        waited = min(parts.blocked, threads.compute_running + threads.compute_delay)
        late = min(waited, threads.compute_delay)
        parts = parts.plus(blocked=-waited, contention=late, compute=waited - late)
    # Communication threads that lack a core because the ranks compute are a cost of communication.
    shown = (1.0 - threads.hidden_share) * threads.message_delay
    late = threads.others_share * max(0.0, min(shown, parts.exposed + parts.collectives))
    exposed = min(late, parts.exposed)
    return parts.plus(exposed=-exposed, collectives=exposed - late, contention=late)


def compared(
    parts: StepParts,
    alone: StepParts,
    own: Cells,
    before: Cells,
    shared: float | None = None,
    sharded: bool = False,
) -> StepParts:
    """Divide the growth of computing over one process: memory and caches, or messages.

    ``own`` and ``before`` are the cells of the typical rank and of the one process, ``shared`` is
    the growth of ranks that do not communicate. Without it, contention slows forward and backward
    equally, and messages only backward. ``sharded`` ranks copy shards, call hooks and update
    distributed tensors in all phases, which one process does not.
    """
    growth = parts.compute - alone.compute
    forward, forward_before = (_running(cells, "forward") for cells in (own, before))
    backward, backward_before = (_running(cells, "backward") for cells in (own, before))
    handling = 0.0
    if shared is not None:
        handling = max(0.0, growth - max(0.0, shared))
    elif sharded:
        handling = max(0.0, growth)
    elif forward_before > 0 and backward_before > 0:
        slowdown = max(1.0, forward / forward_before)
        handling = min(max(0.0, growth), max(0.0, backward - slowdown * backward_before))
    # A processor that happens to be faster than it was with one process has no contention.
    memory = max(0.0, growth - handling)
    return replace(
        parts, compute=parts.compute - memory - handling, handling=handling, memory=memory
    )


def typical_cells(states: StateProfile, roles: Roles) -> dict[Cell, float]:
    """Mean cells of the typical ranks."""
    chosen = [_rank(states, rank).cells for rank in roles.typical]
    cells = mean_cells(chosen)
    # A wait of one rank in one step and of another in the next is jitter.
    return {cell: min(seconds, states.common.get(cell, seconds)) for cell, seconds in cells.items()}


def sum_by_part(cells: Cells) -> dict[str, float]:
    """Seconds of cells by part."""
    found: dict[str, float] = {}
    for cell, seconds in cells.items():
        name = part_of(cell)
        found[name] = found.get(name, 0.0) + seconds
    return found


_BY_ACTIVITY = {
    COMMUNICATE: "exposed",
    COLLECTIVE: "collectives",
    GROUP_COLLECTIVE: "collectives",
    "stall": "stalls",
    "drift": "drift",
    "input": "input",
    SEARCH: "search",
    "jitter": "jitter",
    "idle": "host",
}


def part_of(cell: Cell) -> str:
    """The part that a cell belongs to."""
    if cell.state is ThreadState.RUNNABLE:
        return "contention"
    if cell.activity in _BY_ACTIVITY:
        return _BY_ACTIVITY[cell.activity]
    if cell.state is ThreadState.BLOCKED:
        return "blocked"
    # Passes without gradients in usual steps are those of a teacher.
    return "compute" if cell.activity in (*LAYERS, "evaluation") else "host"


def _running(cells: Cells, activity: str) -> float:
    return total(cells, (activity,), ThreadState.RUNNING, ThreadState.UNKNOWN)


def _rank(states: StateProfile, rank: int) -> RankStates:
    return next(own for own in states.ranks if own.rank == rank)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known)


@dataclass(frozen=True)
class Contention:
    """CPU contention by who held the core, seconds per step; ``unknown`` is the remainder."""

    by_holder: Mapping[str, float] = field(default_factory=dict)
    unknown: float = 0.0


def contention_by_holder(seconds: float, wanted: Mapping[str, float]) -> Contention:
    """Divide contention by the cores that each holder used, at most what it used (s per step)."""
    left, found = seconds, dict.fromkeys(wanted, 0.0)
    open_ = {name: used for name, used in wanted.items() if used > 0}
    while left > 1e-9 and open_:
        weight = math.fsum(open_.values())
        given = {
            name: min(left * used / weight, wanted[name] - found[name])
            for name, used in open_.items()
        }
        for name, more in given.items():
            found[name] += more
        left = seconds - math.fsum(found.values())
        rest = {name: used for name, used in open_.items() if found[name] < wanted[name] - 1e-9}
        if len(rest) == len(open_):
            break
        open_ = rest
    return Contention({name: own for name, own in found.items() if own > 0}, max(0.0, left))


__all__ = ["HOST", "NAMES", "Roles", "StepParts", "ThreadUse", "compared", "parts_of", "roles_of"]
