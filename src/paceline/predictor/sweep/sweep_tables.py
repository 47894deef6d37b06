"""A comparison over one or two axes as table, figure, surface, JSON and CSV."""

import csv
import io
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.predictor.sweep import WAYS, SweepComparison
from paceline.render.figures.line_chart import Crossover, LineSeries, LinesInfo
from paceline.render.number_format import Ranged
from paceline.render.table import Cell, Column, Table
from paceline.render.terminal_lines import lines_text
from paceline.units import format_bandwidth, format_flops, seconds_unit

TITLES = {
    "batch": "batch per worker",
    "flops": "peak of a device, FLOP/s",
    "memory": "memory bandwidth, B/s",
    "link": "link between nodes, B/s",
    "nodes": "nodes",
}
"""Title of each axis, with its unit."""
DRAWN = {
    "flops": (1e-12, "peak of a device (TFLOP/s)"),
    "memory": (1e-9, "memory bandwidth (GB/s)"),
    "link": (8e-9, "link between nodes (Gbit/s)"),
}
"""Factor and title of axes that figures draw in the unit of the table."""


_MOST_ROWS = 24
_SHADES = ((0.5, "D"), (0.98, "d"), (1.02, "="), (2.0, "m"), (np.inf, "M"))
_SURFACE_NOTE = (
    "d: data parallel is faster, D: more than twice as fast; m, M: model parallel; =: within 2 %"
)


def describe_axis(name: str, value: float) -> str:
    """A value of an axis with its unit."""
    if name == "flops":
        return f"{format_flops(value)}/s"
    if name == "memory":
        return format_bandwidth(value)
    if name == "link":
        gigabits = value * 8e-9
        return f"{gigabits:,.0f} Gbit/s" if gigabits >= 100 else f"{gigabits:.3g} Gbit/s"
    return f"{value:g}"


def sweep_table(comparison: SweepComparison, title: str) -> Table:
    """One row per value of the axis; at most 24, evenly spaced."""
    name, values = next(iter(comparison.axes.items()))
    ways = list(comparison.seconds)
    rows = np.unique(np.linspace(0, len(values) - 1, min(_MOST_ROWS, len(values))).round())
    scale, unit = seconds_unit(max(float(s.max()) for s in comparison.seconds.values()))
    two = len(ways) == 2
    body: list[tuple[Cell, ...]] = []
    for row in rows.astype(int):
        seconds = [float(comparison.seconds[way][row]) for way in ways]
        rates = [float(comparison.samples_per_second(way)[row]) for way in ways]
        faster = [ways[int(np.argmin(seconds))]] if two else []
        body.append((describe_axis(name, float(values[row])), *seconds, *rates, *faster))
    return Table(
        columns=(
            Column(name),
            *(Column(f"{way} step", unit, scale=scale) for way in ways),
            *(Column(way, "samples/s") for way in ways),
            *([Column("faster")] if two else []),
        ),
        rows=tuple(body),
        title=title,
    )


def sweep_parts(comparison: SweepComparison, title: str, width: int) -> list[str | Table]:
    """A table and a plot over one axis, a surface over two, and all crossovers as text."""
    parts: list[str | Table]
    if len(comparison.axes) == 1:
        plot = lines_text(sweep_figure(comparison), width)
        parts = [sweep_table(comparison, title), "", *plot]
    elif len(comparison.seconds) == 2:
        parts = [title, *surface_lines(comparison, width)]
    else:
        raise InputError("two axes need two methods to compare", "use --compare dp,mp, or one axis")
    return [*parts, *crossing_lines(comparison)]


def sweep_figure(comparison: SweepComparison) -> LinesInfo:
    """Figure F7: throughput of each method over one axis, with crossovers."""
    name, values = next(iter(comparison.axes.items()))
    unit, title = DRAWN.get(name, (1.0, TITLES[name]))
    return LinesInfo(
        x_title=title,
        y_title="samples/s",
        series=tuple(
            LineSeries(
                WAYS[way],
                tuple(
                    (unit * float(x), Ranged(float(y)))
                    for x, y in zip(values, comparison.samples_per_second(way), strict=True)
                ),
            )
            for way in comparison.seconds
        ),
        crossovers=tuple(
            Crossover(
                unit * crossing.value,
                float(np.interp(crossing.value, values, comparison.samples))
                / crossing.step_seconds,
                f"{crossing.faster_beyond} from {describe_axis(name, crossing.value)}",
            )
            for crossing in (comparison.crossings[0] if comparison.crossings else ())
        ),
        unit="samples/s",
        log_x=True,
        log_y=True,
    )


