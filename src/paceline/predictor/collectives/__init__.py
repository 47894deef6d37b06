"""Collective operations: closed forms, libraries' choices, clusters, measured curves."""

from paceline.predictor.collectives.closed_forms import bus_bandwidth, closed_form_seconds
from paceline.predictor.collectives.contention import contended
from paceline.predictor.collectives.cost import CollectiveCost, collective_cost, cost_on_fabric
from paceline.predictor.collectives.fabric import Fabric, fabric_of
from paceline.predictor.collectives.group import Group, Numbers
from paceline.predictor.collectives.library import (
    Library,
    default_library,
    library,
    library_names,
)
from paceline.predictor.collectives.measured import MeasuredCurve
from paceline.predictor.collectives.operations import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    broadcast_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)
from paceline.predictor.collectives.parameter_server import (
    ParameterServerCost,
    parameter_server_cost,
)
from paceline.predictor.collectives.piecewise import PiecewiseCost, fit_piecewise

__all__ = [
    "CollectiveCost",
    "Fabric",
    "Group",
    "Library",
    "MeasuredCurve",
    "Numbers",
    "ParameterServerCost",
    "PiecewiseCost",
    "all_gather_seconds",
    "all_reduce_seconds",
    "all_to_all_seconds",
    "broadcast_seconds",
    "bus_bandwidth",
    "closed_form_seconds",
    "collective_cost",
    "contended",
    "cost_on_fabric",
    "default_library",
    "fabric_of",
    "fit_piecewise",
    "library",
    "library_names",
    "parameter_server_cost",
    "point_to_point_seconds",
    "reduce_scatter_seconds",
]
