"""Draw any figure from its info dataclass, and make figures of a page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError
from paceline.plugins import PluginKind, with_plugins
from paceline.render.figures import (
    bars,
    collective,
    gantt,
    heatmap,
    layers,
    line_chart,
    phase_bars,
    repetitions,
    scaling,
    scatter,
    utilisation_chart,
    waterfall_chart,
)
from paceline.render.html_page import Figure, package_text
from paceline.render.svg.element import escape
from paceline.render.table import Table

WIDE = 920.0
"""Width in pixels of a drawing across the page."""
NARROW = 400.0
"""Width in pixels of a drawing for half the page or a phone."""
NARROW_LIMIT = 560.0
"""Width in pixels up to which a drawing uses the narrow layout."""


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: the dataclass of its numbers, and the function that draws it.

    ``draw`` gets the numbers, the width and a suggested height in pixels. Third parties register
    a kind under the entry point group ``paceline.figures``.
    """

    info: type
    draw: Callable[[Any, float, float], str]


def _natural_height(draw: Callable[[Any, float], str]) -> Callable[[Any, float, float], str]:
    return lambda info, width, height: draw(info, width)


def _scatter(info: scatter.ScatterInfo, width: float, height: float) -> str:
    return scatter.draw(info, width, max(height, 520.0) if width > NARROW_LIMIT else height)


BUILT_IN = {
    "bars": FigureKind(bars.BarsInfo, _natural_height(bars.draw)),
    "collective": FigureKind(collective.CollectiveInfo, collective.draw),
    "gantt": FigureKind(gantt.GanttInfo, _natural_height(gantt.draw)),
    "heatmap": FigureKind(heatmap.HeatmapInfo, _natural_height(heatmap.draw)),
    "layers": FigureKind(layers.LayersInfo, layers.draw),
    "lines": FigureKind(line_chart.LinesInfo, line_chart.draw),
    "phases": FigureKind(phase_bars.PhasesInfo, _natural_height(phase_bars.draw)),
    "repetitions": FigureKind(repetitions.RepetitionsInfo, _natural_height(repetitions.draw)),
    "scaling": FigureKind(scaling.ScalingInfo, scaling.draw),
    "scatter": FigureKind(scatter.ScatterInfo, _scatter),
    "utilisation": FigureKind(
        utilisation_chart.UtilisationInfo, _natural_height(utilisation_chart.draw)
    ),
    "waterfall": FigureKind(waterfall_chart.WaterfallInfo, _natural_height(waterfall_chart.draw)),
}


def figure_kinds() -> dict[str, FigureKind]:
    """Every kind of figure by name, including those of plugins."""
    return with_plugins(PluginKind.FIGURE, BUILT_IN, FigureKind)


def draw(info: object, width: float = WIDE) -> str:
    """``info`` as an SVG element of ``width`` pixels; its colours come from the page's style."""
    height = 380.0 if width > NARROW_LIMIT else 300.0
    for kind in figure_kinds().values():
        if isinstance(info, kind.info):
            return kind.draw(info, width, height)
    raise InputError(
        f"no figure for a {type(info).__name__}",
        f"figures: {', '.join(figure_kinds())}; a package can register more "
        "(docs/development/plugins.md)",
    )


def figure(
    title: str, info: object, caption: str = "", *, half: bool = False, data: Table | None = None
) -> Figure:
    """A figure of a page, drawn for wide and narrow screens."""
    narrow = draw(info, NARROW)
    return Figure(title, narrow if half else draw(info, WIDE), narrow, caption, half, data, info)


def standalone(svg: str, caption: str = "") -> str:
    """``svg`` as a complete file with its style, light or dark as the viewer's setting.

    A ``caption`` replaces the description.
    """
    head, closed, rest = svg.partition("</desc>")
    if caption:
        head = f"{head.partition('<desc>')[0]}<desc>{escape(caption)}"
    return f"{head}{closed}<style>{package_text('figure.css')}</style>{rest}\n"
