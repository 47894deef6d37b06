"""Build the layer graph of a Hugging Face ``config.json`` without PyTorch.

Each ``model_type`` has a short function that converts the configuration, in most cases to a
`TransformerShape`, from which the graph with its head is built.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.json_checks import parsed_json
from paceline.naming import look_up
from paceline.user_files import read_text
from paceline.workload.capture.hugging_face.architectures import ARCHITECTURES
from paceline.workload.capture.hugging_face.fields import OTHERS, Config
from paceline.workload.graph import Graph
from paceline.workload.zoo import zoo_registry
from paceline.workload.zoo.transformers import TransformerShape, transformer

LARGEST_BYTES = 16_000_000

__all__ = ["ARCHITECTURES", "configured_network", "load_config"]


def load_config(path: Path, seq: int | None = None, name: str = "") -> Graph:
    """Build the graph of a configuration file for ``seq`` tokens per sample if given.

    ``name`` is the name of the model [that of the file, or its type].
    """
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES, "config.json"))
    except ValueError as error:
        raise InputError(
            f"{path} is not valid JSON ({error})", "give the config.json of a model"
        ) from None
    if not isinstance(document, dict) or "model_type" not in document:
        raise InputError(
            f"{path} is not a Hugging Face configuration: it has no 'model_type'",
            "give the config.json from the folder of the weights",
        )
    name = name or str(document.get("_name_or_path") or document.get("name") or "")
    name = name.split("/")[-1]
    graph = configured_network(document, path.name, name, seq)
    return replace(graph, name=_name_in_zoo(graph, str(document["model_type"])) or graph.name)


def _name_in_zoo(graph: Graph, kind: str) -> str:
    """Name of the network of the zoo with the same layers; empty if there is none.

    Corrections from published measurements belong to networks by name.
    """
    family = re.match("[a-z]*", kind)
    similar = zoo_registry.names_like(family[0]) if family and family[0] else []
    for name in similar:
        known = zoo_registry.build(name)
        if known.dimensions == graph.dimensions and known.nodes == graph.nodes:
            return name
    return ""


def configured_network(
    document: Mapping[str, Any], file: str, name: str = "", seq: int | None = None
) -> Graph:
    """Build the graph of a configuration from ``file``; the default name is its ``model_type``."""
    config, kind = Config(document, file, seq), str(document["model_type"])
    known = f"supported: {', '.join(sorted(ARCHITECTURES))}; {OTHERS}"
    described = look_up("Hugging Face model_type", kind, ARCHITECTURES, known)(config)
    name = name or kind
    if isinstance(described, TransformerShape):
        graph = transformer(name, described)
    else:
        graph = described(name)
    return replace(graph, notes=tuple(config.notes), dtype=config.dtype())
