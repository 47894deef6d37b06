"""What every operation of a graph must be able to say about itself."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from paceline.errors import InputError
from paceline.workload.cost import Affine, Gemm, Number, Shape
from paceline.workload.precision import Precision

Shapes: TypeAlias = tuple[Shape, ...]
Parameters: TypeAlias = Mapping[str, tuple[int, ...]]

FLOAT32_BYTES = 4
INDEX_BYTES = 8
MASK_BYTES = 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an operation reads and writes, in elements until the precision is known.

    ``activations`` are elements per sample, ``weights`` and ``weight_gradients`` elements per
    step, ``other_bytes`` bytes per sample whose width no precision changes (indices, masks).
    """

    activations: Number = 0
    weights: Number = 0
    weight_gradients: Number = 0
    other_bytes: Number = 0

    def size(self, precision: Precision) -> Affine:
        """Bytes moved, as a function of the batch."""
        return Affine(
            self.weights * precision.operand_bytes
            + self.weight_gradients * precision.gradient_bytes,
            self.activations * precision.activation_bytes + self.other_bytes,
        )

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.activations + other.activations,
            self.weights + other.weights,
            self.weight_gradients + other.weight_gradients,
            self.other_bytes + other.other_bytes,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What an operation keeps for its backward pass.

    ``inputs`` are positions of inputs and ``output`` the result, kept whole; ``elements`` are
    further values per sample, ``other_bytes`` bytes per sample of fixed width (indices, masks,
    statistics of a token), ``step_bytes`` bytes per step (statistics of a batch).
    """

    inputs: tuple[int, ...] = ()
    output: bool = False
    elements: Number = 0
    other_bytes: Number = 0
    step_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one operation on one sample: matrix products, traffic, and what is kept.

    ``weight_gradient_traffic`` and ``kept_for_weights`` come on top of ``backward_traffic`` and
    ``kept``: what only the gradient of the weights moves and keeps.
    """

    forward: tuple[Gemm, ...] = ()
    weight_gradient: tuple[Gemm, ...] = ()
    input_gradient: tuple[Gemm, ...] = ()
    forward_traffic: Traffic = Traffic()
    backward_traffic: Traffic = Traffic()
    kept: Kept = Kept()
    weight_gradient_traffic: Traffic = Traffic()
    kept_for_weights: Kept = Kept()

    def without_weight_gradient(self) -> "Work":
        """The work where the weights are frozen: gradients pass through to the inputs only."""
        return replace(
            self,
            weight_gradient=(),
            backward_traffic=replace(self.backward_traffic, weight_gradients=0),
            weight_gradient_traffic=Traffic(),
            kept_for_weights=Kept(),
        )


class Op(ABC):
    """An operation of a layer graph.

    A subclass is made a frozen dataclass by `operation`; its fields are its JSON form. Shapes are
    those of one sample; their dimensions may be arrays, so subclasses use arithmetic and no
    comparisons on them except through the helpers below. Errors name what is wrong with the
    shapes; the graph adds the node.
    """

    kind: ClassVar[str]
    least_inputs: ClassVar[int] = 1
    most_inputs: ClassVar[int | None] = 1
    holds_gradient_sums: ClassVar[bool] = False
    """Whether its work already has the sums of gradients where several nodes read its result."""

    def output(self, inputs: Shapes) -> Shape:
        """Shape of the result: that of the input unless a subclass says otherwise."""
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        """Shape of each trainable tensor by name, as PyTorch stores it."""
        return {}

    def frozen_parameters(self, inputs: Shapes) -> Parameters:
        """Shape of each tensor that is held and never trained, whatever the node says."""
        return {}

    def gradient_elements(self, inputs: Shapes) -> Affine:
        """Numbers of parameter gradient that workers exchange, as a function of the batch."""
        return Affine(count_parameters(self.parameters(inputs)), 0)

    @abstractmethod
    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work per sample; without input gradients where nothing before it is trained."""

    @property
    def cost_kind(self) -> str:
        """The kind of operation whose efficiency it has; its own kind but for recorded ones."""
        return self.kind

    @property
    def is_view(self) -> bool:
        """Whether the result is the first input's memory seen otherwise."""
        return False


OPS: dict[str, type[Op]] = {}
"""Every operation by its kind."""

AnyOp = TypeVar("AnyOp", bound=Op)


@dataclass_transform(frozen_default=True)
def operation(
    kind: str, inputs: int | tuple[int, int | None] | None = None
) -> Callable[[type[AnyOp]], type[AnyOp]]:
    """Make a class an operation: a frozen dataclass known under ``kind``, of which there is one.

    ``inputs`` is how many it reads, or the least and most (None: any number); else as its base.
    """

    def made(cls: type[AnyOp]) -> type[AnyOp]:
        if kind in OPS:
            raise ValueError(f"operation '{kind}' is already registered by {OPS[kind]}")
        cls.kind = kind
        if inputs is not None:
            span = inputs if isinstance(inputs, tuple) else (inputs, inputs)
            cls.least_inputs, cls.most_inputs = span
        frozen = dataclass(frozen=True, slots=True)(cls)
        OPS[kind] = frozen
        return frozen

    return made


def elements(shape: Shape) -> Number:
    """Number of elements of one sample."""
    count: Number = 1
    for dimension in shape:
        count = count * dimension
    return count


def fixed_dimension(shape: Shape, axis: int) -> int:
    """A dimension that parameters depend on, and that therefore may not vary in a sweep."""
    if not -len(shape) <= axis < len(shape):
        raise InputError(f"the input {describe(shape)} has no dimension {axis}")
    size = shape[axis]
    if isinstance(size, np.ndarray):
        raise InputError("the number of weights would depend on the sequence")
    return int(size)


def differs(a: Number, b: Number) -> bool:
    """Whether two dimensions are unequal anywhere."""
    return bool(np.any(np.not_equal(a, b)))


def exceeds(a: Number, b: Number) -> bool:
    """Whether the first dimension is larger than the second anywhere."""
    return bool(np.any(np.greater(a, b)))


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal, arrays compared element by element."""
    return len(a) == len(b) and not any(differs(x, y) for x, y in zip(a, b, strict=True))


def describe(shape: Shape) -> str:
    """``3x224x224``; an array shows as its range."""
    return "x".join(_describe_dimension(size) for size in shape) or "scalar"


def require_rank(shape: Shape, least: int, what: str) -> None:
    """Refuse an input of fewer dimensions than the operation works on."""
    if len(shape) < least:
        raise InputError(
            f"needs {what}, got {describe(shape)}", f"give it an input of {least} dimensions"
        )


def require_positive(**fields: int | float | tuple[int, ...]) -> None:
    """Refuse fields of an operation that are not above zero."""
    for name, value in fields.items():
        values = value if isinstance(value, tuple) else (value,)
        if not values or any(not math.isfinite(v) or v <= 0 for v in values):
            raise InputError(f"{name} must be above zero, not {value}")


def count_parameters(parameters: Parameters) -> int:
    """Number of trainable elements."""
    return sum(math.prod(shape) for shape in parameters.values())


def _describe_dimension(size: Number) -> str:
    if isinstance(size, np.ndarray):
        return f"[{size.min():.0f}..{size.max():.0f}]"
    return str(size)
