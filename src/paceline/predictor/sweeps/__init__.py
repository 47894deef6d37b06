"""Data and model parallel steps over the five axes of a sweep, on arrays."""

from paceline.predictor.sweeps.axes import AXES, Configurations, Grid, Points, grid_around
from paceline.predictor.sweeps.comparison import WAYS, SweepComparison, compare
from paceline.predictor.sweeps.crossover import Crossing
from paceline.predictor.sweeps.data_parallel import SWEPT, DataParallelSweep
from paceline.predictor.sweeps.model_parallel import ModelParallelSweep

__all__ = [
    "AXES",
    "SWEPT",
    "WAYS",
    "Configurations",
    "Crossing",
    "DataParallelSweep",
    "Grid",
    "ModelParallelSweep",
    "Points",
    "SweepComparison",
    "compare",
    "grid_around",
]
