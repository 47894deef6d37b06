"""What every operation of a graph must be able to say about itself."""

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

    A subclass is made a frozen dataclass by `operation`; its fields are its JSON form. Shapes are
    those of one sample; their dimensions may be arrays, so subclasses use arithmetic and no
    comparisons on them except through `sizes`. Errors name what is wrong with the
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


def count_parameters(parameters: Parameters) -> int:
    """Number of trainable elements."""
    return sum(math.prod(shape) for shape in parameters.values())
