"""Trains one job with a Keras model on TensorFlow, under MultiWorkerMirroredStrategy.

    python keras_tensorflow.py JOB.json EVENTS.jsonl

Keras's own `fit` cannot yet train under that strategy with several processes, so the loop is
TensorFlow's, around the Keras model.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras_model import build, inputs_of
from layer_graph import loss_program
from stepping import run_worker
from tensorflow_layers import OPERATIONS
from tensorflow_mirrored import MirroredTraining
from tensorflow_training import Batch, in_precision, versions


class KerasTraining(MirroredTraining):
    """The mirrored training of a Keras model."""

    def build_network(self) -> tuple[list[tf.Variable], Callable[[Batch], Any]]:
        """Variables of the Keras model, and its loss as a function."""
        model, loss = build(self.job), loss_program(self.job["graph"])
        losses = in_precision(self.job, OPERATIONS)

        def loss_of(batch: Batch) -> Any:
            made = model(inputs_of(model, batch), training=True)
            return loss.run(losses, {}, {**batch, **made})

        return [weight.value for weight in model.trainable_weights], loss_of


if __name__ == "__main__":
    run_worker(KerasTraining, versions, keras=keras.__version__)
