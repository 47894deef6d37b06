"""Collective operations: closed forms, libraries' choices, clusters, measured curves."""

from paceline.predict.collectives.closed_forms import bus_bandwidth, closed_form_seconds
from paceline.predict.collectives.contention import contended
from paceline.predict.collectives.cost import CollectiveCost, collective_cost, cost_on_fabric
from paceline.predict.collectives.fabric import Fabric, fabric_of
from paceline.predict.collectives.group import Group, Numbers
from paceline.predict.collectives.library import (
    Library,
    default_library,
    library,
    library_names,
)
from paceline.predict.collectives.measured import MeasuredCurve
from paceline.predict.collectives.operations import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    broadcast_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)
from paceline.predict.collectives.parameter_server import (
    ParameterServerCost,
    parameter_server_cost,
)
from paceline.predict.collectives.piecewise import PiecewiseCost, fit_piecewise

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
