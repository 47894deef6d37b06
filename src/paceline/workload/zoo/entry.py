"""How a network of the zoo is listed, and the entries that several lists make."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo import gpt, llama


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A network of the zoo: its family, and how to write it down.

    ``build_for`` is set where learned positions are as many as the sequence is long.
    """

    family: str
    build: Callable[[], Graph]
    build_for: Callable[[int], Graph] | None = None


def network(family: str, writer: str, *arguments: Any) -> ZooEntry:
    """What MODULE.FUNCTION of this package makes of ``arguments``; imported when it is built."""
    module, _, function = writer.partition(".")

    def build() -> Graph:
        graph: Graph = getattr(import_module(f"{__package__}.{module}"), function)(*arguments)
        return graph

    return ZooEntry(family, build)


def elastic_gpt(family: str, name: str, size: gpt.GptSize) -> ZooEntry:
    """A GPT that learns as many positions as the sequence is long."""

    def build_for(sequence: int) -> Graph:
        return gpt.gpt(name, replace(size, positions=sequence))

    return ZooEntry(family, partial(gpt.gpt, name, size), build_for)


def adapted_llama(base: str, rank: int = llama.ADAPTER_RANK) -> ZooEntry:
    """A Llama of the zoo, frozen, with adapters of a rank."""
    size = replace(llama.LLAMA[base], adapter_rank=rank)
    suffix = "_lora" if rank == llama.ADAPTER_RANK else f"_lora_r{rank}"
    return ZooEntry("Llama, adapters", partial(llama.llama, f"{base}{suffix}", size))
