"""A study: which jobs, how often, in what random order; run now, or continued after a crash."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import InputError
from paceline.measurement.design import Design
from paceline.measurement.job import Job
from paceline.measurement.run import DEFAULT_TIMEOUT_SECONDS, run_job
from paceline.measurement.settled import Settled, Turn
from paceline.store import Launch, Store

__all__ = ["Design", "Progress", "run_study"]


@dataclass(frozen=True)
class Progress:
    """Where a study stands: launches done of all, the one about to run, seconds each took.

    ``total`` may grow where a stopping rule adds launches. ``failed`` are launches that failed,
    retried ones too. ``estimates`` are mean seconds per step and their half width as a part, by
    the words of a configuration, of those with three launches or more.
    """

    done: int
    total: int
    job: Job
    seconds_so_far: tuple[float, ...]
    failed: int = 0
    estimates: dict[str, tuple[float, float]] = field(default_factory=dict)


def run_study(
    store: Store,
    study: str,
    design: Design | None = None,
    timeout_seconds: float | None = None,
    port: int | None = None,
    on_launch: Callable[[Progress], None] = lambda progress: None,
    extend: bool = False,
) -> list[Launch]:
    """Run a new study, or, without a ``design``, what is left of one begun earlier.

    A launch that failed is tried once more, after the others; a configuration whose first two
    launches failed is given up. One that was interrupted runs again. With ``extend`` the design
    may be that of a study begun earlier with more or other levels: what is missing runs. Returns
    every launch of the study. Another process that runs the same study is an error.
    """
    with store.held_study(study):
        if store.abandoned():
            from paceline.measurement.watch.launches import close_abandoned

            close_abandoned(store)
        design = _known_design(store, study, design, extend)
        seconds = timeout_seconds or design.launch_seconds or DEFAULT_TIMEOUT_SECONDS
        stopped = _run_all(store, study, design, seconds, port, on_launch)
        store.save_design(study, {**design.to_json(), "ended": stopped}, anew=True)
        return store.launches(study)


def _known_design(store: Store, study: str, design: Design | None, extend: bool) -> Design:
    """The design to run, kept in the store."""
    document = store.design(study)
    if design is None:
        if document is None:
            raise store.no_study(study)
        return Design.from_json(document)
    if not extend and (document is not None or store.count(study)):
        raise InputError(
            f"there is a study named '{study}' already",
            f"'paceline measure --resume {study}' continues one that was measured; "
            "or choose another name",
        )
    store.save_design(study, design.to_json(), anew=extend)
    return design


def _run_all(
    store: Store,
    study: str,
    design: Design,
    timeout_seconds: float,
    port: int | None,
    on_launch: Callable[[Progress], None],
) -> dict[str, Any]:
    """Run what is not settled, turn by turn; what ended the study, as JSON values."""
    settled = Settled.of(design, store.launches(study))
    begun, seconds = time.monotonic(), settled.seconds
    while (turn := settled.next_turn()) is not None:
        spent = math.fsum(seconds) if design.most_seconds is not None else 0.0
        if design.most_seconds is not None and spent >= design.most_seconds:
            return settled.ended("time")
        job = design.jobs[turn.job]
        on_launch(
            Progress(
                settled.done,
                settled.total,
                job,
                tuple(seconds),
                settled.failures,
                settled.estimates(),
            )
        )
        launch = run_job(
            job,
            store,
            study,
            timeout_seconds,
            port,
            marks=_marks(design, turn),
            detect_warmup=design.detect_warmup,
        )
        settled.add(turn, launch)
        seconds.append(launch.outcome.facts.get("seconds", time.monotonic() - begun))
    return settled.ended("design")


def _marks(design: Design, turn: Turn) -> dict[str, Any]:
    """What a launch keeps of its place in the study."""
    marks: dict[str, Any] = {"position": turn.position, "replicate": turn.replicate}
    if design.stopping is not None:
        marks["stopping"] = True
    return marks
