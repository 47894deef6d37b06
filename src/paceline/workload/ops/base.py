"""Base class of the operations of a graph."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypeVar, dataclass_transform

from paceline.workload.cost import Affine, Shape
from paceline.workload.ops.work import Work

Shapes: TypeAlias = tuple[Shape, ...]
Parameters: TypeAlias = Mapping[str, tuple[int, ...]]


class Op(ABC):
    """An operation of a layer graph.

    `operation` makes a subclass a frozen dataclass; its fields are its JSON form. Shapes are those
    of one sample. Their dimensions may be arrays, so subclasses compare them only with the
    functions of `dimensions`. Errors describe the shapes; the graph adds the name of the node.
    """

    kind: ClassVar[str]
    least_inputs: ClassVar[int] = 1
    most_inputs: ClassVar[int | None] = 1
    holds_gradient_sums: ClassVar[bool] = False
    """Whether its work includes the sum of gradients if several nodes read its result."""

    def output(self, inputs: Shapes) -> Shape:
        """Shape of the result; by default that of the input."""
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        """Shape of each trainable tensor by name, as PyTorch stores it."""
        return {}

    def frozen_parameters(self, inputs: Shapes) -> Parameters:
        """Shape of each tensor that is never trained, also in a node that is not frozen."""
        return {}

    def gradient_elements(self, inputs: Shapes) -> Affine:
        """Elements of parameter gradients that workers exchange, as a function of the batch."""
        return Affine(count_parameters(self.parameters(inputs)), 0)

    @abstractmethod
    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Work per sample; without input gradients if no earlier layer is trained."""

    @property
    def cost_kind(self) -> str:
        """Kind of operation for kernel efficiencies; recorded operations name another kind."""
        return self.kind

    @property
    def is_view(self) -> bool:
        """Whether the result shares the memory of the first input."""
        return False


OPS: dict[str, type[Op]] = {}
"""Every operation by its kind."""

AnyOp = TypeVar("AnyOp", bound=Op)


@dataclass_transform(frozen_default=True)
def operation(
    kind: str, inputs: int | tuple[int, int | None] | None = None
) -> Callable[[type[AnyOp]], type[AnyOp]]:
    """Register a class as the operation ``kind`` and make it a frozen dataclass.

    ``inputs`` is the number of inputs, or the minimum and maximum (None for no limit); by default
    that of the base class.
    """

    def register(cls: type[AnyOp]) -> type[AnyOp]:
        if kind in OPS:
            raise ValueError(f"operation '{kind}' is already registered by {OPS[kind]}")
        cls.kind = kind
        if inputs is not None:
            span = inputs if isinstance(inputs, tuple) else (inputs, inputs)
            cls.least_inputs, cls.most_inputs = span
        frozen = dataclass(frozen=True, slots=True)(cls)
        OPS[kind] = frozen
        return frozen

    return register


def count_parameters(parameters: Parameters) -> int:
    return sum(math.prod(shape) for shape in parameters.values())
