"""Predicted memory against measured peaks, and verdicts on jobs that ran and that failed."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from paceline.validation.scores import RowOutcome


@dataclass(frozen=True, slots=True)
class MemoryVerdicts:
    """Errors of ``peaks`` measured peaks, and whether jobs were predicted to fit.

    ``mean_error`` is relative to measured bytes, for the first pipeline stage: programs print the
    peak of rank 0. A job is predicted to fit if its probability is one half or more. A failed job
    whose plan is rejected is predicted to fail; not every failed job was out of memory.
    """

    peaks: int
    mean_error: float | None
    ran: int
    ran_predicted_to_fit: int
    failed: int
    failed_predicted_not_to_fit: int

    @property
    def text(self) -> str:
        """One line; empty without any verdict."""
        found = []
        if self.mean_error is not None:
            found.append(f"{self.peaks} measured peaks, mean error {self.mean_error:.1%}")
        if self.ran:
            share = self.ran_predicted_to_fit / self.ran
            found.append(f"{self.ran} jobs ran, {share:.1%} predicted to fit")
        if self.failed:
            share = self.failed_predicted_not_to_fit / self.failed
            found.append(f"{self.failed} failed, {share:.1%} predicted not to fit")
        return f"Memory: {'; '.join(found)}." if found else ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def memory_verdicts(outcomes: Iterable[RowOutcome]) -> MemoryVerdicts:
    """Verdicts on all rows that a mode applies to."""
    errors: list[float] = []
    ran, failed = [0, 0], [0, 0]
    for outcome in outcomes:
        row, forecast = outcome.measurement, outcome.forecast
        if not outcome.applicable:
            continue
        chance = None if forecast is None else forecast.fits_probability
        if row.failed:
            rejected = forecast is None
            failed[0] += rejected or chance is not None
            failed[1] += rejected or (chance is not None and chance < 0.5)
            continue
        if chance is not None:
            ran[0] += 1
            ran[1] += chance >= 0.5
        first = None if forecast is None else forecast.first_stage_bytes
        if row.memory_bytes and first is not None:
            errors.append(abs(first / row.memory_bytes - 1.0))
    error = sum(errors) / len(errors) if errors else None
    return MemoryVerdicts(len(errors), error, *ran, *failed)
