"""Recurrent layers."""

from collections.abc import Iterator

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    elements,
    fixed_dimension,
    require_positive,
    same_shape,
)
from paceline.workload.ops.work import Kept, Traffic, Work

# Input, forget, cell and output gate (Hochreiter and Schmidhuber 1997, Gers et al. 2000).
_GATES = 4


@operation("lstm", inputs=(1, 3))
class Lstm(Op):
    """Long short-term memory over tokens x features, as PyTorch defines it (two biases).

    GEMMs with the inputs run over all tokens at once, those with the state token by token:
    ``tokens`` small GEMMs in sequence. A single layer in one direction may also read the initial
    hidden state and cell; the default is zeros.
    """

    hidden: int
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True

    def __post_init__(self) -> None:
        require_positive(hidden=self.hidden, layers=self.layers)

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def output(self, inputs: Shapes) -> Shape:
        shape, *states = inputs
        if len(shape) != 2:
            raise InputError(f"needs tokens x features (got {describe(shape)})")
        if states and (
            len(states) != 2
            or self.layers * self.directions != 1
            or not all(same_shape(state, (self.hidden,)) for state in states)
        ):
            raise InputError(
                f"initial states need one layer, one direction and width {self.hidden}"
            )
        return (shape[0], self.hidden * self.directions)

    def parameters(self, inputs: Shapes) -> Parameters:
        gates = _GATES * self.hidden
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, features in enumerate(self._features(inputs)):
            for direction in ("", "_reverse")[: self.directions]:
                name = f"l{layer}{direction}"
                shapes[f"weight_ih_{name}"] = (gates, features)
                shapes[f"weight_hh_{name}"] = (gates, self.hidden)
                if self.bias:
                    shapes[f"bias_ih_{name}"] = (gates,)
                    shapes[f"bias_hh_{name}"] = (gates,)
        return shapes

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves input, output, and gates and cell of every token."""
        tokens, gates, ways = inputs[0][0], _GATES * self.hidden, self.directions
        forward: list[Gemm] = []
        weight_gradient: list[Gemm] = []
        input_gradient: list[Gemm] = []
        for layer, features in enumerate(self._features(inputs)):
            forward += [
                Gemm(gates, tokens, features, ways),
                Gemm(gates, 1, self.hidden, ways * tokens),
            ]
            weight_gradient += [
                Gemm(gates, features, tokens, ways, "k"),
                Gemm(gates, self.hidden, tokens, ways, "k"),
            ]
            input_gradient.append(Gemm(self.hidden, 1, gates, ways * tokens))
            if layer > 0 or needs_input_gradient:
                input_gradient.append(Gemm(features, tokens, gates, ways))
        weights = count_parameters(self.parameters(inputs))
        states = tokens * self.hidden * ways * self.layers
        between = states - tokens * self.hidden * ways
        moved = elements(inputs[0]) + (2 * _GATES + 4) * states
        return Work(
            forward=tuple(forward),
            weight_gradient=tuple(weight_gradient),
            input_gradient=tuple(input_gradient),
            forward_traffic=Traffic(moved, weights),
            backward_traffic=Traffic(2 * moved, weights, weights),
            kept=Kept((0,), True, elements=(_GATES + 1) * states + between),
        )

    def _features(self, inputs: Shapes) -> Iterator[int]:
        for layer in range(self.layers):
            yield self.hidden * self.directions if layer else fixed_dimension(inputs[0], -1)
