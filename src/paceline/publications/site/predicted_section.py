"""Predictions for the machines of a study: curves by program, and axes with crossovers."""

from collections.abc import Sequence

from paceline.predictor.prediction import Prediction
from paceline.predictor.sweep import SweepComparison
from paceline.predictor.sweep.sweep_tables import crossing_lines, sweep_figure
from paceline.publications.publication import PredictedCurves, PublishedStudy, SweptAxis
from paceline.publications.reproduction_result import PredictedLine, ReproductionResult
from paceline.publications.site.published_section import SPEED_UP, published_series
from paceline.render.figures import ScalingInfo, ScalingPoint, ScalingSeries, figure
from paceline.render.html_page import Figure, Section
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.topology import Topology, format_topology

MOST_BANDS = 3
"""Lines of a figure up to which intervals are drawn; the numbers below have them always."""
Row = tuple[PredictedLine, Topology, Prediction]


def predicted_section(results: ReproductionResult) -> Section | None:
    """Curves of every program on the machines of the study."""
    if not results.curves:
        return None
    study = results.reproduction.study
    return Section(
        "Predicted for the original machines",
        text="Not measured: predicted from network, plan, machine and the profile of each "
        "program, as `paceline predict` does.",
        tables=[_largest_table(curves, lines) for curves, lines in results.curves],
        figures=[_curves_figure(study, curves, lines) for curves, lines in results.curves],
    )


def sweeps_section(results: ReproductionResult) -> Section | None:
    if not results.sweeps:
        return None
    first = results.sweeps[0][0].job
    return Section(
        "Predicted along each axis",
        text=f"{first['model']} on {first['nodes']} nodes of {first['cluster']} with one device "
        f"each, connected by {first['link']}. One axis varies at a time; the batch of the others "
        "is near the crossover.",
        tables=[_crossover_table(results.sweeps)],
        figures=[
            figure(axis.what, sweep_figure([found]), half=True) for axis, found in results.sweeps
        ],
    )


def describe_bottleneck(results: ReproductionResult) -> list[str]:
    """The bottleneck of each predicted curve at its largest topology, grouped by program."""
    sentences = []
    for curves, lines in results.curves:
        by_bound: dict[str, list[str]] = {}
        for line in lines:
            bound = line.points[-1][1].bound_by.partition(":")[0]
            by_bound.setdefault(bound, []).append(line.label)
        bounds = "; ".join(f"{bound} ({' / '.join(names)})" for bound, names in by_bound.items())
        largest = format_topology(*curves.topologies[-1])
        sentences.append(f"{curves.what}: {largest} is bound by {bounds}.")
    return sentences


def _largest_table(curves: PredictedCurves, lines: Sequence[PredictedLine]) -> Table:
    return _rows_table(
        [(line, *line.points[-1]) for line in lines],
        curves.what,
        "Speed-up over the first topology of the line. "
        + (f"{curves.note[:1].upper()}{curves.note[1:]}. " if curves.note else "")
        + "± and brackets are 90 % intervals.",
    )


def _rows_table(rows: Sequence[Row], title: str, note: str) -> Table:
    return Table.of(
        rows,
        (Column("program"), lambda row: row[0].label),
        (Column("nodes x GPUs"), lambda row: format_topology(*row[1])),
        (
            Column("throughput", "samples/s"),
            lambda row: Ranged(row[2].samples_per_second, *row[2].samples_per_second_interval),
        ),
        (Column("speed-up", decimals=2), lambda row: row[0].speed_up(row[2])),
        (Column("step", "ms", scale=1e3), lambda row: row[2].step_seconds),
        (
            Column("exposed communication", "ms", scale=1e3),
            lambda row: row[2].exposed_communication_seconds,
        ),
        (Column("bound by"), lambda row: row[2].bound_by),
        title=title,
        note=note,
    )


def _curves_figure(
    study: PublishedStudy, curves: PredictedCurves, lines: Sequence[PredictedLine]
) -> Figure:
    published = published_series(study, curves.published_figure)
    series = [_series(curves, line, len(lines) <= MOST_BANDS) for line in lines]
    unit = "" if curves.quantity == SPEED_UP else "samples/s"
    title = SPEED_UP if curves.quantity == SPEED_UP else "throughput (samples/s)"
    info = ScalingInfo(title, (*([published] if published else ()), *series), unit)
    rows = [(line, topology, found) for line in lines for topology, found in line.points]
    return figure(
        curves.what,
        info,
        "Dashed: predicted."
        + (" Points: published." if published else "")
        + (
            " Bands: 90 % intervals."
            if len(lines) <= MOST_BANDS
            else f" 90 % intervals are in the numbers: {len(lines)} bands would cover each other."
        ),
        data=_rows_table(rows, "", ""),
    )


def _series(curves: PredictedCurves, line: PredictedLine, banded: bool) -> ScalingSeries:
    points = []
    for (nodes, processes), found in line.points:
        low, high = found.samples_per_second_interval
        value = Ranged(found.samples_per_second, *((low, high) if banded else (None, None)))
        if curves.quantity == SPEED_UP:
            value = value.scaled(1.0 / line.points[0][1].samples_per_second)
        points.append(ScalingPoint(nodes * processes, value))
    return ScalingSeries(line.label, tuple(points), is_predicted=True)


def _crossover_table(sweeps: Sequence[tuple[SweptAxis, SweepComparison]]) -> Table:
    return Table.of(
        sweeps,
        (Column("axis"), lambda row: row[0].what),
        (Column("range"), lambda row: row[0].axis.partition("=")[2].partition(":")[0]),
        (Column("faster"), lambda row: "; ".join(crossing_lines(row[1]))),
        title="Crossovers",
        note="Predicted. dp: data parallelism, mp: model parallelism with every layer divided.",
    )
