"""Layout mode: regret of the model's choice against the best measured layout."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.validation.cases import layout_groups
from paceline.validation.forecast import Skipped
from paceline.validation.null_models import ideal_throughput
from paceline.validation.published_row import PublishedRow
from paceline.validation.scores import RowOutcome

FloatArray = npt.NDArray[np.float64]
_MOST_NODES = 32
_LEAST_UTILISATION = 0.2


def usable_layouts(layouts: Sequence[PublishedRow]) -> list[PublishedRow]:
    """Layouts of up to 32 nodes with a utilisation of 20 % or more."""
    return [
        row
        for row in layouts
        if not row.failed
        and row.configuration.nodes <= _MOST_NODES
        and _utilisation(row) >= _LEAST_UTILISATION
    ]


def _utilisation(row: PublishedRow) -> float:
    """Achieved FLOP/s of a row over the peak of its devices."""
    attained = ideal_throughput(row.configuration)
    return 0.0 if isinstance(attained, Skipped) else row.throughput / attained


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One job: the layout that the model chooses, and its regret.

    ``regret`` is the measured step time of the chosen layout over that of the best one, less
    one; ``rank_correlation`` is Spearman's over the layouts that were predicted.
    """

    group: str
    devices: int
    global_batch: float
    layouts: int
    chosen: str
    best: str
    regret: float
    rank_correlation: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def layout_choices(outcomes: Sequence[RowOutcome]) -> list[LayoutChoice]:
    """A choice for each job with at least two predicted layouts.

    The best layout is among all measured ones of the job, predicted or not.
    """
    by_id = {outcome.measurement.configuration.id: outcome for outcome in outcomes}
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.applicable])
    choices = []
    for (group, devices, global_batch), rows in sorted(groups.items()):
        predicted = [
            (row, outcome.forecast.throughput)
            for row in rows
            if (outcome := by_id[row.configuration.id]).forecast is not None
        ]
        if len(predicted) < 2:
            continue
        chosen = max(predicted, key=lambda pair: pair[1])[0]
        best = max(rows, key=lambda row: row.throughput)
        choices.append(
            LayoutChoice(
                group,
                devices,
                global_batch,
                len(rows),
                chosen.configuration.id,
                best.configuration.id,
                best.throughput / chosen.throughput - 1.0,
                rank_correlation(
                    np.array([row.throughput for row, _ in predicted]),
                    np.array([speed for _, speed in predicted]),
                ),
            )
        )
    return choices


def top_regret(outcomes: Sequence[RowOutcome], count: int) -> list[float]:
    """By job, the regret of the best of the ``count`` layouts that are predicted fastest."""
    by_id = {outcome.measurement.configuration.id: outcome for outcome in outcomes}
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.applicable])
    regrets = []
    for rows in groups.values():
        predicted = [
            (outcome.forecast.throughput, row.throughput)
            for row in rows
            if (outcome := by_id[row.configuration.id]).forecast is not None
        ]
        if len(predicted) < 2:
            continue
        tried = sorted(predicted, reverse=True)[:count]
        best = max(row.throughput for row in rows)
        regrets.append(best / max(measured for _, measured in tried) - 1.0)
    return regrets


def rule_of_thumb_regrets(outcomes: Sequence[RowOutcome]) -> list[float]:
    """Regrets of a rule of thumb: most replicas first, then the largest micro-batch."""
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.applicable])
    regrets = []
    for rows in groups.values():
        chosen = max(
            rows,
            key=lambda row: (row.configuration.dp or 0, row.configuration.micro_batch or 0.0),
        )
        best = max(row.throughput for row in rows)
        regrets.append(best / chosen.throughput - 1.0)
    return regrets


def rank_correlation(left: FloatArray, right: FloatArray) -> float:
    """Spearman's rank correlation with mean ranks for ties; NaN if one side is constant."""
    first, second = _ranks(left), _ranks(right)
    if first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse], dtype=np.float64)
