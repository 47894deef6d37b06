"""Forecasts, and the protocol of models under test."""

from dataclasses import dataclass
from typing import Protocol

from paceline.validation.published_row import Configuration, PublishedRow


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted throughput of the whole job with its 90 % interval, in the row's unit.

    ``remarks`` list assumptions, and whether the row is outside the validated domain. A model
    without intervals omits ``low`` and ``high``, one without memory omits ``memory_bytes`` (of
    the fullest device), ``first_stage_bytes`` (of the first pipeline stage) and the probability
    that the job fits.
    """

    throughput: float
    low: float | None = None
    high: float | None = None
    remarks: tuple[str, ...] = ()
    memory_bytes: float | None = None
    fits_probability: float | None = None
    first_stage_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row without a prediction, and the reason in one sentence."""

    reason: str


class RowModel(Protocol):
    """A model that can be scored on published rows.

    It gets a configuration and, in baseline mode, the measured baseline of its group. Other
    knowledge must not come from the group that it predicts.
    """

    @property
    def name(self) -> str: ...

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        """The predicted throughput, or the reason why there is none."""
        ...
