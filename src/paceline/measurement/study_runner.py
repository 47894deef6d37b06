"""Runs the launches of a study in the order of its design, or continues after a crash."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import InputError
from paceline.measurement.job import Job
from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS, run_job
from paceline.measurement.study_design import Design
from paceline.measurement.study_state import NextLaunch, StudyState
from paceline.store import Launch, Store

__all__ = ["Design", "Progress", "run_study"]


@dataclass(frozen=True)
class Progress:
    """Progress of a study: launches done and in total, the next job, seconds of each launch.

    ``total`` can grow if a stopping rule adds launches. ``failed`` counts failed launches,
    including repeated ones. ``estimates`` has the mean seconds per step and their relative half
    width, by configuration, for configurations with three launches or more.
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
    """Run a new study or, without a ``design``, the remaining launches of an earlier one.

    A failed launch is repeated once, after the others; a configuration whose first two launches
    failed is abandoned. An interrupted launch runs again. With ``extend`` an existing study takes
    the new design, and its missing launches run. Returns every launch of the study. It is an error
    if another process runs the same study.
    """
    with store.locked_study(study):
        if store.abandoned():
            from paceline.measurement.recording.recorded_launch import close_abandoned

            close_abandoned(store)
        design = _known_design(store, study, design, extend)
        seconds = timeout_seconds or design.launch_seconds or DEFAULT_TIMEOUT_SECONDS
        stopped = _run_all(store, study, design, seconds, port, on_launch)
        store.save_design(study, {**design.to_json(), "ended": stopped}, replace=True)
        return store.launches(study)


def _known_design(store: Store, study: str, design: Design | None, extend: bool) -> Design:
    document = store.design(study)
    if design is None:
        if document is None:
            raise store.no_study(study)
        return Design.from_json(document)
    if not extend and (document is not None or store.count(study)):
        raise InputError(
            f"a study named '{study}' already exists",
            f"continue a measured study with 'paceline measure --resume {study}', or choose "
            "another name",
        )
    store.save_design(study, design.to_json(), replace=extend)
    return design


def _run_all(
    store: Store,
    study: str,
    design: Design,
    timeout_seconds: float,
    port: int | None,
    on_launch: Callable[[Progress], None],
) -> dict[str, Any]:
    """Run the remaining launches; return the rule that stopped the study, as JSON values."""
    state = StudyState.of(design, store.launches(study))
    begun, seconds = time.monotonic(), state.seconds
    while (planned := state.next_launch()) is not None:
        # The time of earlier runs counts too, so that resuming does not extend the budget.
        spent = math.fsum(seconds) if design.most_seconds is not None else 0.0
        if design.most_seconds is not None and spent >= design.most_seconds:
            return state.ended("time")
        job = design.jobs[planned.job]
        on_launch(
            Progress(*state.progress(), job, tuple(seconds), state.failures, state.estimates())
        )
        launch = run_job(
            job,
            store,
            study,
            timeout_seconds,
            port,
            marks=_marks(design, planned),
            detect_warmup=design.detect_warmup,
        )
        state.add(planned, launch)
        seconds.append(launch.outcome.facts.get("seconds", time.monotonic() - begun))
    return state.ended("design")


def _marks(design: Design, planned: NextLaunch) -> dict[str, Any]:
    """Position of a launch in its study, recorded with its job."""
    marks: dict[str, Any] = {"position": planned.position, "replicate": planned.replicate}
    if design.stopping is not None:  # intervals of such launches are widened (stats/stopping.py)
        marks["stopping"] = True
    return marks
