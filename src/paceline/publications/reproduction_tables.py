"""Published and predicted figures as tables and JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.render.terminal import prose
from paceline.topology import format_topology

if TYPE_CHECKING:
    from paceline.publications.publication import PublishedFigure, ReproducedPoint, Reproduction


_UNITS = {"seconds/epoch": "s per epoch", "minutes/epoch": "min per epoch"}


def reproduction_parts(found: "Reproduction") -> list[str | Table]:
    """A study: its question, a table for each figure, and omitted parts."""
    study = found.study
    parts: list[str | Table] = [f"{study.letter}  {study.paper} ({study.name})"]
    parts += prose(study.question)
    for figure in study.figures:
        points = [point for point in found.points if point.figure is figure]
        parts += ["", figure_table(figure, points)]
    for reason in study.left_out:
        parts += prose(f"not reproduced: {reason}", "  ")
    return parts


def summary_table(found: "list[Reproduction]") -> Table:
    return Table.of(
        found,
        (Column("study"), lambda one: one.study.letter),
        (Column("paper"), lambda one: one.study.paper),
        (Column("points", decimals=0), lambda one: len(one.points)),
        (Column("mean error", "%", scale=100.0, decimals=1), lambda one: one.mean_error),
        (Column("covered", decimals=0), lambda one: sum(p.covered for p in one.points)),
    )


def reproduction_json(found: "list[Reproduction]") -> dict[str, Any]:
    """JSON values in the unit of their figure."""
    return {
        "studies": [
            {
                "name": one.study.name,
                "letter": one.study.letter,
                "paper": one.study.paper,
                "question": one.study.question,
                "left_out": list(one.study.left_out),
                "mean_error": one.mean_error,
                "points": [_point_json(point) for point in one.points],
            }
            for one in found
        ]
    }


def points_table(found: "Sequence[Reproduction]") -> Table:
    rows = [(one.study.letter, point) for one in found for point in one.points]
    return Table.of(
        rows,
        (
            Column("figure, nodes x GPUs"),
            lambda row: f"{row[0]}. {row[1].figure.what}, {format_topology(*row[1].topology)}",
        ),
        (Column("unit"), lambda row: _UNITS.get(row[1].figure.quantity, row[1].figure.quantity)),
        (Column("published", decimals=2), lambda row: row[1].published),
        (
            Column("predicted", decimals=2),
            lambda row: Ranged(row[1].predicted, row[1].low, row[1].high),
        ),
        (
            Column("error", "%", scale=100.0, decimals=1, signed=True),
            lambda row: row[1].error,
        ),
        (Column("covered"), lambda row: "yes" if row[1].covered else "no"),
        title="Published and predicted",
        note="Each curve is predicted from its smallest published point; brackets are 90 % "
        "intervals. Error: relative error of the predicted speed; positive is too fast.",
    )


def figure_table(figure: "PublishedFigure", points: "Sequence[ReproducedPoint]") -> Table:
    nodes, processes = figure.base_topology
    given = f"given {figure.base_value:g} at {nodes}x{processes}"
    note = f"{given}; {figure.source}" + (f"; {figure.note}" if figure.note else "")
    decimals = 2 if figure.quantity == "speed-up" else None
    return Table.of(
        points,
        (Column("nodes x GPUs"), lambda point: format_topology(*point.topology)),
        (Column("published", figure.quantity, decimals=decimals), lambda point: point.published),
        (
            Column("predicted", figure.quantity, decimals=decimals),
            lambda point: Ranged(point.predicted, point.low, point.high),
        ),
        (
            Column("error", "%", scale=100.0, decimals=1, signed=True),
            lambda point: point.error,
        ),
        (Column("covered"), lambda point: "yes" if point.covered else "no"),
        title=figure.what,
        note=note,
    )


def _point_json(point: "ReproducedPoint") -> dict[str, Any]:
    return {
        "figure": point.figure.what,
        "quantity": point.figure.quantity,
        "topology": format_topology(*point.topology),
        "published": point.published,
        "predicted": point.predicted,
        "low": point.low,
        "high": point.high,
        "speed_error": point.error,
        "source": point.figure.source,
    }
