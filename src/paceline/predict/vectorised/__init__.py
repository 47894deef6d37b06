"""The fast engine: data and model parallel steps over the five axes of a sweep, on arrays."""

from paceline.predict.vectorised.axes import AXES, Configurations, Grid, Points, grid_around
from paceline.predict.vectorised.data_parallel import VECTORISED, DataParallelSweep
from paceline.predict.vectorised.model_parallel import ModelParallelSweep

__all__ = [
    "AXES",
    "VECTORISED",
    "Configurations",
    "DataParallelSweep",
    "Grid",
    "ModelParallelSweep",
    "Points",
    "grid_around",
]
