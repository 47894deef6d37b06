"""Memory of a plan by part. All functions accept numbers and NumPy arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.predictor.plan.plan_choices import OptimizerState
from paceline.workload.precision import Precision

Numbers = float | NDArray[np.float64]

OPTIMIZERS = {
    "sgd": 0,
    "momentum": 4,
    "sgd_momentum": 4,
    "adagrad": 4,
    "rmsprop": 4,
    "adam": 8,
    "adamw": 8,
    "lamb": 8,
}
"""Bytes of momenta per parameter."""
_MASTER_BYTES = 4
_SCALED_BLOCK = 256
"""8-bit values per 32-bit scale (bitsandbytes, torchao)."""
_STATE_WIDTHS = {
    OptimizerState.FP32: 1.0,
    OptimizerState.BF16: 0.5,
    OptimizerState.EIGHT_BIT: 0.25 + 1.0 / _SCALED_BLOCK,
}
"""Size of optimizer state relative to fp32."""


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest device, by part."""

    weights_bytes: Numbers
    gradients_bytes: Numbers
    optimizer_bytes: Numbers
    activations_bytes: Numbers
    buffers_bytes: Numbers

    @property
    def total_bytes(self) -> Numbers:
        """All parts together."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.buffers_bytes
        )

    def parts(self) -> dict[str, Numbers]:
        """Bytes by name of part."""
        return {
            "weights": self.weights_bytes,
            "gradients": self.gradients_bytes,
            "optimizer": self.optimizer_bytes,
            "activations": self.activations_bytes,
            "buffers": self.buffers_bytes,
        }


def optimizer_bytes_per_parameter(
    optimizer: str, precision: Precision, state: OptimizerState = OptimizerState.FP32
) -> float:
    """Optimizer state of one parameter: momenta in ``state``, fp32 master copy of short weights.

    With 16-bit weights and gradients Adam keeps 2 + 2 + 12 = 16 bytes per parameter; with momenta
    in bf16 12, in 8 bits about 10.
    """
    key = optimizer.strip().lower().replace("-", "_")
    hint = f"one of {', '.join(OPTIMIZERS)}"
    master = _MASTER_BYTES if precision.weight_bytes < _MASTER_BYTES else 0
    momenta = look_up("optimizer", key, OPTIMIZERS, hint)
    if momenta == 0 and state is not OptimizerState.FP32:
        raise InputError(
            f"{optimizer} has no state to store as {state}",
            "omit --optimizer-state, or use another --optimizer, e.g. adam",
        )
    return momenta * _STATE_WIDTHS[state] + master


def sharded_bytes(size: Numbers, stage: int, zero: Numbers, shards: Numbers) -> Numbers:
    """Bytes per device of data that ZeRO stage ``stage`` or above shards."""
    return size / np.where(np.asarray(zero) >= stage, shards, 1)


def micro_batches_held(
    stage: Numbers, pp: Numbers, micro_batches: Numbers, interleave: Numbers, gpipe: bool
) -> Numbers:
    """Micro-batches in flight on a stage at its peak, in units of whole stages.

    GPipe holds all of them, 1F1B one per stage from this one to the last. Interleaving counts
    chunks, ``interleave`` per stage (Narayanan et al. 2021).
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

    If gradients are copied into buckets (``copies_gradients``), all of them exist twice below
    ZeRO stage 2; otherwise one bucket in flight is added. With sharded weights (stage 3) two whole
    blocks are held, one in use and one prefetched.
    """
    bucket = np.minimum(gradient_bytes, bucket_bytes)
    if copies_gradients:
        bucket = np.where(np.asarray(zero) >= 2, bucket, gradient_bytes)
    return np.where(np.asarray(zero) >= 3, 2 * largest_block_bytes, bucket)
