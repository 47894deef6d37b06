"""Networks by name, each built by a short function."""

from paceline.workload.zoo.zoo_registry import build, family, names, names_like

__all__ = ["build", "family", "names", "names_like"]
