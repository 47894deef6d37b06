"""The figures: each a dataclass of numbers and a renderer to SVG."""

from paceline.render.figures.bars import BarSeries, BarsInfo
from paceline.render.figures.collective import CollectiveInfo, CollectiveSeries
from paceline.render.figures.drawing import FigureKind, draw, figure, figure_kinds, standalone
from paceline.render.figures.gantt import GanttBar, GanttInfo, GanttLane, gantt_info
from paceline.render.figures.layers import LayersInfo, LayerSize, MessageSize
from paceline.render.figures.line_chart import Crossover, LineSeries, LinesInfo
from paceline.render.figures.phase_bars import PhaseBar, PhasesInfo, phase_bar
from paceline.render.figures.repetitions import RepeatedRow, RepetitionsInfo
from paceline.render.figures.scaling import (
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    efficiency_table,
)
from paceline.render.figures.scatter import ScatterGroup, ScatterInfo, ScatterPoint
from paceline.render.figures.utilisation_chart import (
    UtilisationInfo,
    UtilisationLane,
    utilisation_info,
)
from paceline.render.figures.waterfall_chart import WaterfallInfo

__all__ = [
    "BarSeries",
    "BarsInfo",
    "CollectiveInfo",
    "CollectiveSeries",
    "Crossover",
    "FigureKind",
    "GanttBar",
    "GanttInfo",
    "GanttLane",
    "LayerSize",
    "LayersInfo",
    "LineSeries",
    "LinesInfo",
    "MessageSize",
    "PhaseBar",
    "PhasesInfo",
    "RepeatedRow",
    "RepetitionsInfo",
    "ScalingInfo",
    "ScalingPoint",
    "ScalingSeries",
    "ScatterGroup",
    "ScatterInfo",
    "ScatterPoint",
    "UtilisationInfo",
    "UtilisationLane",
    "WaterfallInfo",
    "draw",
    "efficiency_table",
    "figure",
    "figure_kinds",
    "gantt_info",
    "phase_bar",
    "standalone",
    "utilisation_info",
]
