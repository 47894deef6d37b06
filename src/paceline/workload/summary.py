"""Layers of a costed graph gathered into the blocks a reader thinks in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from paceline.workload.cost import LayerCost, Number

Quantity = Callable[[LayerCost], Number]


@dataclass(frozen=True)
class LayerGroup:
    """Consecutive layers of a common scope, and how many such scopes in a row are alike.

    Quantities are of all of them together.
    """

    name: str
    layers: tuple[LayerCost, ...]
    repeats: int = 1

    @property
    def kind(self) -> str:
        """The kind of a single layer, else how many layers one scope has."""
        if len(self.layers) == 1:
            return self.layers[0].kind
        each = f"{len(self.layers) // self.repeats} layers"
        return each if self.repeats == 1 else f"{self.repeats} x {each}"

    @property
    def output(self) -> LayerCost:
        """The layer whose result leaves the group."""
        return self.layers[-1]

    def total(self, quantity: Quantity) -> Number:
        """Sum of a quantity over the layers."""
        result: Number = 0
        for layer in self.layers:
            result = result + quantity(layer)
        return result


def single_layers(layers: Sequence[LayerCost]) -> list[LayerGroup]:
    """Every layer by itself."""
    return [LayerGroup(layer.name, (layer,)) for layer in layers]


def grouped_layers(layers: Sequence[LayerCost], most: int = 48) -> list[LayerGroup]:
    """The finest gathering into at most ``most`` groups: by block, else by outermost scope.

    A block is a scope that ends in a number (``layer1.0``); blocks in a row that are alike in
    every cost become one group (``blocks.0-95``).
    """
    by_block = _merged([_group(name, part) for name, part in _runs(layers, _block)])
    if len(by_block) <= most:
        return by_block
    return [_group(name, part) for name, part in _runs(layers, _outermost)]


def _runs(
    layers: Sequence[LayerCost], scope: Callable[[str], str]
) -> list[tuple[str, list[LayerCost]]]:
    return [(name, list(part)) for name, part in groupby(layers, key=lambda x: scope(x.name))]


def _group(name: str, layers: Sequence[LayerCost]) -> LayerGroup:
    return LayerGroup(name, tuple(layers))


def _block(name: str) -> str:
    parts = name.split(".")
    for position, part in enumerate(parts[:-1]):
        if part.isdigit():
            return ".".join(parts[: position + 1])
    return _outermost(name)


def _outermost(name: str) -> str:
    return name.partition(".")[0]


def _merged(groups: Sequence[LayerGroup]) -> list[LayerGroup]:
    merged: list[LayerGroup] = []
    for key, run in groupby(groups, key=_likeness):
        alike = list(run)
        numbered = alike[0].name.rpartition(".")[2].isdigit()
        if len(alike) == 1 or not numbered or not key:
            merged += alike
            continue
        last = alike[-1].name.rpartition(".")[2]
        layers = tuple(layer for group in alike for layer in group.layers)
        merged.append(LayerGroup(f"{alike[0].name}-{last}", layers, len(alike)))
    return merged


def _likeness(group: LayerGroup) -> tuple[object, ...]:
    """Equal for blocks of one parent that cost the same.

    What is kept is left out: the first of several readers of a tensor is charged for it.
    """
    scope = group.name.rpartition(".")[0]
    costs = tuple(
        (
            layer.kind,
            layer.tensors,
            layer.output_shape,
            layer.profile.forward_flops,
            layer.profile.input_gradient_flops,
        )
        for layer in group.layers
    )
    return (scope, costs)
