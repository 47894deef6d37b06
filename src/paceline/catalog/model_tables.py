"""Models with their costs as tables and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from paceline.render.table import Align, Column, Table
from paceline.render.terminal import bar_text
from paceline.units import format_bytes, format_count, format_flops, plural
from paceline.workload import zoo
from paceline.workload.capture_notes import capture_notes, unknown_operations
from paceline.workload.cost import GROWING_QUANTITIES, GraphCost, LayerCost, Number, Shape
from paceline.workload.graph import Graph
from paceline.workload.ops.dimensions import describe
from paceline.workload.precision import precision as find_precision

_BAR_WIDTH = 14
_LEAST_BAR = 1 / 8


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
        each = plural(len(self.layers) // self.repeats, "layer")
        return each if self.repeats == 1 else f"{self.repeats} x {each}"

    @property
    def output(self) -> LayerCost:
        return self.layers[-1]

    def total(self, quantity: Quantity) -> Number:
        result: Number = 0
        for layer in self.layers:
            result = result + quantity(layer)
        return result


def model_facts(name: str) -> dict[str, Any]:
    """A built-in model with the costs of one sample; field names contain units."""
    graph = zoo.build(name)
    cost = graph.cost(1)
    return {
        "name": name,
        "family": zoo.family(name),
        "inputs": {key: list(spec.shape) for key, spec in graph.inputs.items()},
        "sequence": graph.sequence,
        "parameters": cost.parameters,
        "trainable_parameters": cost.trainable_parameters,
        "forward_flops_per_sample": cost.forward_flops,
        "training_flops_per_sample": cost.training_flops,
        "gradient_bytes": cost.gradient_bytes,
    }


def model_table(models: Sequence[dict[str, Any]]) -> Table:
    def flops(title: str) -> tuple[Column, Callable[[dict[str, Any]], str]]:
        column = Column(title, align=Align.RIGHT)
        return column, lambda model: format_flops(model[f"{title}_flops_per_sample"])

    return Table.of(
        models,
        (Column("model"), lambda model: model["name"]),
        (Column("family"), lambda model: model["family"]),
        (Column("parameters", align=Align.RIGHT), lambda model: f"{model['parameters']:,}"),
        (Column("sample"), _sample),
        flops("forward"),
        flops("training"),
        note="FLOPs per sample; training includes forward and backward.",
    )


def layer_table(title: str, groups: Sequence[LayerGroup]) -> Table:
    """One row per group: shape, parameters, FLOPs, activations, and a bar of its parameters."""
    shown = [group for group in groups if _costs_something(group)]
    largest = max((_parameters(group) for group in shown), default=0)

    def total(
        title: str, name: str, format_amount: Callable[[float], str]
    ) -> tuple[Column, Callable[[LayerGroup], str]]:
        def cell(group: LayerGroup) -> str:
            amount = float(group.total(lambda layer: getattr(layer, name)))
            return format_amount(amount) if amount else ""

        return Column(title, align=Align.RIGHT), cell

    return Table.of(
        shown,
        (Column("layer"), lambda group: group.name),
        (Column("kind"), lambda group: group.kind),
        (Column("output"), lambda group: _shape(group.output.output_shape)),
        total("parameters", "parameters", format_count),
        total("forward", "forward_flops", format_flops),
        total("backward", "backward_flops", format_flops),
        total("activations", "activation_bytes", format_bytes),
        (Column("size", align=Align.LEFT), lambda group: _bar(_parameters(group), largest)),
        title=title,
        note="Views have no cost and are omitted." if len(groups) > len(shown) else "",
    )


def inspected_parts(
    graph: Graph, batch: int, seq: int | None, precision: str, *, all_layers: bool
) -> list[str | Table]:
    """The layers of a training step of ``graph``, and its total cost."""
    cost = graph.cost(batch, seq, precision)
    groups = single_layers(cost.layers) if all_layers else grouped_layers(cost.layers)
    tokens = f" of {seq or graph.sequence} tokens" if graph.uses_sequence else ""
    name = find_precision(precision).name
    title = f"{graph.name}, one training step: batch {batch}{tokens}, {name}"
    return [layer_table(title, groups), "", *totals_text(cost)]


def inspected_json(graph: Graph, batch: int, seq: int | None, precision: str) -> dict[str, Any]:
    """A training step of ``graph`` as JSON; field names contain units."""
    cost = graph.cost(batch, seq, precision)
    return {
        "model": graph.name,
        "batch": batch,
        "sequence": (seq or graph.sequence) if graph.uses_sequence else None,
        "precision": find_precision(precision).name,
        "parameters": cost.parameters,
        "trainable_parameters": cost.trainable_parameters,
        "forward_flops": cost.forward_flops,
        "training_flops": cost.training_flops,
        "forward_bytes": cost.forward_bytes,
        "backward_bytes": cost.backward_bytes,
        "activation_bytes": cost.activation_bytes,
        "gradient_bytes": cost.gradient_bytes,
        "unknown_operations": unknown_operations(graph),
        "notes": capture_notes(graph),
        "layers": [layer_json(layer) for layer in cost.layers],
    }


def totals_text(cost: GraphCost) -> list[str]:
    trained = ""
    if cost.trainable_parameters < cost.parameters:
        trained = f", {cost.trainable_parameters:,} trainable"
    return [
        f"parameters  {cost.parameters:,}{trained}  "
        f"(gradient {format_bytes(float(cost.gradient_bytes))})",
        f"compute     {format_flops(float(cost.forward_flops))} forward, "
        f"{format_flops(float(cost.training_flops))} forward and backward",
        f"memory      {format_bytes(float(cost.activation_bytes))} activations, "
        f"{format_bytes(float(cost.forward_bytes + cost.backward_bytes))} memory traffic",
    ]


def layer_json(layer: LayerCost) -> dict[str, Any]:
    """One layer as JSON; field names contain units."""
    numbers = {name: getattr(layer, name) for name in GROWING_QUANTITIES}
    return {
        "name": layer.name,
        "kind": layer.kind,
        "output_shape": list(layer.output_shape),
        "parameters": layer.parameters,
        "trainable_parameters": layer.trainable_parameters,
        **numbers,
    }


def _costs_something(group: LayerGroup) -> bool:
    return any(
        layer.forward_bytes or layer.parameters or layer.activation_bytes for layer in group.layers
    )


def _bar(value: float, largest: float) -> str:
    """A bar in proportion to the largest value; values above 0 are always visible."""
    if value <= 0:
        return ""
    return bar_text(max(value / largest * _BAR_WIDTH, _LEAST_BAR))


def _parameters(group: LayerGroup) -> float:
    return float(group.total(lambda layer: layer.parameters))


def _shape(shape: Shape) -> str:
    return describe(shape) if shape else ""


def _sample(model: dict[str, Any]) -> str:
    if model["sequence"] is not None:
        return f"{model['sequence']} tokens"
    return describe(tuple(next(iter(model["inputs"].values())))).replace("scalar", "1 pair")


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
