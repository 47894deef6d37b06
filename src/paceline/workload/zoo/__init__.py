"""Networks by name: each a short function that writes down its layers."""

from paceline.workload.zoo.registry import build, family, names, names_like

__all__ = ["build", "family", "names", "names_like"]
