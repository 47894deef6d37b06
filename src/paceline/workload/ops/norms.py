"""Normalisation layers: memory-bound, they read their input twice."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload.cost import Number, Shape
from paceline.workload.ops.base import Op, Parameters, Shapes, count_parameters, operation
from paceline.workload.ops.dimensions import (
    describe,
    elements,
    fixed_dimension,
    require_positive,
    require_rank,
)
from paceline.workload.ops.work import FLOAT32_BYTES, Kept, Traffic, Work

# Forward: read x for the statistics, read x again, write y. Backward: two reductions over x and the
# gradient precede the result, so both are read twice and one is written.
_FORWARD_PASSES = 3
_BACKWARD_PASSES = 5


def _norm_work(size: Number, weights: int, kept: Kept) -> Work:
    return Work(
        forward_traffic=Traffic(_FORWARD_PASSES * size, weights=weights),
        backward_traffic=Traffic(
            _BACKWARD_PASSES * size, weights=weights, weight_gradients=weights
        ),
        kept=kept,
    )


@dataclass(frozen=True, slots=True)
class _OfChannels(Op):
    def output(self, inputs: Shapes) -> Shape:
        require_rank(inputs[0], 1, "channels in the first dimension")
        return inputs[0]

    def parameters(self, inputs: Shapes) -> Parameters:
        """Scale and shift of each channel; running statistics are not trained."""
        channels = fixed_dimension(inputs[0], 0)
        return {"weight": (channels,), "bias": (channels,)}


@dataclass(frozen=True, slots=True)
class _OfFeatures(Op):
    def output(self, inputs: Shapes) -> Shape:
        require_rank(inputs[0], 1, "features in the last dimension")
        return inputs[0]


@operation("batch_norm")
class BatchNorm(_OfChannels):
    """Normalises each channel over the batch and its positions, with scale and shift."""

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input, and mean and inverse deviation of each channel in 32 bits."""
        channels = fixed_dimension(inputs[0], 0)
        kept = Kept(inputs=(0,), step_bytes=2 * channels * FLOAT32_BYTES)
        return _norm_work(elements(inputs[0]), 2 * channels, kept)


@operation("frozen_batch_norm")
class FrozenBatchNorm(_OfChannels):
    """Scales and shifts each channel by constants from pre-training; has no trained weights."""

    def parameters(self, inputs: Shapes) -> Parameters:
        return {}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """One pass forward, one backward; saves nothing."""
        moved = Traffic(2 * elements(inputs[0]))
        return Work(forward_traffic=moved, backward_traffic=moved)


@operation("group_norm")
class GroupNorm(_OfChannels):
    """Normalises each of ``groups`` groups of channels within a sample."""

    groups: int

    def __post_init__(self) -> None:
        require_positive(groups=self.groups)

    def output(self, inputs: Shapes) -> Shape:
        require_rank(inputs[0], 1, "channels in the first dimension")
        channels = fixed_dimension(inputs[0], 0)
        if channels % self.groups:
            raise InputError(f"{channels} channels are not divisible by {self.groups} groups")
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input, and mean and inverse deviation of each group."""
        kept = Kept(inputs=(0,), other_bytes=2 * self.groups * FLOAT32_BYTES)
        weights = count_parameters(self.parameters(inputs))
        return _norm_work(elements(inputs[0]), weights, kept)


@operation("layer_norm")
class LayerNorm(_OfFeatures):
    """Normalises the last dimension of each row, with scale and, if ``bias``, shift."""

    bias: bool = True

    def parameters(self, inputs: Shapes) -> Parameters:
        width = fixed_dimension(inputs[0], -1)
        return {"weight": (width,)} | ({"bias": (width,)} if self.bias else {})

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input, and mean and inverse deviation of each row."""
        rows = elements(inputs[0][:-1])
        kept = Kept(inputs=(0,), other_bytes=2 * rows * FLOAT32_BYTES)
        weights = count_parameters(self.parameters(inputs))
        return _norm_work(elements(inputs[0]), weights, kept)


@operation("rms_norm")
class RmsNorm(_OfFeatures):
    """Divides each row by its root mean square, then scales it."""

    def parameters(self, inputs: Shapes) -> Parameters:
        return {"weight": (fixed_dimension(inputs[0], -1),)}

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input and the inverse root mean square of each row."""
        rows = elements(inputs[0][:-1])
        kept = Kept(inputs=(0,), other_bytes=rows * FLOAT32_BYTES)
        return _norm_work(elements(inputs[0]), fixed_dimension(inputs[0], -1), kept)


@operation("local_response_norm")
class LocalResponseNorm(Op):
    """Divides each value by the energy of ``size`` neighbouring channels (AlexNet, GoogLeNet)."""

    size: int

    def __post_init__(self) -> None:
        require_positive(size=self.size)

    def output(self, inputs: Shapes) -> Shape:
        if len(inputs[0]) < 2:
            raise InputError(f"needs channels and positions (got {describe(inputs[0])})")
        return inputs[0]

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """Saves the input and the scale of each value."""
        size = elements(inputs[0])
        return _norm_work(size, 0, Kept(inputs=(0,), elements=size))
