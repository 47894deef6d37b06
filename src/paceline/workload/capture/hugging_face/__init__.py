"""Hugging Face's ``config.json``, read directly: which network it is, as one description.

Each ``model_type`` has a short function that says what that architecture is, most of them in the
words of `TransformerShape`, from which the graph with its head is written down.
"""

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
from paceline.workload.zoo.transformers import TransformerShape, transformer

LARGEST_BYTES = 16_000_000

__all__ = ["ARCHITECTURES", "configured_network", "load_config"]


def load_config(path: Path) -> Graph:
    """The graph of a configuration file."""
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES, "config.json"))
    except ValueError as error:
        raise InputError(
            f"{path} is not JSON that can be read ({error})", "give config.json"
        ) from None
    if not isinstance(document, dict) or "model_type" not in document:
        raise InputError(
            f"{path} has no 'model_type', so it is not a Hugging Face configuration",
            "give the config.json that lies beside the weights",
        )
    name = str(document.get("_name_or_path") or document.get("name") or "").split("/")[-1]
    return configured_network(document, path.name, name)


def configured_network(document: Mapping[str, Any], file: str, name: str = "") -> Graph:
    """The graph of a configuration that was read from ``file``; named after its type if not."""
    config, kind = Config(document, file), str(document["model_type"])
    known = f"read directly: {', '.join(sorted(ARCHITECTURES))}; {OTHERS}"
    described = look_up("Hugging Face model_type", kind, ARCHITECTURES, known)(config)
    name = name or kind
    if isinstance(described, TransformerShape):
        graph = transformer(name, described)
    else:
        graph = described(name)
    return replace(graph, notes=tuple(config.notes))
