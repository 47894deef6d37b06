"""Published and predicted results: figures, tables, and reasons for differences."""

from collections.abc import Sequence

from paceline.publications.publication import (
    PublishedFigure,
    PublishedStudy,
    ReproducedPoint,
    Reproduction,
)
from paceline.publications.reproduction_tables import figure_table
from paceline.render.figures import (
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    ScatterGroup,
    ScatterInfo,
    ScatterPoint,
    figure,
)
from paceline.render.html_page import Figure, Section
from paceline.render.number_format import Ranged
from paceline.topology import Topology, format_topology

SPEED_UP = "speed-up"


def published_section(found: Reproduction) -> Section | None:
    """Every published curve with its prediction; None if no numbers are published."""
    if not found.points:
        return None
    by_figure = [(one, points_of(found, one)) for one in found.study.figures]
    return Section(
        "Published and predicted",
        text="The smallest point of each curve is the measured baseline; the others are predicted.",
        tables=[figure_table(one, points) for one, points in by_figure],
        figures=[_drawn(one, points) for one, points in by_figure],
    )


def leading_figure(found: Reproduction) -> Figure | None:
    """The published curve with most points, and its prediction; None without numbers."""
    if not found.points:
        return None
    most = max(found.study.figures, key=lambda one: len(points_of(found, one)))
    return _drawn(most, points_of(found, most), half=False)


def points_of(found: Reproduction, wanted: PublishedFigure) -> list[ReproducedPoint]:
    return [point for point in found.points if point.figure is wanted]


def published_series(study: PublishedStudy, what: str) -> ScalingSeries | None:
    """The values of the figure called ``what``, with its base; None without a name."""
    for one in study.figures:
        if one.what == what:
            values = [
                (one.base_topology, one.base_value),
                *zip(one.topologies, one.values, strict=True),
            ]
            points = [_point(one, topology, Ranged(value)) for topology, value in values]
            return ScalingSeries("published", tuple(points))
    return None


def agreement_figure(found: Sequence[Reproduction]) -> Figure:
    """Every published value against its prediction, as a speed-up over the base of its curve."""
    groups = tuple(
        ScatterGroup(
            f"study {one.study.letter}",
            tuple(
                ScatterPoint(
                    _speed_up(point.figure, point.published),
                    _speed_up(point.figure, point.predicted),
                    f"{point.figure.what}, {format_topology(*point.topology)}",
                )
                for point in one.points
            ),
        )
        for one in found
        if one.points
    )
    info = ScatterInfo(groups, "speed-up over the smallest point of each curve")
    return figure("Published and predicted", info, "Measured: by the authors, as published.")


def difference_points(found: Reproduction) -> list[str]:
    """A sentence for each figure: errors of predictions, and the reason if known."""
    sentences = []
    for one in found.study.figures:
        points = points_of(found, one)
        errors = [point.error for point in points]
        least, most = min(errors), max(errors)
        off = f"{least:+.0%}" if len(errors) == 1 else f"{least:+.0%} to {most:+.0%}"
        covered = sum(point.covered for point in points)
        result = f"{one.what}: error {off}, {covered} of {len(points)} inside their intervals."
        missed = covered < len(points)
        reason = one.why or ("The publication gives no reason." if missed else "")
        sentences.append(f"{result} {reason}".strip())
    return sentences


def _drawn(one: PublishedFigure, points: Sequence[ReproducedPoint], *, half: bool = True) -> Figure:
    base = _point(one, one.base_topology, Ranged(one.base_value))
    published = [base, *(_point(one, p.topology, Ranged(p.published)) for p in points)]
    predicted = [base, *(_point(one, p.topology, _predicted(p)) for p in points)]
    unit = "samples/s" if one.quantity == "samples/s" else "times the smallest"
    title = "throughput (samples/s)" if unit == "samples/s" else "speed-up over the smallest"
    info = ScalingInfo(
        title,
        (
            ScalingSeries("published", tuple(published)),
            ScalingSeries("predicted", tuple(predicted), is_predicted=True),
        ),
        unit,
    )
    caption = f"Published: {one.source}. Predicted from the smallest point, with 90 % intervals."
    return figure(one.what, info, caption, half=half)


def _predicted(point: ReproducedPoint) -> Ranged:
    return Ranged(point.predicted, point.low, point.high)


def _point(one: PublishedFigure, topology: Topology, value: Ranged) -> ScalingPoint:
    """A value to draw: throughput unchanged, other quantities as speed-up over the base."""
    nodes, processes = topology
    if one.quantity == "samples/s":
        return ScalingPoint(nodes * processes, value)

    bounds = sorted(_speed_up(one, v) for v in value.bounds) if value.bounds else (None, None)
    return ScalingPoint(nodes * processes, Ranged(_speed_up(one, value.value), *bounds))


def _speed_up(one: PublishedFigure, value: float) -> float:
    return one.rate(value) / one.rate(one.base_value)