def surface_lines(comparison: SweepComparison, width: int) -> list[str]:
    """The faster method over two axes: the first to the right, the second downwards."""
    (across, xs), (down, ys) = comparison.axes.items()
    dp, mp = (comparison.seconds[way] for way in ("dp", "mp"))
    labels = [describe_axis(down, float(y)) for y in ys]
    margin = max(map(len, labels)) + 2
    columns = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), width - margin)).round())
    rows = np.unique(np.linspace(0, len(ys) - 1, min(len(ys), _MOST_ROWS)).round())
    lines = [f"{'':{margin}}{TITLES[across]} to the right, {TITLES[down]} downwards"]
    for row in rows.astype(int):
        cells = "".join(_shade(float(dp[c, row] / mp[c, row])) for c in columns.astype(int))
        lines.append(f"{labels[row]:>{margin - 2}}  {cells}")
    ends = [describe_axis(across, float(x)) for x in (xs[0], xs[-1])]
    lines.append(f"{'':{margin}}{ends[0]} .. {ends[1]}")
    return [*lines, _SURFACE_NOTE]


def crossing_lines(comparison: SweepComparison) -> list[str]:
    """All crossovers as text."""
    names = list(comparison.axes)
    others = comparison.axes[names[1]] if len(names) > 1 else [None]
    lines = []
    for other, found in zip(others, comparison.crossings, strict=False):
        at = "" if other is None else f"{names[1]} {describe_axis(names[1], float(other))}: "
        for crossing in found:
            lines.append(
                f"{at}{crossing.faster_below} is faster below {names[0]} "
                f"{describe_axis(names[0], crossing.value)}, {crossing.faster_beyond} from there"
            )
    if not lines and len(comparison.seconds) == 2:
        ahead = set(_faster(comparison).ravel().tolist())
        lines.append(f"no crossover: {' or '.join(sorted(ahead))} is faster everywhere")
    return lines


def sweep_json(comparison: SweepComparison) -> dict[str, Any]:
    """The whole comparison as JSON, axes in SI units."""
    return {
        "axes": {name: values.tolist() for name, values in comparison.axes.items()},
        "axis_units": {name: TITLES[name] for name in comparison.axes},
        "samples_per_step": comparison.samples.tolist(),
        "step_seconds": {way: s.tolist() for way, s in comparison.seconds.items()},
        "crossovers": [
            [
                {
                    "value": c.value,
                    "step_seconds": c.step_seconds,
                    "faster_below": c.faster_below,
                    "faster_beyond": c.faster_beyond,
                }
                for c in found
            ]
            for found in comparison.crossings
        ],
    }


def sweep_csv(comparison: SweepComparison) -> str:
    """One line per configuration, axes in SI units."""
    names, ways = list(comparison.axes), list(comparison.seconds)
    mesh = np.meshgrid(*comparison.axes.values(), indexing="ij")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        [
            *names,
            *(f"{way}_step_seconds" for way in ways),
            *(f"{way}_samples_per_second" for way in ways),
        ]
    )
    columns = [
        *(axis.ravel() for axis in mesh),
        *(comparison.seconds[way].ravel() for way in ways),
        *(comparison.samples_per_second(way).ravel() for way in ways),
    ]
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
    return stream.getvalue()


def _faster(comparison: SweepComparison) -> Any:
    ways = list(comparison.seconds)
    order = np.argmin(np.stack([comparison.seconds[way] for way in ways]), axis=0)
    return np.array(ways)[order]


def _shade(ratio: float) -> str:
    return next(letter for limit, letter in _SHADES if ratio < limit or limit == np.inf)
