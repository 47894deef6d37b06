"""Trains one job with a Keras model on JAX: one compiled step over all ranks.

python keras_jax.py JOB.json EVENTS.jsonl
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

from collections.abc import Callable, Mapping
from typing import Any

import jax_sharded
import keras
import numpy as np
from jax_layers import operations
from keras_model import build
from stepping import run_worker


def keras_network(job: Mapping[str, Any]) -> tuple[list, list, Callable[..., Any]]:
    """Trained weights, other state, and the loss as a function of both and a batch."""
    model = build(job["graph"], job["seed"])
    cross_entropy = operations({}, None)["cross_entropy"]

    def loss_of(weights: list, running: list, images: Any, labels: Any) -> tuple[Any, list]:
        scores, updated = model.stateless_call(weights, running, images, training=True)
        return cross_entropy({}, [scores, labels], {}), updated

    weights = [np.asarray(weight.value) for weight in model.trainable_variables]
    running = [np.asarray(value.value) for value in model.non_trainable_variables]
    return weights, running, loss_of


class KerasTraining(jax_sharded.ShardedTraining):
    """The sharded training of a Keras model."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        super().__init__(job, rank, world, keras_network)


def keras_versions() -> Mapping[str, Any]:
    """JAX's, and Keras's own."""
    return {**jax_sharded.versions(), "keras": keras.__version__}


if __name__ == "__main__":
    run_worker(KerasTraining, keras_versions)
