"""Estimate of the launches and the time of a study, from the time of earlier launches."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.measurement.job import Job
from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS
from paceline.measurement.study_design import Design
from paceline.measurement.study_state import StudyState
from paceline.store import Launch, Status
from paceline.workload.graph import Graph


@dataclass(frozen=True)
class StudyEstimate:
    """Launches of a design, completed launches, and estimated seconds of the others.

    ``seconds`` is None if one of the frameworks has no earlier launch; ``most_seconds`` is the
    time if every launch reaches its timeout.
    """

    launches: int
    made: int
    seconds: float | None
    most_seconds: float


def time_estimate(design: Design, launches: Sequence[Launch], study: str) -> StudyEstimate:
    """Estimate the remaining time of a design from the launches of a store."""
    state = StudyState.of(design, [one for one in launches if one.study == study])
    left = [design.jobs[planned.job] for planned in state.left()]
    limit = design.launch_seconds or DEFAULT_TIMEOUT_SECONDS
    finished = [one for one in launches if one.status is Status.FINISHED]
    pace = _Pace(finished)
    known = [pace.seconds(job) for job in left]
    sure = [seconds for seconds in known if seconds is not None]
    most = limit * len(left)
    if design.most_seconds is not None:
        most = min(most, max(0.0, design.most_seconds - math.fsum(state.seconds)))
    total = min(math.fsum(sure), most) if len(sure) == len(known) else None
    done, planned = state.progress()
    return StudyEstimate(planned, done, total, most)


class _Pace:
    """Start time, and time per FLOP of the network, of the launches of each framework."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._starts: dict[str, list[float]] = {}
        self._rates: dict[str, list[float]] = {}
        self._flops: dict[tuple[str, int, int | None], float] = {}
        for one in launches:
            total = one.outcome.facts.get("seconds")
            if total is None or "graph" not in one.job or not one.outcome.ranks:
                continue
            steps = max(math.fsum(rank.wall_seconds) for rank in one.outcome.ranks)
            count = len(one.outcome.ranks[0].wall_seconds)
            flops = self._of(one.model, one.job["graph"], one.batch_per_rank, one.job["sequence"])
            self._starts.setdefault(one.framework, []).append(max(0.0, total - steps))
            self._rates.setdefault(one.framework, []).append(steps / (count * flops))

    def seconds(self, job: Job) -> float | None:
        """Estimated seconds of a launch; None if its framework has no earlier launch."""
        if job.framework not in self._starts:
            return None
        flops = self._of(job.model, job.graph, job.batch_per_rank, job.sequence)
        rate = statistics.median(self._rates[job.framework])
        steps = (job.steps + job.warmup_steps) * flops * rate / job.threads
        return statistics.median(self._starts[job.framework]) + steps

    def _of(self, model: str, graph: object, batch: int, sequence: int | None) -> float:
        """FLOP of a forward pass of one rank, at least 1."""
        key = (model, batch, sequence)
        if key not in self._flops:
            assert isinstance(graph, dict)
            cost = Graph.from_json(graph).cost(batch, sequence)
            self._flops[key] = max(1.0, float(cost.forward_flops))
        return self._flops[key]
