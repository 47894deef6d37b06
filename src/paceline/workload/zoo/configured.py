"""Networks whose published config.json says all: ``data/models.toml``, by name."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from paceline.workload.graph import Graph

FILE = "models.toml"


@cache
def configurations() -> Mapping[str, Mapping[str, Any]]:
    """Every configuration of the file by the name of its network."""
    text = files("paceline").joinpath("data", FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


def families() -> dict[str, str]:
    """The family of every network of the file."""
    return {name: str(table["family"]) for name, table in configurations().items()}


def configured(name: str) -> Graph:
    """The network of a name in the file."""
    from paceline.workload.capture.hugging_face import configured_network

    return configured_network(configurations()[name], FILE, name)
