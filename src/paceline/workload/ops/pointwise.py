"""Elementwise operations: activations, sums, products, dropout."""

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.workload.cost import Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, operation
from paceline.workload.ops.dimensions import describe, elements, fixed_dimension, same_shape
from paceline.workload.ops.work import MASK_BYTES, Kept, Traffic, Work

KEEPS_OUTPUT = {
    "relu": True,
    "relu6": False,
    "sigmoid": True,
    "tanh": True,
    "softmax": True,
    "gelu": False,
    "gelu_tanh": False,
    "silu": False,
    "hard_swish": False,
    "leaky_relu": False,
    "elu": True,
}
"""Whether the gradient of each activation needs its output; otherwise it needs its input.

PyTorch saves the result of relu, sigmoid, tanh and softmax, and the input of gelu and silu
(``tools/autograd/derivatives.yaml``).
"""


@operation("activation")
class Activation(Op):
    """A function of each element (softmax: of the last dimension)."""

    function: str

    def __post_init__(self) -> None:
        choices = f"one of {', '.join(KEEPS_OUTPUT)}"
        look_up("activation", self.function, KEEPS_OUTPUT, choices)

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One pass forward, one backward; saves its output or its input."""
        size = elements(inputs[0])
        keeps_output = KEEPS_OUTPUT[self.function]
        return Work(
            forward_traffic=Traffic(2 * size),
            backward_traffic=Traffic(3 * size),
            kept=Kept(output=True) if keeps_output else Kept(inputs=(0,)),
        )


@operation("add", inputs=(2, None))
class Add(Op):
    """Sum of two or more equal shapes. Backward passes the gradient on without a copy."""

    def output(self, inputs: Shapes) -> Shape:
        _require_equal(inputs)
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        return Work(forward_traffic=Traffic((len(inputs) + 1) * elements(inputs[0])))


@operation("add_per_channel", inputs=2)
class AddPerChannel(Op):
    """Adds the second input, one value per channel of the first, at all of its positions."""

    def output(self, inputs: Shapes) -> Shape:
        first, second = inputs
        if not same_shape(first[: len(second)], second):
            raise InputError(
                f"cannot add {describe(second)} to the channels of {describe(first)}",
                "give the second input the leading dimensions of the first",
            )
        return first

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves nothing; backward sums the gradient over the positions."""
        first, second = elements(inputs[0]), elements(inputs[1])
        return Work(
            forward_traffic=Traffic(2 * first + second),
            backward_traffic=Traffic(first + second),
        )


@operation("fused_sum", inputs=(2, None))
class FusedSum(Op):
    """Sum with learned, normalised, non-negative weights (BiFPN; Tan et al. 2020)."""

    def output(self, inputs: Shapes) -> Shape:
        _require_equal(inputs)
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (len(inputs),)}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Scales each input, then adds; saves all inputs."""
        size, count = elements(inputs[0]), len(inputs)
        return Work(
            forward_traffic=Traffic((3 * count + 1) * size),
            backward_traffic=Traffic(4 * count * size),
            kept=Kept(inputs=tuple(range(count))),
        )


@operation("prelu")
class Prelu(Op):
    """A rectifier with a learned slope below zero for each channel."""

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (fixed_dimension(inputs[0], 0),)}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One pass forward; backward also writes the terms of the slopes' gradient."""
        size = elements(inputs[0])
        return Work(
            forward_traffic=Traffic(2 * size),
            backward_traffic=Traffic(3 * size),
            weight_gradient_traffic=Traffic(2 * size),
            kept=Kept(inputs=(0,)),
        )


@operation("multiply", inputs=2)
class Multiply(Op):
    """Product of two inputs; the second may be one value per channel of the first."""

    def output(self, inputs: Shapes) -> Shape:
        first, second = inputs
        if not same_shape(first[: len(second)], second):
            raise InputError(
                f"cannot multiply {describe(first)} by {describe(second)}",
                "give the second input the shape of the first or its leading dimensions",
            )
        return first

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves both inputs; backward reads them and the gradient and writes two gradients."""
        first, second = elements(inputs[0]), elements(inputs[1])
        return Work(
            forward_traffic=Traffic(2 * first + second),
            backward_traffic=Traffic(4 * first + 2 * second),
            kept=Kept(inputs=(0, 1)),
        )


@operation("dropout")
class Dropout(Op):
    """Zeroes a share of the elements in training; does nothing at probability 0."""

    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability < 1:
            raise InputError(f"probability must be in [0, 1) (got {self.probability})")

    @property
    def is_view(self) -> bool:
        """At probability 0 the input passes through."""
        return self.probability == 0

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves a mask of one byte per element, as PyTorch's native_dropout does."""
        if self.is_view:
            return Work()
        size = elements(inputs[0])
        moved = Traffic(2 * size, other_bytes=size * MASK_BYTES)
        kept = Kept(other_bytes=size * MASK_BYTES)
        return Work(forward_traffic=moved, backward_traffic=moved, kept=kept)


def _require_equal(inputs: Shapes) -> None:
    for other in inputs[1:]:
        if not same_shape(inputs[0], other):
            raise InputError(
                f"cannot add {describe(inputs[0])} and {describe(other)}",
                "give all inputs of the sum the same shape",
            )
