"""Networks: framework-independent layer graphs, their costs, and a zoo."""

from paceline.workload.cost import Gemm, GraphCost, LayerCost
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.precision import Precision, precision
from paceline.workload.workload import Workload

__all__ = [
    "Gemm",
    "Graph",
    "GraphCost",
    "InputSpec",
    "LayerCost",
    "Node",
    "Precision",
    "Workload",
    "precision",
]
