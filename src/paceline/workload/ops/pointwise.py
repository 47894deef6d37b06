"""Operations on each element by itself: activations, sums, products, dropout."""

from dataclasses import dataclass
from typing import ClassVar

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.workload.cost import Shape
from paceline.workload.ops.base import (
    MASK_BYTES,
    Kept,
    Op,
    Shapes,
    Traffic,
    Work,
    describe,
    elements,
    register,
    same_shape,
)

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
}
"""Every activation; whether its gradient is computed from its output (else from its input)."""


@register
@dataclass(frozen=True, slots=True)
class Activation(Op):
    """A function of each element (softmax: of the last dimension)."""

    kind: ClassVar[str] = "activation"

    function: str

    def __post_init__(self) -> None:
        choices = f"one of {', '.join(KEEPS_OUTPUT)}"
        look_up("activation", self.function, KEEPS_OUTPUT, choices)

    def output(self, inputs: Shapes) -> Shape:
        """As the input."""
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One pass forward, one backward; keeps its output or its input."""
        size = elements(inputs[0])
        keeps_output = KEEPS_OUTPUT[self.function]
        return Work(
            forward_traffic=Traffic(2 * size),
            backward_traffic=Traffic(3 * size),
            kept=Kept(output=True) if keeps_output else Kept(inputs=(0,)),
        )


@register
@dataclass(frozen=True, slots=True)
class Add(Op):
    """Sum of two or more equal shapes. Its gradient is the incoming one: nothing is moved."""

    kind: ClassVar[str] = "add"
    least_inputs: ClassVar[int] = 2
    most_inputs: ClassVar[int | None] = None

    def output(self, inputs: Shapes) -> Shape:
        """As each input."""
        _require_equal(inputs)
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Reads all, writes one."""
        return Work(forward_traffic=Traffic((len(inputs) + 1) * elements(inputs[0])))


@register
@dataclass(frozen=True, slots=True)
class Multiply(Op):
    """Product of two inputs; the second may be one value per channel of the first."""

    kind: ClassVar[str] = "multiply"
    least_inputs: ClassVar[int] = 2
    most_inputs: ClassVar[int | None] = 2

    def output(self, inputs: Shapes) -> Shape:
        """As the first input."""
        first, second = inputs
        if not same_shape(first[: len(second)], second):
            raise InputError(
                f"cannot multiply {describe(first)} by {describe(second)}",
                "the second input has the first's shape, or its leading dimensions",
            )
        return first

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Keeps both inputs; backward reads them and the gradient and writes two."""
        first, second = elements(inputs[0]), elements(inputs[1])
        return Work(
            forward_traffic=Traffic(2 * first + second),
            backward_traffic=Traffic(4 * first + 2 * second),
            kept=Kept(inputs=(0, 1)),
        )


@register
@dataclass(frozen=True, slots=True)
class Dropout(Op):
    """Zeroes a share of the elements in training; does nothing at probability 0."""

    kind: ClassVar[str] = "dropout"

    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability < 1:
            raise InputError(f"probability must be at least 0 and below 1, not {self.probability}")

    @property
    def is_view(self) -> bool:
        """At probability 0 the input passes through."""
        return self.probability == 0

    def output(self, inputs: Shapes) -> Shape:
        """As the input."""
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Keeps a mask of one byte per element."""
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
                "the inputs of a sum have one shape",
            )
