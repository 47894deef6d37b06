"""Predictions beside the measurements of the same job."""

from collections.abc import Sequence

from paceline.analyse.comparison import Comparison
from paceline.analyse.groups import LaunchGroup
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table


def comparison_table(alone: LaunchGroup, comparisons: Sequence[Comparison]) -> Table:
    """Measured and predicted throughput, the error, and what perfect scaling would say."""
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
        note="± is the 95 % interval of the mean over launches; [ ] the 90 % interval of a "
        "prediction. No synchronised launch is used for predicting.",
    )
