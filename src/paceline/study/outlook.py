"""What a study will take before it runs: launches, and the time by what launches took so far."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.measurement.design import Design
from paceline.measurement.job import Job
from paceline.measurement.run import DEFAULT_TIMEOUT_SECONDS
from paceline.measurement.settled import Settled
from paceline.store import Launch, Status
from paceline.workload.graph import Graph


@dataclass(frozen=True)
class Outlook:
    """Launches of a design, those made already, and the seconds that the others take.

    ``seconds`` is None where no launch of one of its frameworks tells; ``most_seconds`` is when
    every launch takes as long as it may.
    """

    launches: int
    made: int
    seconds: float | None
    most_seconds: float


def outlook(design: Design, launches: Sequence[Launch], study: str) -> Outlook:
    """What is left of a design, by the launches of a store."""
    settled = Settled.of(design, [one for one in launches if one.study == study])
    left = [design.jobs[turn.job] for turn in settled.left()]
    limit = design.launch_seconds or DEFAULT_TIMEOUT_SECONDS
    finished = [one for one in launches if one.status is Status.FINISHED]
    pace = _Pace(finished)
    known = [pace.seconds(job) for job in left]
    sure = [seconds for seconds in known if seconds is not None]
    most = limit * len(left)
    if design.most_seconds is not None:
        most = min(most, max(0.0, design.most_seconds - math.fsum(settled.seconds)))
    total = min(math.fsum(sure), most) if len(sure) == len(known) else None
    return Outlook(settled.total, settled.done, total, most)


class _Pace:
    """How long launches of each framework take to start, and for an operation of the network."""

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
        """Seconds of a launch; None where none of its framework has run."""
        if job.framework not in self._starts:
            return None
        flops = self._of(job.model, job.graph, job.batch_per_rank, job.sequence)
        rate = statistics.median(self._rates[job.framework])
        steps = (job.steps + job.warmup_steps) * flops * rate / job.threads
        return statistics.median(self._starts[job.framework]) + steps

    def _of(self, model: str, graph: object, batch: int, sequence: int | None) -> float:
        """Operations of a step of one rank; one where the network has none."""
        key = (model, batch, sequence)
        if key not in self._flops:
            assert isinstance(graph, dict)
            cost = Graph.from_json(graph).cost(batch, sequence)
            self._flops[key] = max(1.0, float(cost.forward_flops))
        return self._flops[key]
