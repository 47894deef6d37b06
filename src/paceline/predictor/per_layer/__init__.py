"""Data or model parallelism chosen for each layer of a network."""

from paceline.predictor.per_layer.choose_per_layer import PerLayerPlan, choose_per_layer
from paceline.predictor.per_layer.segments import Segment, Way

__all__ = ["PerLayerPlan", "Segment", "Way", "choose_per_layer"]
