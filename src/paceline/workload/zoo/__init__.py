"""Networks by name: each a short function that writes down its layers."""

from paceline.workload.zoo.registry import build, names

__all__ = ["build", "names"]
