"""What a model under test answers, and the protocol it must follow to be tested."""

from dataclasses import dataclass
from typing import Protocol

from paceline.analyse.validation.measurement import Configuration, Measurement


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted throughput of the whole job with its 90 % interval, in the row's unit.

    ``remarks`` say what was assumed and whether the row lies outside the validated domain.
    A model without intervals leaves ``low`` and ``high`` out, one without memory
    ``memory_bytes`` (of the fullest device) and the probability that the job fits.
    """

    throughput: float
    low: float | None = None
    high: float | None = None
    remarks: tuple[str, ...] = ()
    memory_bytes: float | None = None
    fits_probability: float | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """No prediction, and the reason in one sentence."""

    reason: str


class RowModel(Protocol):
    """A model that can be scored on published rows.

    It sees a configuration and, in baseline mode, the measured baseline of its group. What it
    may know beyond them must not come from the group that it predicts.
    """

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """The throughput expected, or why there is none."""
        ...
