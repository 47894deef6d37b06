"""Networks built from their published config.json, in ``data/models.toml``."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from paceline.located_toml import shipped_toml
from paceline.workload.graph import Graph

FILE = "models.toml"


@cache
def configurations() -> Mapping[str, Mapping[str, Any]]:
    return shipped_toml("data", FILE).values


def families() -> dict[str, str]:
    return {name: str(table["family"]) for name, table in configurations().items()}


def configured(name: str, sequence: int | None = None) -> Graph:
    """Build a network of the file for samples of ``sequence`` tokens if given."""
    from paceline.workload.capture.hugging_face import configured_network

    graph = configured_network(configurations()[name], FILE, name, sequence)
    stated = sequence is not None and graph.uses_sequence
    return replace(graph, sequence=sequence) if stated else graph
