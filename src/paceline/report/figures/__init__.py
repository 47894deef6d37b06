"""The figures: each a dataclass of numbers and a renderer to SVG."""

from paceline.report.figures.bars import BarSeries, BarsInfo
from paceline.report.figures.collective import CollectiveInfo, CollectiveSeries
from paceline.report.figures.drawing import FigureKind, draw, figure, figure_kinds, standalone
from paceline.report.figures.efficiency import efficiency_table
from paceline.report.figures.gantt import GanttBar, GanttInfo, GanttLane, gantt_info
from paceline.report.figures.layers import LayersInfo, LayerSize, MessageSize
from paceline.report.figures.lines import Crossover, LineSeries, LinesInfo
from paceline.report.figures.phases import PhaseBar, PhasesInfo, phase_bar
from paceline.report.figures.repetitions import RepeatedRow, RepetitionsInfo
from paceline.report.figures.scaling import ScalingInfo, ScalingPoint, ScalingSeries
from paceline.report.figures.scatter import ScatterGroup, ScatterInfo, ScatterPoint
from paceline.report.figures.utilisation import UtilisationInfo, UtilisationLane, utilisation_info
from paceline.report.figures.waterfall import WaterfallInfo

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
