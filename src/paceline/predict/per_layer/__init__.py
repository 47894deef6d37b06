"""Data or model parallelism chosen for each layer of a network."""

from paceline.predict.per_layer.chosen import PerLayerPlan, choose_per_layer
from paceline.predict.per_layer.segments import Segment, Way

__all__ = ["PerLayerPlan", "Segment", "Way", "choose_per_layer"]
