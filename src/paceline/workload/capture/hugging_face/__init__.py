"""Build the layer graph of a Hugging Face ``config.json`` without PyTorch.

Each ``model_type`` has a short function that converts the configuration, in most cases to a
`TransformerShape`, from which the graph with its head is built.
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


def load_config(path: Path, seq: int | None = None) -> Graph:
    """Build the graph of a configuration file for ``seq`` tokens per sample if given."""
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
    name = str(document.get("_name_or_path") or document.get("name") or "").split("/")[-1]
    return configured_network(document, path.name, name, seq)


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
