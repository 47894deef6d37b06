"""From numbers to a drawing, whatever the figure; and to a figure of a page."""

from typing import TypeAlias

from paceline.report.figures import (
    bars,
    collective,
    gantt,
    layers,
    lines,
    phases,
    scaling,
    scatter,
    utilisation,
    waterfall,
)
from paceline.report.page import Figure, package_text
from paceline.report.table import Table

Info: TypeAlias = (
    bars.BarsInfo
    | collective.CollectiveInfo
    | gantt.GanttInfo
    | layers.LayersInfo
    | lines.LinesInfo
    | phases.PhasesInfo
    | scaling.ScalingInfo
    | scatter.ScatterInfo
    | utilisation.UtilisationInfo
    | waterfall.WaterfallInfo
)

WIDE = 920.0
"""Pixels of a drawing as wide as the page."""
NARROW = 400.0
"""Pixels of a drawing for half the page, or for a phone."""


def draw(info: Info, width: float = WIDE) -> str:
    """``info`` as an SVG element of ``width`` pixels; its colours come from the page's style."""
    height = 380.0 if width > 560 else 300.0
    match info:
        case bars.BarsInfo():
            return bars.draw(info, width)
        case collective.CollectiveInfo():
            return collective.draw(info, width, height)
        case gantt.GanttInfo():
            return gantt.draw(info, width)
        case layers.LayersInfo():
            return layers.draw(info, width, height)
        case lines.LinesInfo():
            return lines.draw(info, width, height)
        case phases.PhasesInfo():
            return phases.draw(info, width)
        case scaling.ScalingInfo():
            return scaling.draw(info, width, height)
        case scatter.ScatterInfo():
            return scatter.draw(info, width, height if width <= 560 else 520.0)
        case utilisation.UtilisationInfo():
            return utilisation.draw(info, width)
        case waterfall.WaterfallInfo():
            return waterfall.draw(info, width)


def figure(
    title: str, info: Info, caption: str = "", *, half: bool = False, data: Table | None = None
) -> Figure:
    """A figure of a page, drawn for wide and narrow screens."""
    narrow = draw(info, NARROW)
    return Figure(title, narrow if half else draw(info, WIDE), narrow, caption, half, data)


def standalone(svg: str) -> str:
    """``svg`` as a file of its own: with its style inside, light or dark as its viewer is."""
    head, closed, rest = svg.partition("</desc>")
    return f"{head}{closed}<style>{package_text('figure.css')}</style>{rest}\n"
