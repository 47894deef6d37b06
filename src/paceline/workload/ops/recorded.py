"""Operations of captured models, known by their recorded work."""

from dataclasses import dataclass
from typing import ClassVar

from paceline.workload.cost import Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, operation
from paceline.workload.ops.work import Work


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """A parameter tensor of a captured module, by its name there."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnknownOperation:
    """An operation with unknown FLOP, whose cost is estimated from its bytes only.

    ``bytes_share`` is its share of all bytes that the model moves in a training step.
    """

    name: str
    bytes_share: float


@operation("recorded", inputs=(0, None))
class Recorded(Op):
    """Recorded work of a part of a captured module, per sample and per step.

    ``behaves_like`` is the kind of its dominant operation; ``shape`` is its result for one
    sample. The work includes the gradients that were computed in the recorded step.
    """

    holds_gradient_sums: ClassVar[bool] = True

    behaves_like: str
    shape: tuple[int, ...]
    tensors: tuple[RecordedTensor, ...]
    recorded_work: Work
    frozen_tensors: tuple[RecordedTensor, ...] = ()
    unknown: tuple[UnknownOperation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cost_kind(self) -> str:
        """Kind of the dominant operation."""
        return self.behaves_like

    def output(self, inputs: Shapes) -> Shape:
        return self.shape

    def parameters(self, inputs: Shapes) -> Parameters:
        return {tensor.name: tensor.shape for tensor in self.tensors}

    def frozen_parameters(self, inputs: Shapes) -> Parameters:
        return {tensor.name: tensor.shape for tensor in self.frozen_tensors}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        return self.recorded_work
