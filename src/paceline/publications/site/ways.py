"""Data against tensor parallelism, measured and predicted: table, curves, crossover."""

from collections.abc import Callable, Sequence

import numpy as np

from paceline.predictor.prediction import Prediction
from paceline.publications.dp_vs_tp import DpVsTp, crossover_batch
from paceline.render.figures import Crossover, LineSeries, LinesInfo, figure
from paceline.render.numbers import Ranged
from paceline.render.page import Section
from paceline.render.table import Cell, Column, Table


def ways_section(ways: Sequence[DpVsTp]) -> Section:
    """Both plans at every measured batch."""
    return Section(
        "Data against tensor parallelism",
        tables=[ways_table(ways)],
        figures=[
            figure(
                "Step by batch, measured and predicted",
                _lines(ways),
                "Measured with 95 % intervals over launches. Predicted from a probe of this "
                "machine alone: neither way had run before.",
            )
        ],
        notes=[describe_crossover(ways)],
    )


def ways_table(ways: Sequence[DpVsTp]) -> Table:
    """A row per batch: step time under both plans, measured and predicted."""
    return Table.of(
        ways,
        (Column("global batch", decimals=0), lambda one: one.batch),
        (Column("data parallel", "ms", scale=1e3), lambda one: Ranged.of(one.data.step)),
        (Column("predicted", "ms", scale=1e3), lambda one: _seconds(one.predicted_data)),
        (Column("tensor parallel", "ms", scale=1e3), lambda one: Ranged.of(one.tensor.step)),
        (Column("predicted", "ms", scale=1e3), lambda one: _seconds(one.predicted_tensor)),
        (Column("tensor over data", decimals=2), lambda one: one.measured_ratio),
        (Column("predicted", decimals=2), lambda one: one.predicted_ratio),
        title=f"Step of both ways{f', {ways[0].where}' if ways[0].where else ''}",
        note="Measured: 95 % intervals over launches. Predicted: 90 %. Below one, tensor "
        "parallelism is faster.",
    )


def describe_crossover(ways: Sequence[DpVsTp]) -> str:
    """The faster plan by batch, measured and predicted."""
    measured, predicted = crossovers(ways)
    told = [f"Measured: {_faster(measured, [one.measured_ratio for one in ways])}."]
    known = [ratio for one in ways if (ratio := one.predicted_ratio) is not None]
    if known:
        told.append(f"Predicted: {_faster(predicted, known)}.")
    return " ".join(told)


def crossovers(ways: Sequence[DpVsTp]) -> tuple[float | None, float | None]:
    """The batch (samples) from which data parallelism is faster, measured and predicted."""
    batches = [one.batch for one in ways]
    predicted = [one.predicted_ratio for one in ways]
    known = [ratio for ratio in predicted if ratio is not None]
    return (
        crossover_batch(batches, [one.measured_ratio for one in ways]),
        crossover_batch(batches, known) if len(known) == len(batches) else None,
    )


def _faster(crossover: float | None, ratios: Sequence[float]) -> str:
    """The faster plan by batch; ``ratios`` are steps of tensor over data parallelism."""
    if crossover is not None:
        return (
            f"tensor parallelism is faster below {crossover:,.0f} samples, data parallelism above"
        )
    sooner = sum(ratio < 1 for ratio in ratios)
    return f"tensor parallelism is faster at {sooner} of {len(ratios)} batches"


def _seconds(found: Prediction | None) -> Cell:
    return None if found is None else Ranged(found.step_seconds, *found.step_interval_seconds)


def _lines(ways: Sequence[DpVsTp]) -> LinesInfo:
    kinds: list[tuple[str, Callable[[DpVsTp], Cell]]] = [
        ("data parallel, measured", lambda one: Ranged.of(one.data.step)),
        ("tensor parallel, measured", lambda one: Ranged.of(one.tensor.step)),
        ("data parallel, predicted", lambda one: _seconds(one.predicted_data)),
        ("tensor parallel, predicted", lambda one: _seconds(one.predicted_tensor)),
    ]
    series = []
    for label, shown in kinds:
        points = [(float(one.batch), shown(one)) for one in ways]
        drawn = tuple((x, y.scaled(1e3)) for x, y in points if isinstance(y, Ranged))
        if drawn:
            series.append(LineSeries(label, drawn))
    measured, _ = crossovers(ways)
    marks: tuple[Crossover, ...] = ()
    if measured is not None:
        steps = np.log([1e3 * one.data.step.mean for one in ways])
        height = np.interp(np.log(measured), np.log([one.batch for one in ways]), steps)
        words = f"data parallel from {measured:,.0f} as measured"
        marks = (Crossover(measured, float(np.exp(height)), words),)
    return LinesInfo(
        "global batch (samples)", "step (ms)", tuple(series), marks, "ms", log_x=True, log_y=True
    )
