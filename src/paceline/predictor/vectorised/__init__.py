"""The fast engine: data and model parallel steps over the five axes of a sweep, on arrays."""

from paceline.predictor.vectorised.axes import AXES, Configurations, Grid, Points, grid_around
from paceline.predictor.vectorised.comparison import WAYS, SweepComparison, compare
from paceline.predictor.vectorised.crossover import Crossing
from paceline.predictor.vectorised.data_parallel import VECTORISED, DataParallelSweep
from paceline.predictor.vectorised.model_parallel import ModelParallelSweep

__all__ = [
    "AXES",
    "VECTORISED",
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
