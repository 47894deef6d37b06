"""Where the time of a launch's steps goes along the critical path: activity and state of a thread.

A state is that of the training thread: running on a core, runnable without a core, or blocked.
Each instant of a step has one activity and one state, so the cells of a profile sum to its step.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

COMMUNICATE = "communicate"
"""Waiting for gradients at the end of backward."""
COLLECTIVE = "collective"
"""Waiting in a blocking collective of the script or of buffers."""
GROUP_COLLECTIVE = "group collective"
"""Waiting in a blocking collective of some of the ranks, which does not synchronise all."""
SYNCHRONISING = (COMMUNICATE, COLLECTIVE)
MESSAGES = (*SYNCHRONISING, GROUP_COLLECTIVE)
HOST, INPUT = "host", "input"
COMPUTING = ("forward", "backward", "update", HOST)
"""Activities of the training thread that are neither input nor communication, in every step."""


class ThreadState(StrEnum):
    """State of a thread as the operating system counts it; unknown if it counts nothing."""

    RUNNING = "running"
    RUNNABLE = "runnable"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


class Cell(NamedTuple):
    """An activity (``forward``, ``communicate``, ...) and the state of the thread."""

    activity: str
    state: ThreadState

    @classmethod
    def of(cls, text: str) -> "Cell":
        activity, _, state = text.rpartition("/")
        return cls(activity, ThreadState(state))

    def __str__(self) -> str:
        return f"{self.activity}/{self.state}"


Cells = Mapping[Cell, float]
"""Seconds by cell."""


def total(cells: Cells, activities: Iterable[str] = (), *states: ThreadState) -> float:
    """Seconds of these activities and states; of all if none is given."""
    wanted = set(activities)
    return math.fsum(
        seconds
        for cell, seconds in cells.items()
        if (not wanted or cell.activity in wanted) and (not states or cell.state in states)
    )


@dataclass(frozen=True)
class RankStates:
    """Mean seconds of one rank by cell; ``last_share`` is how often it works longest.

    ``deviation_seconds`` is the standard deviation of its work over steps.
    """

    rank: int
    cells: Cells
    last_share: float
    deviation_seconds: float = 0.0


@dataclass(frozen=True)
class Batch:
    """Means over some consecutive steps of a launch."""

    critical: Cells
    ranks: tuple[RankStates, ...]
    common: Cells = field(default_factory=dict)


@dataclass(frozen=True)
class Stalls:
    """Rare long steps: ``count`` of ``steps``, each ``each_seconds`` longer than the others.

    ``every`` is the median number of steps between two of them, ``kind`` what the host does
    meanwhile (checkpoint, evaluation, garbage collection, logging), empty if unknown. ``line`` is
    the line of the script that was sampled most often, ``deviation_seconds`` the standard deviation
    of their lengths.
    """

    count: int
    steps: int
    every: float
    each_seconds: float
    rank: int
    kind: str = ""
    line: str = ""
    blocked_share: float = 0.0
    deviation_seconds: float | None = None

    @property
    def seconds_per_step(self) -> float:
        """Extra time over the period: a run of few steps has a share of a period at its ends."""
        return self.each_seconds / self.every if self.count > 1 else self.mean_seconds

    @property
    def mean_seconds(self) -> float:
        """Mean over the counted steps."""
        return self.each_seconds * self.count / self.steps


@dataclass(frozen=True)
class Drift:
    """Growth of the step over a launch, from ``first_seconds`` to ``last_seconds``.

    ``seconds`` is the mean excess over the first steps, ``cell`` where most of it is.
    """

    first_seconds: float
    last_seconds: float
    seconds: float
    cell: str


@dataclass(frozen=True)
class StateProfile:
    """Means over the counted steps of one launch, seconds.

    ``critical`` follows the rank that arrives last at each synchronisation; it sums to
    ``step_seconds``. ``batches`` are the same for consecutive parts of the launch. ``stalls`` and
    ``drift`` are included in ``critical`` as cells of their own. ``lines`` has the line of the
    script that was sampled most often in a cell. ``common`` is the time in which all ranks are
    blocked in the same step, by cell: what one rank waits longer in a step is imbalance.
    """

    steps: int
    step_seconds: float
    critical: Cells
    ranks: tuple[RankStates, ...]
    batches: tuple[Batch, ...] = ()
    stalls: Stalls | None = None
    drift: Drift | None = None
    collection_seconds: float = 0.0
    lines: Mapping[str, str] = field(default_factory=dict)
    common: Cells = field(default_factory=dict)

    @property
    def knows_states(self) -> bool:
        return not any(cell.state is ThreadState.UNKNOWN for cell in self.critical)

    def parts(self) -> "list[StateProfile]":
        """The batches as profiles of their own."""
        return [
            replace(
                self,
                step_seconds=math.fsum(one.critical.values()),
                critical=one.critical,
                ranks=one.ranks,
                common=one.common,
                batches=(),
            )
            for one in self.batches
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "step_seconds": self.step_seconds,
            "critical": _cells_json(self.critical),
            "ranks": _ranks_json(self.ranks),
            "common": _cells_json(self.common),
            "batches": [
                {
                    "critical": _cells_json(one.critical),
                    "ranks": _ranks_json(one.ranks),
                    "common": _cells_json(one.common),
                }
                for one in self.batches
            ],
            "stalls": None if self.stalls is None else asdict(self.stalls),
            "drift": None if self.drift is None else asdict(self.drift),
            "collection_seconds": self.collection_seconds,
            "lines": dict(self.lines),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "StateProfile":
        stalls, drift = document.get("stalls"), document.get("drift")
        return cls(
            int(document["steps"]),
            float(document["step_seconds"]),
            _cells(document["critical"]),
            _ranks(document["ranks"]),
            tuple(
                Batch(_cells(one["critical"]), _ranks(one["ranks"]), _cells(one.get("common", {})))
                for one in document.get("batches", ())
            ),
            None if stalls is None else Stalls(**stalls),
            None if drift is None else Drift(**drift),
            float(document.get("collection_seconds", 0.0)),
            {str(k): str(v) for k, v in document.get("lines", {}).items()},
            _cells(document.get("common", {})),
        )


def work_seconds(cells: Cells) -> float:
    """Time of a rank without messages, CPU contention, stalls and drift."""
    return math.fsum(
        seconds
        for cell, seconds in cells.items()
        if cell.state is not ThreadState.RUNNABLE
        and cell.activity not in (*MESSAGES, "stall", "drift")
    )


def mean_cells(every: "list[Cells]") -> dict[Cell, float]:
    """Mean by cell; a missing cell counts as zero."""
    cells = dict.fromkeys(cell for one in every for cell in one)
    return {cell: math.fsum(one.get(cell, 0.0) for one in every) / len(every) for cell in cells}


def _ranks_json(ranks: Iterable[RankStates]) -> list[dict[str, Any]]:
    return [
        {
            "rank": r.rank,
            "last_share": r.last_share,
            "deviation_seconds": r.deviation_seconds,
            "cells": _cells_json(r.cells),
        }
        for r in ranks
    ]


def _ranks(document: Iterable[Mapping[str, Any]]) -> tuple[RankStates, ...]:
    return tuple(
        RankStates(
            int(r["rank"]),
            _cells(r["cells"]),
            float(r["last_share"]),
            float(r.get("deviation_seconds", 0.0)),
        )
        for r in document
    )


def _cells_json(cells: Cells) -> dict[str, float]:
    return {str(cell): seconds for cell, seconds in cells.items()}


def _cells(document: Mapping[str, Any]) -> dict[Cell, float]:
    return {Cell.of(text): float(seconds) for text, seconds in document.items()}
