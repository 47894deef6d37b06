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
    lines,
    phases,
    repetitions,
    scaling,
    scatter,
    utilisation,
    waterfall,
)
from paceline.render.page import Figure, package_text
from paceline.render.svg.element import escape
from paceline.render.table import Table

WIDE = 920.0
"""Pixels of a drawing as wide as the page."""
NARROW = 400.0
"""Pixels of a drawing for half the page, or for a phone."""
NARROW_LIMIT = 560.0
"""Pixels up to which a drawing is a narrow one, and less high."""


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: the dataclass of its numbers, and the function that draws it.

    ``draw`` gets the numbers, the width and a suggested height in pixels. Third parties register
    a kind under the entry point group ``paceline.figures``.
    """

    info: type
    draw: Callable[[Any, float, float], str]


def _as_high_as_needed(draw: Callable[[Any, float], str]) -> Callable[[Any, float, float], str]:
    return lambda info, width, height: draw(info, width)


def _scatter(info: scatter.ScatterInfo, width: float, height: float) -> str:
    return scatter.draw(info, width, max(height, 520.0) if width > NARROW_LIMIT else height)


BUILT_IN = {
    "bars": FigureKind(bars.BarsInfo, _as_high_as_needed(bars.draw)),
    "collective": FigureKind(collective.CollectiveInfo, collective.draw),
    "gantt": FigureKind(gantt.GanttInfo, _as_high_as_needed(gantt.draw)),
    "heatmap": FigureKind(heatmap.HeatmapInfo, _as_high_as_needed(heatmap.draw)),
    "layers": FigureKind(layers.LayersInfo, layers.draw),
    "lines": FigureKind(lines.LinesInfo, lines.draw),
    "phases": FigureKind(phases.PhasesInfo, _as_high_as_needed(phases.draw)),
    "repetitions": FigureKind(repetitions.RepetitionsInfo, _as_high_as_needed(repetitions.draw)),
    "scaling": FigureKind(scaling.ScalingInfo, scaling.draw),
    "scatter": FigureKind(scatter.ScatterInfo, _scatter),
    "utilisation": FigureKind(utilisation.UtilisationInfo, _as_high_as_needed(utilisation.draw)),
    "waterfall": FigureKind(waterfall.WaterfallInfo, _as_high_as_needed(waterfall.draw)),
}


def figure_kinds() -> dict[str, FigureKind]:
    """Every kind of figure by name: ours, and those of installed packages."""
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
    return Figure(title, narrow if half else draw(info, WIDE), narrow, caption, half, data)


def standalone(svg: str, caption: str = "") -> str:
    """``svg`` as a complete file with its style, light or dark as the viewer's setting.

    A ``caption`` replaces the description.
    """
    head, closed, rest = svg.partition("</desc>")
    if caption:
        head = f"{head.partition('<desc>')[0]}<desc>{escape(caption)}"
    return f"{head}{closed}<style>{package_text('figure.css')}</style>{rest}\n"
