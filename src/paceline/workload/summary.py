"""Group the layers of a graph by block for tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from paceline.workload.cost import LayerCost, Number

Quantity = Callable[[LayerCost], Number]


@dataclass(frozen=True)
class LayerGroup:
    """Consecutive layers of one scope, or of ``repeats`` identical scopes.

    Quantities are sums over all of them.
    """

    name: str
    layers: tuple[LayerCost, ...]
    repeats: int = 1

    @property
    def kind(self) -> str:
        """The kind of a single layer; otherwise the number of layers per scope."""
        if len(self.layers) == 1:
            return self.layers[0].kind
        each = f"{len(self.layers) // self.repeats} layers"
        return each if self.repeats == 1 else f"{self.repeats} x {each}"

    @property
    def output(self) -> LayerCost:
        return self.layers[-1]

    def total(self, quantity: Quantity) -> Number:
        result: Number = 0
        for layer in self.layers:
            result = result + quantity(layer)
        return result


def single_layers(layers: Sequence[LayerCost]) -> list[LayerGroup]:
    return [LayerGroup(layer.name, (layer,)) for layer in layers]


def grouped_layers(layers: Sequence[LayerCost], most: int = 48) -> list[LayerGroup]:
    """Group layers by block, or by outermost scope if that gives more than ``most`` groups.

    A block is a scope that ends in a number (``layer1.0``); consecutive blocks with equal costs
    become one group (``blocks.0-95``).
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
    for key, run in groupby(groups, key=_costs):
        same = list(run)
        numbered = same[0].name.rpartition(".")[2].isdigit()
        if len(same) == 1 or not numbered or not key:
            merged += same
            continue
        last = same[-1].name.rpartition(".")[2]
        layers = tuple(layer for group in same for layer in group.layers)
        merged.append(LayerGroup(f"{same[0].name}-{last}", layers, len(same)))
    return merged


def _costs(group: LayerGroup) -> tuple[object, ...]:
    """Equal for blocks of one parent with the same costs.

    Activation memory is left out: a tensor is charged to the first of its readers only.
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
