"""How a network of the zoo is listed, and the entries that several lists make."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo.sizes import ADAPTER_RANK, LLAMA, GptSize


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A network of the zoo: its family, and how to write it down.

    ``build_for`` is set where learned positions are as many as the sequence is long.
    """

    family: str
    build: Callable[[], Graph]
    build_for: Callable[[int], Graph] | None = None


def written(writer: str, *arguments: Any) -> Graph:
    """What MODULE.FUNCTION of this package makes of ``arguments``; imported now."""
    module, _, function = writer.partition(".")
    graph: Graph = getattr(import_module(f"{__package__}.{module}"), function)(*arguments)
    return graph


def network(family: str, writer: str, *arguments: Any) -> ZooEntry:
    """The network that MODULE.FUNCTION of this package makes of ``arguments`` when it is built."""
    return ZooEntry(family, partial(written, writer, *arguments))


def elastic_gpt(family: str, name: str, size: GptSize) -> ZooEntry:
    """A GPT that learns as many positions as the sequence is long."""

    def build_for(sequence: int) -> Graph:
        return written("gpt.gpt", name, replace(size, positions=sequence))

    return ZooEntry(family, partial(written, "gpt.gpt", name, size), build_for)


def adapted_llama(base: str, rank: int = ADAPTER_RANK) -> ZooEntry:
    """A Llama of the zoo, frozen, with adapters of a rank."""
    size = replace(LLAMA[base], adapter_rank=rank)
    suffix = "_lora" if rank == ADAPTER_RANK else f"_lora_r{rank}"
    return network("Llama, adapters", "llama.llama", f"{base}{suffix}", size)
