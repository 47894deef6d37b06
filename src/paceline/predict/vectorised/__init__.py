"""The fast engine: data and model parallel steps over the five axes of a sweep, on arrays."""

from paceline.predict.vectorised.axes import AXES, Configurations, Grid, Points, grid_around
from paceline.predict.vectorised.comparison import WAYS, Comparison, compare
from paceline.predict.vectorised.crossover import Crossing
from paceline.predict.vectorised.data_parallel import VECTORISED, DataParallelSweep
from paceline.predict.vectorised.model_parallel import ModelParallelSweep

__all__ = [
    "AXES",
    "VECTORISED",
    "WAYS",
    "Comparison",
    "Configurations",
    "Crossing",
    "DataParallelSweep",
    "Grid",
    "ModelParallelSweep",
    "Points",
    "compare",
    "grid_around",
]
