"""Collective operations: algorithms, libraries' choices, clusters, measured curves."""

from paceline.predictor.collectives.cost import CollectiveCost, collective_cost, cost_on_fabric
from paceline.predictor.collectives.fabric import Fabric, fabric_of
from paceline.predictor.collectives.group import Group, Numbers
from paceline.predictor.collectives.library import (
    Library,
    library,
    library_names,
)
from paceline.predictor.collectives.measured import MeasuredCurve
from paceline.predictor.collectives.parameter_server import (
    ParameterServerCost,
    parameter_server_cost,
)

__all__ = [
    "CollectiveCost",
    "Fabric",
    "Group",
    "Library",
    "MeasuredCurve",
    "Numbers",
    "ParameterServerCost",
    "collective_cost",
    "cost_on_fabric",
    "fabric_of",
    "library",
    "library_names",
    "parameter_server_cost",
]
