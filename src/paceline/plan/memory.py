"""Memory of a plan by part. Every equation takes numbers and NumPy arrays alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.plan.choices import OptimiserState
from paceline.workload.precision import Precision

Numbers = float | NDArray[np.float64]

_STATE_BYTES = {
    "sgd": 0,
    "momentum": 4,
    "sgd_momentum": 4,
    "adagrad": 4,
    "rmsprop": 4,
    "adam": 8,
    "adamw": 8,
    "lamb": 8,
}
_MASTER_BYTES = 4
_SCALED_BLOCK = 256
"""Numbers of 8 bits that share a scale of 32 bits (bitsandbytes, torchao)."""
_STATE_WIDTHS = {
    OptimiserState.FP32: 1.0,
    OptimiserState.BF16: 0.5,
    OptimiserState.EIGHT_BIT: 0.25 + 1.0 / _SCALED_BLOCK,
}
"""Bytes of momenta over what they take in 32 bits."""


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest device, by what they hold."""

    weights_bytes: Numbers
    gradients_bytes: Numbers
    optimiser_bytes: Numbers
    activations_bytes: Numbers
    buffers_bytes: Numbers

    @property
    def total_bytes(self) -> Numbers:
        """All parts together."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimiser_bytes
            + self.activations_bytes
            + self.buffers_bytes
        )

    def parts(self) -> dict[str, Numbers]:
        """Bytes by name of part, in the order in which people think of them."""
        return {
            "weights": self.weights_bytes,
            "gradients": self.gradients_bytes,
            "optimiser": self.optimiser_bytes,
            "activations": self.activations_bytes,
            "buffers": self.buffers_bytes,
        }


def optimiser_bytes_per_parameter(
    optimiser: str, precision: Precision, state: OptimiserState = OptimiserState.FP32
) -> float:
    """State of one parameter: momenta as ``state`` says, a 32-bit master copy of short weights.

    With 16-bit weights and gradients Adam keeps 2 + 2 + 12 = 16 bytes per parameter; with momenta
    in bf16 12, in 8 bits about 10.
    """
    key = optimiser.strip().lower().replace("-", "_")
    hint = f"one of {', '.join(_STATE_BYTES)}"
    master = _MASTER_BYTES if precision.weight_bytes < _MASTER_BYTES else 0
    momenta = look_up("optimiser", key, _STATE_BYTES, hint)
    if momenta == 0 and state is not OptimiserState.FP32:
        raise InputError(
            f"{optimiser} keeps no momenta that {state} could shorten",
            "leave --optimiser-state out, or take another --optimiser, e.g. adam",
        )
    return momenta * _STATE_WIDTHS[state] + master


def sharded_bytes(size: Numbers, stage: int, zero: Numbers, shards: Numbers) -> Numbers:
    """What one device holds of something that sharding of ``stage`` or above shares out."""
    return size / np.where(np.asarray(zero) >= stage, shards, 1)


def micro_batches_held(
    stage: Numbers, pp: Numbers, micro_batches: Numbers, interleave: Numbers, gpipe: bool
) -> Numbers:
    """Micro-batches whose activations a stage holds at its fullest, in units of whole stages.

    GPipe holds all of them; 1F1B as many as there are stages from here on. Interleaving counts
    chunks, of which there are ``interleave`` per stage.
    """
    if gpipe:
        return micro_batches
    plain = np.minimum(micro_batches, pp - stage)
    chunks = 2 * (pp - stage - 1) + (interleave - 1) * pp + 1
    interleaved = np.minimum(micro_batches * interleave, chunks) / interleave
    return np.where(np.asarray(interleave) > 1, interleaved, plain)


def buffer_bytes(
    gradient_bytes: Numbers,
    bucket_bytes: Numbers,
    largest_block_bytes: Numbers,
    zero: Numbers,
    *,
    copies_gradients: bool = False,
) -> Numbers:
    """Communication buffers.

    Where gradients are copied into what is sent (``copies_gradients``), all of them are there
    twice until sharding lets go of them (stage 2); else one bucket in flight is all that comes on
    top. With sharded weights two blocks are held whole, one in use and one on its way.
    """
    bucket = np.minimum(gradient_bytes, bucket_bytes)
    if copies_gradients:
        bucket = np.where(np.asarray(zero) >= 2, bucket, gradient_bytes)
    return np.where(np.asarray(zero) >= 3, 2 * largest_block_bytes, bucket)
