"""Predictions and measurements of the same job as a table."""

from collections.abc import Sequence

from paceline.analysis.configurations import LaunchGroup
from paceline.calibration.prediction_error import Comparison
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table


def comparison_table(alone: LaunchGroup, comparisons: Sequence[Comparison]) -> Table:
    """Measured and predicted throughput, the error, and the error of perfect scaling."""
    rows: list[tuple[str | float | Ranged | None, ...]] = [
        ("1 process", Ranged.of(alone.throughput), "(calibration)", None, None, None)
    ]
    for one in comparisons:
        low, high = one.prediction.samples_per_second_interval
        rows.append(
            (
                one.label,
                Ranged.of(one.measured.throughput) if one.measured else None,
                f"{one.prediction.samples_per_second:,.1f} [{low:,.1f}, {high:,.1f}]",
                one.error,
                one.prediction.perfect_samples_per_second,
                one.perfect_error,
            )
        )
    return Table(
        columns=(
            Column(""),
            Column("measured", "samples/s"),
            Column("predicted", "samples/s"),
            Column("error", "%", scale=100, decimals=1, signed=True),
            Column("perfect scaling", "samples/s"),
            Column("its error", "%", scale=100, decimals=1, signed=True),
        ),
        rows=tuple(rows),
        note="±: 95 % interval of the mean over launches; [ ]: 90 % interval of a prediction. "
        "Predictions use no synchronised launch.",
    )
