"""A comparison over one or two axes as table, figure, surface, JSON and CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import product
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


_MOST_ROWS, _LEAST_ROWS = 24, 5
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


def differing_settings(comparisons: Sequence[SweepComparison]) -> list[str]:
    """Names of the options that differ between jobs."""
    names = dict.fromkeys(name for each in comparisons for name in each.settings)
    return [
        name for name in names if len({str(each.settings.get(name)) for each in comparisons}) > 1
    ]


def describe_jobs(comparisons: Sequence[SweepComparison]) -> str:
    """``alexnet on knl-opa, fp32, batch 16 per device``: the options that all jobs share.

    Values of the axes are left out.
    """
    first, varied = comparisons[0], differing_settings(comparisons)
    own = {name: value for name, value in first.settings.items() if name not in varied}
    parts = [str(own[name]) for name in ("model", "cluster", "device") if own.get(name)]
    parts = [" on ".join(parts), *(str(own[name]) for name in ("precision",) if own.get(name))]
    for name in ("framework", "zero", "link", "batch", "global_batch"):
        if own.get(name) and name not in first.axes:
            each = " per device" if name == "batch" else ""
            parts.append(f"{name.replace('_', ' ')} {own[name]}{each}")
    return ", ".join(filter(None, parts)) or first.summary()


def sweep_table(comparisons: Sequence[SweepComparison], title: str = "") -> Table:
    """One row per job and point; at most 24 evenly spaced points, and at least 5 of a job."""
    varied = differing_settings(comparisons)
    first = comparisons[0]
    ways, most = list(first.seconds), max(_LEAST_ROWS, _MOST_ROWS // len(comparisons))
    points = [(each, index) for each in comparisons for index in _shown(each, most)]
    scale, unit = seconds_unit(max(float(s.max()) for e in comparisons for s in e.seconds.values()))
    two = len(ways) == 2

    def rates(each: SweepComparison, index: tuple[int, ...]) -> list[float]:
        return [float(each.samples_per_second(way)[index]) for way in ways]

    body: list[tuple[Cell, ...]] = [
        (
            *(str(each.settings.get(name, "")) for name in varied),
            *(
                describe_axis(name, float(values[i]))
                for (name, values), i in zip(each.axes.items(), index, strict=True)
            ),
            *(float(each.seconds[way][index]) for way in ways),
            *rates(each, index),
            *([ways[int(np.argmax(rates(each, index)))]] if two else []),
        )
        for each, index in points
    ]
    return Table(
        columns=(
            *(Column(name.replace("_", " ")) for name in varied),
            *(Column(name) for name in first.axes),
            *(Column(f"{way} step", unit, scale=scale) for way in ways),
            *(Column(way, "samples/s") for way in ways),
            *([Column("faster")] if two else []),
        ),
        rows=tuple(body),
        title=title,
        keys=len(varied) + len(first.axes),
    )


def _shown(comparison: SweepComparison, most: int) -> Iterator[tuple[int, ...]]:
    """Indices of at most ``most`` evenly spaced points of each axis."""
    sizes = [len(values) for values in comparison.axes.values()]
    few = [np.unique(np.linspace(0, n - 1, min(most, n)).round()).astype(int) for n in sizes]
    return product(*(each.tolist() for each in few))


def sweep_parts(comparison: SweepComparison, width: int) -> list[str | Table]:
    """A table and a plot over one axis, a surface over two, and all crossovers as text."""
    title = describe_jobs([comparison])
    parts: list[str | Table]
    if len(comparison.axes) == 1:
        plot = lines_text(sweep_figure([comparison]), width)
        parts = [sweep_table([comparison], title), "", *plot]
    elif len(comparison.seconds) == 2:
        parts = [title, *surface_lines(comparison, width)]
    else:
        parts = [sweep_table([comparison], title)]
    return [*parts, *crossing_lines(comparison)]


def sweeps_parts(comparisons: Sequence[SweepComparison]) -> list[str | Table]:
    """One table of all jobs, and the crossovers of each."""
    varied = differing_settings(comparisons)
    lines = []
    for each in comparisons:
        job = ", ".join(f"{name} {each.settings.get(name)}" for name in varied)
        lines += [f"{job}: {line}" for line in crossing_lines(each)]
    return [sweep_table(comparisons, describe_jobs(comparisons)), *lines]


def sweep_figure(comparisons: Sequence[SweepComparison]) -> LinesInfo:
    """Figure F7: throughput of each method over one axis, with crossovers."""
    if len(comparisons[0].axes) > 1:
        raise InputError("a figure shows one axis only", "give one axis, or write a CSV file")
    varied = differing_settings(comparisons)
    name = next(iter(comparisons[0].axes))
    unit, title = DRAWN.get(name, (1.0, TITLES[name]))
    return LinesInfo(
        x_title=title,
        y_title="samples/s",
        series=tuple(
            LineSeries(
                ", ".join([WAYS[way], *(str(each.settings.get(name)) for name in varied)]),
                tuple(
                    (unit * float(x), Ranged(float(y)))
                    for x, y in zip(each.axes[name], each.samples_per_second(way), strict=True)
                ),
            )
            for each in comparisons
            for way in each.seconds
        ),
        crossovers=tuple(
            Crossover(
                unit * crossing.value,
                float(np.interp(crossing.value, each.axes[name], each.samples))
                / crossing.step_seconds,
                f"{crossing.faster_beyond} from {describe_axis(name, crossing.value)}",
            )
            for each in comparisons
            for crossing in (each.crossings[0] if each.crossings else ())
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


def sweep_csv(comparisons: Sequence[SweepComparison]) -> str:
    """One line per job and configuration, axes in SI units."""
    varied, first = differing_settings(comparisons), comparisons[0]
    ways = list(first.seconds)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    seconds, rates = (
        [f"{way}_{of}" for way in ways] for of in ("step_seconds", "samples_per_second")
    )
    writer.writerow([*varied, *first.axes, *seconds, *rates])
    for each in comparisons:
        mesh = np.meshgrid(*each.axes.values(), indexing="ij")
        columns = [*mesh, *each.seconds.values(), *map(each.samples_per_second, ways)]
        own = [each.settings.get(name) for name in varied]
        points = zip(*(column.ravel().tolist() for column in columns), strict=True)
        writer.writerows([*own, *point] for point in points)
    return stream.getvalue()


def _faster(comparison: SweepComparison) -> Any:
    ways = list(comparison.seconds)
    order = np.argmin(np.stack([comparison.seconds[way] for way in ways]), axis=0)
    return np.array(ways)[order]


def _shade(ratio: float) -> str:
    return next(letter for limit, letter in _SHADES if ratio < limit or limit == np.inf)
