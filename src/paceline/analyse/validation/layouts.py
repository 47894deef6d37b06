"""Layout mode: what choosing by the model costs against the best layout that was measured."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import layout_groups
from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.nulls import ideal_throughput
from paceline.analyse.validation.scores import RowOutcome

FloatArray = npt.NDArray[np.float64]
_MOST_NODES = 32
_LEAST_UTILISATION = 0.2


def usable_layouts(layouts: Sequence[Measurement]) -> list[Measurement]:
    """Layouts of up to 32 nodes that ran at a utilisation of 20 % or more."""
    return [
        row
        for row in layouts
        if not row.failed
        and row.configuration.nodes <= _MOST_NODES
        and _utilisation(row) >= _LEAST_UTILISATION
    ]


def _utilisation(row: Measurement) -> float:
    """FLOP that a row did per second over the peak of its devices."""
    attained = ideal_throughput(row.configuration)
    return 0.0 if isinstance(attained, Skipped) else row.throughput / attained


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One job: the layout that the model would take, and what it costs.

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
        """Names and values."""
        return asdict(self)


def layout_choices(outcomes: Sequence[RowOutcome]) -> list[LayoutChoice]:
    """A choice per job of which at least two layouts were predicted.

    The best is sought among all measured layouts of the job, predicted or not.
    """
    by_id = {outcome.measurement.configuration.id: outcome for outcome in outcomes}
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.asked])
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
    """By job, the extra time of the fastest of the ``count`` layouts predicted to be fastest."""
    by_id = {outcome.measurement.configuration.id: outcome for outcome in outcomes}
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.asked])
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
    """Regrets of a rule: as many replicas as can be, then the largest micro-batch."""
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.asked])
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
    """Spearman's rank correlation, ties sharing their mean rank; NaN where one side is level."""
    first, second = _ranks(left), _ranks(right)
    if first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse], dtype=np.float64)
