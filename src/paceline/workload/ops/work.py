"""Work of an operation per sample: GEMMs, memory traffic, saved tensors."""

from dataclasses import dataclass, replace

from paceline.workload.cost import Affine, Gemm, Number
from paceline.workload.precision import Precision

FLOAT32_BYTES = 4
INDEX_BYTES = 8
MASK_BYTES = 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """Memory traffic in elements, converted to bytes for a precision.

    ``activations`` are elements per sample, ``weights`` and ``weight_gradients`` elements per
    step, ``other_bytes`` bytes per sample of fixed width (indices, masks).
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
    """Tensors saved for backward.

    ``inputs`` are positions of saved inputs, ``output`` is the result; ``elements`` are
    further elements per sample, ``operands`` those of them that are inputs of GEMMs,
    ``other_bytes`` bytes per sample of fixed width (indices, masks, statistics of a token),
    ``step_bytes`` bytes per step (statistics of a batch).
    """

    inputs: tuple[int, ...] = ()
    output: bool = False
    elements: Number = 0
    other_bytes: Number = 0
    step_bytes: int = 0
    operands: Number = 0

    def own_bytes(self, precision: Precision) -> Number:
        """Bytes per sample besides inputs and output."""
        saved = precision.saved_operand_bytes
        width = precision.activation_bytes if saved is None else saved
        plain = (self.elements - self.operands) * precision.activation_bytes
        return plain + self.operands * width + self.other_bytes


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one operation per sample: GEMMs, traffic and saved tensors.

    ``weight_gradient_traffic`` and ``kept_for_weights`` are additional to ``backward_traffic`` and
    ``kept``: frozen weights need neither.
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
        """Work with frozen weights: only the input gradient is computed."""
        return replace(
            self,
            weight_gradient=(),
            backward_traffic=replace(self.backward_traffic, weight_gradients=0),
            weight_gradient_traffic=Traffic(),
            kept_for_weights=Kept(),
        )
