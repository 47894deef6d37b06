"""Scores of predictions: errors of throughput and coverage of intervals."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline.validation.cases import Mode
from paceline.validation.forecast import Forecast
from paceline.validation.published_row import PublishedRow


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """One row with its forecast, or the reason why there is none."""

    measurement: PublishedRow
    mode: Mode
    forecast: Forecast | None
    skipped_because: str = ""
    applicable: bool = True
    """False if the mode does not apply to the row (it is the baseline itself, ...)."""

    @property
    def relative_error(self) -> float:
        """Predicted over measured throughput minus one; positive is too fast."""
        assert self.forecast is not None
        return self.forecast.throughput / self.measurement.throughput - 1.0


@dataclass(frozen=True, slots=True)
class Score:
    """Errors over predicted rows, as fractions of the measured throughput.

    ``geometric_error`` is exp(mean |log(predicted / measured)|) - 1, which is symmetric in
    factors: twice too fast equals twice too slow. ``coverage`` is the share of rows inside their
    interval, ``median_width`` the median of (high - low) / predicted; None without intervals.
    """

    applicable: int
    scored: int
    mean_absolute_error: float
    median_absolute_error: float
    bias: float
    ninetieth_percentile: float
    geometric_error: float
    coverage: float | None
    median_width: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score(outcomes: Iterable[RowOutcome]) -> Score:
    """The score of ``outcomes``; errors are NaN without predictions."""
    applicable = [
        outcome for outcome in outcomes if outcome.applicable and not outcome.measurement.failed
    ]
    scored = [outcome for outcome in applicable if outcome.forecast is not None]
    if not scored:
        nothing = math.nan
        return Score(len(applicable), 0, nothing, nothing, nothing, nothing, nothing, None, None)
    errors = np.array([outcome.relative_error for outcome in scored])
    size = np.abs(errors)
    coverage, width = _intervals(scored)
    return Score(
        len(applicable),
        len(scored),
        float(size.mean()),
        float(np.median(size)),
        float(errors.mean()),
        float(np.percentile(size, 90)),
        float(np.expm1(np.abs(np.log1p(errors)).mean())),
        coverage,
        width,
    )


def scores_by(
    outcomes: Sequence[RowOutcome], columns: Sequence[str]
) -> dict[tuple[str, ...], Score]:
    """Scores of the rows that agree in ``columns`` (attributes of a measurement), sorted."""
    parts: dict[tuple[str, ...], list[RowOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.applicable:
            key = tuple(_label(outcome.measurement.value(column)) for column in columns)
            parts[key].append(outcome)
    return {key: score(parts[key]) for key in sorted(parts)}


def _label(value: Any) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _intervals(scored: Sequence[RowOutcome]) -> tuple[float | None, float | None]:
    inside, widths = [], []
    for outcome in scored:
        forecast = outcome.forecast
        assert forecast is not None
        if forecast.low is not None and forecast.high is not None:
            inside.append(forecast.low <= outcome.measurement.throughput <= forecast.high)
            widths.append((forecast.high - forecast.low) / forecast.throughput)
    if not inside:
        return None, None
    return float(np.mean(inside)), float(np.median(widths))
