"""Data against tensor parallelism, measured and predicted: table, curves, crossover."""

from collections.abc import Callable, Sequence

import numpy as np

from paceline.predictor.prediction import Prediction
from paceline.publications.dp_vs_tp import DpVsTp, crossover_batch
from paceline.render.figures import Crossover, LineSeries, LinesInfo, figure
from paceline.render.html_page import Section
from paceline.render.number_format import Ranged
from paceline.render.table import Cell, Column, Table


def dp_vs_tp_section(compared: Sequence[DpVsTp]) -> Section:
    return Section(
        "Data against tensor parallelism",
        tables=[dp_vs_tp_table(compared)],
        figures=[
            figure(
                "Step by batch, measured and predicted",
                _lines(compared),
                "Measured with 95 % intervals over launches. Predicted from a probe of this "
                "machine alone; neither plan had run before.",
            )
        ],
        notes=[describe_crossover(compared)],
    )


def dp_vs_tp_table(compared: Sequence[DpVsTp]) -> Table:
    """A row per batch: step time under both plans, measured and predicted."""
    return Table.of(
        compared,
        (Column("global batch", decimals=0), lambda one: one.batch),
        (Column("data parallel", "ms", scale=1e3), lambda one: Ranged.of(one.data.step)),
        (Column("predicted", "ms", scale=1e3), lambda one: _seconds(one.predicted_data)),
        (Column("tensor parallel", "ms", scale=1e3), lambda one: Ranged.of(one.tensor.step)),
        (Column("predicted", "ms", scale=1e3), lambda one: _seconds(one.predicted_tensor)),
        (Column("tensor over data", decimals=2), lambda one: one.measured_ratio),
        (Column("predicted", decimals=2), lambda one: one.predicted_ratio),
        title=f"Step time of both plans{f', {compared[0].where}' if compared[0].where else ''}",
        note="Measured: 95 % intervals over launches. Predicted: 90 %. Below one, tensor "
        "parallelism is faster.",
    )


def describe_crossover(compared: Sequence[DpVsTp]) -> str:
    """The faster plan by batch, measured and predicted."""
    measured, predicted = crossovers(compared)
    sentences = [f"Measured: {_faster(measured, [one.measured_ratio for one in compared])}."]
    known = [ratio for one in compared if (ratio := one.predicted_ratio) is not None]
    if known:
        sentences.append(f"Predicted: {_faster(predicted, known)}.")
    return " ".join(sentences)


def crossovers(compared: Sequence[DpVsTp]) -> tuple[float | None, float | None]:
    """The batch (samples) from which data parallelism is faster, measured and predicted."""
    batches = [one.batch for one in compared]
    predicted = [one.predicted_ratio for one in compared]
    known = [ratio for ratio in predicted if ratio is not None]
    return (
        crossover_batch(batches, [one.measured_ratio for one in compared]),
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


def _lines(compared: Sequence[DpVsTp]) -> LinesInfo:
    kinds: list[tuple[str, Callable[[DpVsTp], Cell]]] = [
        ("data parallel, measured", lambda one: Ranged.of(one.data.step)),
        ("tensor parallel, measured", lambda one: Ranged.of(one.tensor.step)),
        ("data parallel, predicted", lambda one: _seconds(one.predicted_data)),
        ("tensor parallel, predicted", lambda one: _seconds(one.predicted_tensor)),
    ]
    series = []
    for number, (label, shown) in enumerate(kinds):
        points = [(float(one.batch), shown(one)) for one in compared]
        drawn = tuple((x, y.scaled(1e3)) for x, y in points if isinstance(y, Ranged))
        if drawn:
            series.append(LineSeries(label, drawn, dashed=number > 1, colour=number % 2))
    measured, _ = crossovers(compared)
    marks: tuple[Crossover, ...] = ()
    if measured is not None:
        steps = np.log([1e3 * one.data.step.mean for one in compared])
        height = np.interp(np.log(measured), np.log([one.batch for one in compared]), steps)
        label = f"data parallel from {measured:,.0f} as measured"
        marks = (Crossover(measured, float(np.exp(height)), label),)
    return LinesInfo(
        "global batch (samples)", "step (ms)", tuple(series), marks, "ms", log_x=True, log_y=True
    )
