"""What of a planned design was measured, and what the lack of the rest means for conclusions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from paceline.analysis.configurations import configuration
from paceline.store import Launch, Status
from paceline.units import plural


@dataclass(frozen=True)
class Completeness:
    """Planned and measured configurations of a study.

    ``fewest`` and ``most`` are the launches of a measured configuration that count. ``apart`` has
    pairs of levels of a factor that ran one after the other in time.
    """

    planned: int
    measured: int
    fewest: int
    most: int
    planned_launches: int
    counted_launches: int
    apart: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing, and what follows from it; empty for a complete design."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.measured < self.planned:
            yield (
                f"Incomplete design: {self.planned - self.measured} of "
                f"{plural(self.planned, 'configuration')} have no result. Interactions cannot be "
                "separated from main effects."
            )
        if self.fewest < self.most:
            yield (
                f"Unequal replication: {self.fewest} to {self.most} launches per configuration "
                f"({self.counted_launches} of {self.planned_launches} planned)."
            )
        for factor, first, second in self.apart:
            yield (
                f"{factor} {second} ran only after {factor} {first}: their difference includes "
                "that of two campaigns."
            )


def completeness(design: Mapping[str, Any], launches: Sequence[Launch]) -> Completeness | None:
    """Compare a recorded design (JSON values) with its launches; None without a design."""
    if not design.get("order"):
        return None
    counted = [one for one in launches if one.status is Status.FINISHED and one.is_steady]
    sizes = Counter(map(configuration, counted))
    return Completeness(
        len(design["jobs"]),
        len(sizes),
        min(sizes.values(), default=0),
        max(sizes.values(), default=0),
        len(design["order"]),
        len(counted),
        tuple(_apart(counted)) if design.get("order_kind", "random") == "random" else (),
    )


def _apart(launches: Sequence[Launch]) -> Iterator[tuple[str, Any, Any]]:
    """Levels of which all launches started after the last launch of another level."""
    factors = dict.fromkeys(name for one in launches for name in one.job.get("factors", {}))
    for factor in factors:
        started: dict[Any, list[str]] = {}
        for one in launches:
            if factor in one.job.get("factors", {}):
                started.setdefault(one.job["factors"][factor], []).append(one.created_at)
        several = {level: times for level, times in started.items() if len(times) > 1}
        for first, second in combinations(several, 2):
            if max(several[first]) < min(several[second]):
                yield factor, first, second
            elif max(several[second]) < min(several[first]):
                yield factor, second, first
