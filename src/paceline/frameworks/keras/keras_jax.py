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
from keras_model import build, inputs_of
from layer_graph import loss_program
from stepping import run_worker


def keras_network(job: Mapping[str, Any]) -> tuple[list, list, Callable[..., Any]]:
    """Trained weights, other state, and the loss as a function of both and a batch."""
    model, loss = build(job), loss_program(job["graph"])
    losses = jax_sharded.in_precision(job, operations({}, None))

    def loss_of(weights: list, running: list, batch: Mapping[str, Any]) -> tuple[Any, list]:
        read = inputs_of(model, batch)
        made, updated = model.stateless_call(weights, running, read, training=True)
        return loss.run(losses, {}, {**batch, **made}), updated

    weights = [np.asarray(weight.value) for weight in model.trainable_variables]
    running = [np.asarray(value.value) for value in model.non_trainable_variables]
    return weights, running, loss_of


class KerasTraining(jax_sharded.ShardedTraining):
    """The sharded training of a Keras model."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        super().__init__(job, rank, world, keras_network)


if __name__ == "__main__":
    run_worker(KerasTraining, jax_sharded.versions, keras=keras.__version__)
