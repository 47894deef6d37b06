"""States of the ranks of a job from the marks that its workers write."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from paceline.measurement.events import Event, last_event
from paceline.measurement.job import Job
from paceline.step.critical_states import Mark, RankStep, profile_states
from paceline.step.state_profile import COLLECTIVE, COMMUNICATE, MESSAGES, StateProfile

_OPAQUE = "step"


def worker_states(job: Job, ranks: list[list[Event]]) -> StateProfile | None:
    """Activities and states over the counted steps; None if a worker does not mark its phases.

    An emulated device computes while its rank sleeps, so its states say nothing.
    """
    events = [last_event(own, "steps") or {} for own in ranks]
    marked = [event.get("marks", [])[job.warmup_steps :] for event in events]
    if job.emulated or job.device != "cpu" or not marked or not all(marked):
        return None
    if any(len(rows) < 3 for own in marked for rows in own):
        return None
    sends = job.world_size > 1 and job.synchronise
    in_forward = sends and (job.framework != "torch-ddp" or job.broadcast_buffers)
    waits = {
        **({"backward": COMMUNICATE} if sends else {}),
        **({"forward": COLLECTIVE} if in_forward else {}),
    }
    # The clocks of one host are one clock.
    begun = [event.get("begun", [])[job.warmup_steps :] for event in events]
    shared = job.nodes == 1 and all(len(own) == len(marked[0]) for own in begun)
    steps = []
    for index, step in enumerate(zip(*marked, strict=False)):
        moments = [own[index] if shared else None for own in begun]
        steps.append(
            {
                rank: _rank_step(rows, waits, moment)
                for rank, (rows, moment) in enumerate(zip(step, moments, strict=True))
            }
        )
    return profile_states(steps)


def _rank_step(
    rows: Sequence[Sequence[Any]], waits: dict[str, str], begun: float | None
) -> RankStep:
    """One step from its marks: a phase of ``waits`` is blocked at its end, for messages.

    The marks of a phase give how long it is blocked but not when.
    """
    intervals: list[tuple[str, float, float]] = []
    marks: list[Mark] = []
    for (phase, start, running, waited), (_, end, ran, late) in itertools.pairwise(rows):
        marks.append((start, running, waited))
        name = "host" if phase == _OPAQUE else phase
        if phase not in waits:
            intervals.append((name, start, end))
            continue
        blocked = max(0.0, (end - start) - (ran - running) - (late - waited))
        middle = end - blocked
        marks.append((middle, ran, late))
        intervals += [(name, start, middle), (waits[phase], middle, end)]
    _, end, running, waited = rows[-1]
    marks.append((end, running, waited))
    return RankStep(
        end, [one for one in intervals if one[2] > one[1] or one[0] in MESSAGES], marks, begun
    )


def core_use(ranks: list[list[Event]]) -> list[dict[str, Any] | None]:
    """What used the cores while each rank trained, per step; None if unknown."""
    found: list[dict[str, Any] | None] = []
    for own in ranks:
        event = last_event(own, "steps") or {}
        steps, elapsed = len(event.get("wall_seconds", ())), event.get("elapsed_seconds", 0.0)
        if not steps or elapsed <= 0 or "threads" not in event:
            found.append(None)
            continue
        found.append(
            {
                "threads": {
                    kind: [count, running / steps, waited / steps]
                    for kind, (count, running, waited) in event["threads"].items()
                },
                "worker_seconds": 0.0,
                # Between steps a worker waits for nothing, so elapsed time is that of the steps.
                "busy_cores": event.get("busy_seconds", 0.0) / max(elapsed, math.ulp(1.0)),
                "compute_threads": event.get("compute_threads", 0),
            }
        )
    return found
