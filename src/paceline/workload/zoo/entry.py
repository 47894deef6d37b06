"""Entries of the zoo."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo.sizes import ADAPTER_RANK, LLAMA, GptSize


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A network of the zoo: its family and the function that builds it.

    ``build_for`` builds it for a sequence length, if learned positions follow the sequence.
    """

    family: str
    build: Callable[[], Graph]
    build_for: Callable[[int], Graph] | None = None


def build_with(function_path: str, *arguments: Any) -> Graph:
    """Import MODULE.FUNCTION of this package and call it with ``arguments``."""
    module, _, function = function_path.partition(".")
    graph: Graph = getattr(import_module(f"{__package__}.{module}"), function)(*arguments)
    return graph


def network(family: str, function_path: str, *arguments: Any) -> ZooEntry:
    """An entry that calls MODULE.FUNCTION of this package with ``arguments`` when it is built."""
    return ZooEntry(family, partial(build_with, function_path, *arguments))


def elastic_gpt(family: str, name: str, size: GptSize) -> ZooEntry:
    """A GPT whose learned positions follow the sequence length."""

    def build_for(sequence: int) -> Graph:
        return build_with("gpt.gpt", name, replace(size, positions=sequence))

    return ZooEntry(family, partial(build_with, "gpt.gpt", name, size), build_for)


def adapted_llama(base: str, rank: int = ADAPTER_RANK) -> ZooEntry:
    size = replace(LLAMA[base], adapter_rank=rank)
    suffix = "_lora" if rank == ADAPTER_RANK else f"_lora_r{rank}"
    return network("Llama, adapters", "llama.llama", f"{base}{suffix}", size)
