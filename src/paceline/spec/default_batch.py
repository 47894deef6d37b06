"""The global batch: given in samples or tokens, else by model size."""

import math
from collections.abc import Mapping
from typing import Any

from paceline.constants import number
from paceline.errors import InputError
from paceline.spec.resolve_model import DEFAULT_BATCH, is_large
from paceline.units import tokens_of_batch
from paceline.workload.graph import Graph

_SMALL, _MEDIUM = 4e9, 50e9
"""Parameters up to which a language model is trained on small and medium batches."""


def given_global_batch(options: Mapping[str, Any], graph: Graph, devices: int) -> int | None:
    """The given global batch in samples; tokens are rounded to a multiple of ``devices``."""
    given = options.get("global_batch")
    if not isinstance(given, str):
        return given
    if given.strip().isdecimal():
        return int(given)
    sequence = sequence_of(graph, options)
    if sequence is None:
        raise InputError(
            f"{graph.name} does not train on tokens (got --global-batch {given})",
            "give the global batch in samples: --global-batch 1024",
        )
    return max(1, round(tokens_of_batch(given) / sequence / devices)) * devices


def usual_global_batch(graph: Graph, options: Mapping[str, Any], devices: int) -> int:
    """Samples per step of a usual training, a multiple of ``devices``.

    Language models above 1 B parameters have a number of tokens by size, fine-tuning of adapters
    a number of sequences, other models the default batch on each device.
    """
    sequence = sequence_of(graph, options)
    if options.get("lora") or options.get("qlora"):
        samples = number("operation.batch.adapter_samples")
    elif sequence is None or not is_large(graph):
        return DEFAULT_BATCH * devices
    else:
        parameters = graph.profile(None, "fp32").parameters
        size = "small" if parameters < _SMALL else "medium" if parameters < _MEDIUM else "large"
        samples = number(f"operation.batch.tokens_{size}") / sequence
    return max(1, math.ceil(samples / devices)) * devices


def sequence_of(graph: Graph, options: Mapping[str, Any]) -> int | None:
    """Tokens per sample; None if samples are not sequences."""
    if not graph.uses_sequence:
        return None
    return options.get("seq") or graph.sequence
