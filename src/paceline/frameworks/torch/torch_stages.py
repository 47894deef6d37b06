"""Splits a network into pipeline stages of consecutive nodes."""

from typing import Any

from torch import Tensor, nn


class Stage(nn.Module):
    """Consecutive nodes of a network, with the values that later stages read as outputs."""

    def __init__(self, steps: list, given: list[str], left: list[str]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(module for _, module, _ in steps)
        self.names = [(name, reads) for name, _, reads in steps]
        self.given, self.left = given, left

    def forward(self, *inputs: Tensor) -> Any:
        values = dict(zip(self.given, inputs, strict=True))
        for (name, reads), layer in zip(self.names, self.layers, strict=True):
            values[name] = layer(*[values[read] for read in reads])
        found = tuple(values[name] for name in self.left)
        return found[0] if len(found) == 1 else found


def cut(network: Any, count: int) -> list[Stage]:
    """``count`` stages with as equal numbers of layers with weights as possible."""
    steps = network.steps
    weighted = [index for index, (_, module, _) in enumerate(steps) if list(module.parameters())]
    if len(weighted) < count:
        raise ValueError(f"cannot split {len(weighted)} layers with weights into {count} stages")
    begins = [weighted[len(weighted) * number // count] for number in range(1, count)]
    borders = [0, *begins, len(steps)]
    given = list(network.input_names)
    stages = []
    for number in range(count):
        own = steps[borders[number] : borders[number + 1]]
        later = steps[borders[number + 1] :]
        left = _still_read(given, own, later, network.outputs)
        stages.append(Stage(own, given, left))
        given = left
    return stages


def _still_read(given: list[str], own: list, later: list, outputs: list[str]) -> list[str]:
    """Values at a boundary that later nodes read, in order of creation."""
    wanted = {name for _, _, reads in later for name in reads} | set(outputs)
    return [name for name in [*given, *(name for name, _, _ in own)] if name in wanted]
