"""CPU contention by who held the cores: threads, processes, data-loader workers, other programs."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from paceline.constants import number
from paceline.explanation.estimated_step import EstimatedStep
from paceline.explanation.measured_configuration import MeasuredConfiguration
from paceline.explanation.step_parts import Contention, contention_by_holder


class Holder(StrEnum):
    """Who held a core while a rank was runnable."""

    THREADS = "threads of the ranks"
    RANKS = "more processes than cores"
    SHARE = "fewer cores per process"
    WORKERS = "data-loader workers"
    MESSAGES = "communication threads"
    OTHERS = "other programs"


@dataclass(frozen=True)
class CoreDemand:
    """Cores of the ranks of one machine, and what wants them."""

    cores: int
    ranks: int
    threads: int
    others: float

    @property
    def oversubscribed(self) -> bool:
        """Whether the ranks compute with more threads than there are cores."""
        return self.threads > 1 and 0 < self.cores < self.ranks * self.threads


def core_demand(own: MeasuredConfiguration) -> CoreDemand:
    """Cores, ranks and threads of a configuration; cores that other programs used."""
    launch = own.launch
    use = [one for one in launch.outcome.facts.get("core_use") or () if one]
    threads = max((int(one.get("compute_threads") or 0) for one in use), default=0)
    threads = threads or int(launch.job.get("threads") or 1)
    ranks = max(1, own.processes // launch.nodes)
    return CoreDemand(own.available_cores, ranks, threads, own.other_cores)


def holders_of(
    own: MeasuredConfiguration, step: EstimatedStep, alone: EstimatedStep | None
) -> Contention:
    """CPU contention divided by who held the cores, at most what each used.

    First what the ranks take from each other: processes in excess of the cores take turns, and
    threads share the cores that one process had to itself. The rest goes to data-loader workers,
    communication threads and other programs by the cores that each used.
    """
    demand, left = core_demand(own), step.parts.contention
    use = [one for one in own.launch.outcome.facts.get("core_use") or () if one]
    found: dict[Holder, float] = {}
    if demand.oversubscribed:
        found[Holder.SHARE] = min(left, _fair_share(demand, alone))
        left -= found[Holder.SHARE]
        found[Holder.THREADS] = left
        if demand.others > number("explain.finding.some_core"):
            threads = demand.ranks * demand.threads / demand.cores - 1.0
            found[Holder.THREADS] = left * threads / (threads + demand.others)
        left -= found[Holder.THREADS]
    elif 0 < demand.cores < demand.ranks:
        # Processes that take turns on fewer cores.
        work = max(0.0, own.group.step.mean - step.parts.contention)
        found[Holder.RANKS] = left
        if demand.others > number("explain.finding.some_core"):
            found[Holder.RANKS] = min(left, (demand.ranks / demand.cores - 1.0) * work)
        left -= found[Holder.RANKS]
    rest = contention_by_holder(left, _wanted(own, demand, use))
    held = {str(name): seconds for name, seconds in found.items() if seconds > 0}
    return Contention({**held, **rest.by_holder}, rest.unknown)


def _fair_share(demand: CoreDemand, alone: EstimatedStep | None) -> float:
    """Time that the ranks need longer because each has fewer cores than one process had."""
    if alone is None or alone.cpu_seconds <= 0:
        return 0.0
    return max(0.0, demand.ranks * alone.cpu_seconds / demand.cores - alone.parts.compute)


def _wanted(
    own: MeasuredConfiguration, demand: CoreDemand, use: list[dict[str, Any]]
) -> dict[str, float]:
    """Seconds per step that each holder used the cores."""
    step = own.group.step.mean
    others = demand.others if demand.others > number("explain.finding.some_core") / 4 else 0.0
    workers = math.fsum(one["worker_seconds"] for one in use)
    full = 0 < demand.cores < demand.ranks * (1 + own.loader_workers)
    if not use and own.loader_workers and full:
        workers = step
    carried = math.fsum(one["threads"].get("messages", (0, 0.0, 0.0))[1] for one in use)
    if not use and own.message_delay_seconds > 0 and not own.crowded_by_others:
        carried = step  # nothing else could run
    least = 0.02 * step
    return {
        str(Holder.OTHERS): others * step,
        str(Holder.WORKERS): workers if workers > least and full else 0.0,
        str(Holder.MESSAGES): carried if carried > least else 0.0,
    }
