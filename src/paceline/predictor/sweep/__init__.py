"""Data- and model-parallel steps over the five axes of a sweep, vectorised."""

from paceline.predictor.sweep.crossover import Crossing
from paceline.predictor.sweep.data_parallel import SWEPT, DataParallelSweep
from paceline.predictor.sweep.model_parallel import ModelParallelSweep
from paceline.predictor.sweep.sweep_axes import AXES, Configurations, Grid, Points, grid_around
from paceline.predictor.sweep.sweep_comparison import (
    WAYS,
    SweepComparison,
    SweepComparisons,
    compare,
)

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
    "SweepComparisons",
    "compare",
    "grid_around",
]
