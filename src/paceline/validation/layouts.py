"""Layout mode: regret of the model's choice against the best measured layout."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.validation.cases import layout_groups
from paceline.validation.forecast import Skipped
from paceline.validation.null_models import ideal_throughput
from paceline.validation.published_row import PublishedRow
from paceline.validation.row_step_model import measured_seconds
from paceline.validation.scores import RowOutcome

FloatArray = npt.NDArray[np.float64]
_MOST_NODES = 32
_LEAST_UTILISATION = 0.2
_STALL_SECONDS = 0.3
_FULL_BYTES = 70 * 2**30


def fitted_layouts(layouts: Sequence[PublishedRow]) -> list[PublishedRow]:
    """Layouts that corrections are fitted to: mostly computing, at 20 % utilisation or more."""
    return [
        row
        for row in layouts
        if not row.failed
        and row.configuration.nodes <= _MOST_NODES
        and _utilisation(row) >= _LEAST_UTILISATION
    ]


def scored_layouts(layouts: Sequence[PublishedRow]) -> list[PublishedRow]:
    """Layouts of up to 32 nodes at any utilisation, failed ones included, without stalled ones.

    A row is stalled if its step, divided by the passes of a pipeline stage, is more than 0.3 s
    longer than in the fastest row with the same model, degrees and micro-batch (such rows wait
    about 1 s for each micro-batch), or if its peak memory exceeds 70 GiB, where the allocator of
    PyTorch frees and allocates again in every step.
    """
    near = [row for row in layouts if row.configuration.nodes <= _MOST_NODES]
    fastest: dict[tuple[object, ...], float] = {}
    for row in near:
        if not row.failed:
            key = _shape(row)
            fastest[key] = min(_pass_seconds(row), fastest.get(key, np.inf))
    return [row for row in near if row.failed or not _is_stalled(row, fastest[_shape(row)])]


def _shape(row: PublishedRow) -> tuple[object, ...]:
    what = row.configuration
    return what.model, what.tp, what.pp, what.micro_batch


def _pass_seconds(row: PublishedRow) -> float:
    """Seconds of a step divided by the passes of a pipeline stage, idle ones included."""
    what = row.configuration
    return measured_seconds(row) / ((what.micro_batches or 1) + (what.pp or 1) - 1)


def _is_stalled(row: PublishedRow, fastest_pass: float) -> bool:
    is_full = row.memory_bytes is not None and row.memory_bytes > _FULL_BYTES
    return is_full or _pass_seconds(row) - fastest_pass > _STALL_SECONDS


def _utilisation(row: PublishedRow) -> float:
    """Achieved FLOP/s of a row over the peak of its devices."""
    attained = ideal_throughput(row.configuration)
    return 0.0 if isinstance(attained, Skipped) else row.throughput / attained


@dataclass(frozen=True)
class Verdicts:
    """Fit verdicts of layouts that ran and of layouts that failed.

    Failed does not always mean out of memory, so a wrong verdict on a failed row may be right.
    """

    ran: int
    ran_said_to_fit: int
    failed: int
    failed_said_not_to_fit: int


def verdicts(outcomes: Sequence[RowOutcome]) -> Verdicts:
    """Count the verdicts of all predicted rows."""
    said = [
        (outcome.measurement.failed, outcome.forecast.fits_probability >= _EVEN)
        for outcome in outcomes
        if outcome.forecast is not None and outcome.forecast.fits_probability is not None
    ]
    ran = [fits for failed, fits in said if not failed]
    failed = [fits for failed, fits in said if failed]
    return Verdicts(len(ran), sum(ran), len(failed), len(failed) - sum(failed))


_EVEN = 0.5


def _predicted_layouts(
    rows: Sequence[PublishedRow], by_id: Mapping[str, RowOutcome]
) -> list[tuple[PublishedRow, float]]:
    """Predicted throughput of each row, those that are said to fit first, the fastest first."""
    found = []
    for row in rows:
        forecast = by_id[row.configuration.id].forecast
        if forecast is not None:
            chance = forecast.fits_probability
            fits = chance is None or chance >= _EVEN
            found.append((fits, forecast.throughput, row))
    found.sort(key=lambda each: (not each[0], -each[1]))
    return [(row, throughput) for _, throughput, row in found]


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One job: the fastest layout that is said to fit, and its regret.

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
        predicted = _predicted_layouts(rows, by_id)
        if len(predicted) < 2:
            continue
        chosen = predicted[0][0]
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
    """By job, the regret of the best of the ``count`` fastest layouts that are said to fit."""
    by_id = {outcome.measurement.configuration.id: outcome for outcome in outcomes}
    groups = layout_groups([outcome.measurement for outcome in outcomes if outcome.applicable])
    regrets = []
    for rows in groups.values():
        predicted = _predicted_layouts(rows, by_id)
        if len(predicted) < 2:
            continue
        best = max(row.throughput for row in rows)
        tried = max(row.throughput for row, _ in predicted[:count])
        regrets.append(best / tried - 1.0)
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
