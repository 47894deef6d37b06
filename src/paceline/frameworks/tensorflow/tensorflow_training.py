"""A training step in TensorFlow, compiled once; subclasses average the gradients.

For phases by difference the parts of a step are compiled as well.
"""

import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
import tensorflow as tf
from layer_graph import Operation, mixed_precision, scores_program, whole_program
from layer_settings import ADAM_BETAS, ADAM_EPSILON
from numpy_data import (
    CHANNELS_LAST,
    ArrayEpochs,
    batches,
    channels_last,
    initial_statistics,
    initial_weights,
    loss_and_correct,
)
from stepping import Training
from tensorflow_counting import product_flops
from tensorflow_layers import EVALUATION, OPERATIONS

Batch = Mapping[str, Any]
"""Inputs by name, labels included."""


def configure(threads: int) -> None:
    """Limit TensorFlow's threads; it needs two inter-op threads, since one may wait."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, threads))
    visible = tf.config.list_physical_devices("GPU")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    tf.config.set_visible_devices(visible[local : local + 1], "GPU")


def versions() -> Mapping[str, Any]:
    """Return the versions that affect the speed of this rank."""
    return {"framework": f"tensorflow {tf.__version__}", "numpy": np.__version__}


def in_precision(job: Mapping[str, Any], functions: Mapping[str, Operation]) -> Any:
    """``functions`` of operations in the precision of the job."""
    if job["precision"] == "fp32":
        return functions
    return mixed_precision(functions, partial(as_type, tf.bfloat16), partial(as_type, tf.float32))


def as_type(dtype: tf.DType, value: Any) -> Any:
    """``value`` in a floating-point type; other tensors as they are."""
    return tf.cast(value, dtype) if value.dtype.is_floating else value


class TensorflowTraining(Training):
    """One rank's network, data and compiled step; a single rank trains without communication."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        if job["device"] == "cuda" and not tf.config.get_visible_devices("GPU"):
            raise RuntimeError("TensorFlow found no GPU")
        self.job, self.world = job, world
        self.synchronises = world > 1 and job["synchronise"]
        self.device = "/GPU:0" if job["device"] == "cuda" else "/CPU:0"
        with tf.device(self.device):
            self.weights, self.loss_of = self.build_network()
            self.moments = self.initial_moments()
            self.epochs: Any = ArrayEpochs(job, rank, world) if job.get("epochs") else None
            made = [] if self.epochs else batches(job, rank, world)
            self.data = [self.as_constants(batch) for batch in made]
        self.parameters = sum(int(np.prod(weight.shape)) for weight in self.weights)
        self.compiled = {"step": self.compile(self.whole_step)}

    def build_network(self) -> tuple[list[tf.Variable], Callable[[Batch], Any]]:
        """Trained variables, and the loss as a function of a batch."""
        graph = self.job["graph"]
        trained = {
            name: tf.Variable(value, name=name.replace(".", "_"))
            for name, value in initial_weights(graph, self.job["seed"], CHANNELS_LAST).items()
        }
        running = {
            name: tf.Variable(value, trainable=False)
            for name, value in initial_statistics(graph).items()
        }
        program, parameters = whole_program(graph), {**trained, **running}
        self.all_parameters, functions = parameters, in_precision(self.job, OPERATIONS)

        def loss_of(batch: Batch) -> Any:
            return program.run(functions, parameters, batch)

        return list(trained.values()), loss_of

    def as_constants(self, batch: Batch) -> Batch:
        return {name: tf.constant(channels_last(value)) for name, value in batch.items()}

    def begin_epoch(self, epoch: int) -> None:
        """Convert the batches of an epoch, in order."""
        with tf.device(self.device):
            shares = self.epochs.shares(epoch)
            self.data = [
                self.as_constants(self.epochs.batch_of("train", share)) for share in shares
            ]

    def evaluate(self) -> tuple[int, float, int]:
        """Evaluate this rank's share of the test samples, with its running statistics."""
        samples, total, correct = 0, 0.0, 0
        for indices, counted in self.epochs.test_shares():
            batch = self.epochs.batch_of("test", indices)
            with tf.device(self.device):
                scores = self.scores(self.as_constants(batch)).numpy()
            loss, right = loss_and_correct(scores[:counted], batch[self.epochs.label][:counted])
            samples, total, correct = samples + counted, total + loss, correct + right
        return samples, total, correct

    @cached_property
    def scores(self) -> Any:
        """Output of the network for a batch, as one graph."""
        program = scores_program(self.job["graph"])
        functions = in_precision(self.job, EVALUATION)
        return tf.function(
            lambda batch: as_type(tf.float32, program.run(functions, self.all_parameters, batch))
        )

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile ``function`` of a batch as one graph; subclasses run it in a strategy."""
        return tf.function(function)

    def mean_of_ranks(self, gradients: list) -> list:
        return gradients

    def gradients(self, batch: Batch) -> tuple[Any, list]:
        """Loss and gradients of this rank's samples; dense ones for embeddings."""
        with tf.GradientTape() as tape:
            loss = self.loss_of(batch)
        return loss, [
            tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, self.weights)
        ]

    def initial_moments(self) -> list[list[tf.Variable]]:
        """State of the optimiser: velocities of SGD, or both moments of Adam."""
        name = self.job["optimiser"]["name"]
        if name not in ("sgd", "adam", "adamw"):
            raise ValueError(f"unknown optimiser '{name}'; choose sgd, adam or adamw")
        self.steps = tf.Variable(0.0, trainable=False)
        return [
            [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in self.weights]
            for _ in range(1 if name == "sgd" else 2)
        ]

    def update(self, gradients: list) -> None:
        """SGD with momentum, Adam or AdamW, and weight decay, as PyTorch defines them."""
        settings = self.job["optimiser"]
        rate, decay = settings["learning_rate"], settings["weight_decay"]
        decoupled = settings["name"] == "adamw"
        if settings["name"] != "sgd":
            steps = self.steps.assign_add(1.0)
            powers = [beta**steps for beta in ADAM_BETAS]
        for weight, gradient, *moments in zip(self.weights, gradients, *self.moments, strict=True):
            if decay and decoupled:
                weight.assign_sub(rate * decay * weight)
            shared = {
                "var": weight.handle,
                "lr": rate,
                "grad": gradient + decay * weight if decay and not decoupled else gradient,
            }
            if settings["name"] == "sgd":
                tf.raw_ops.ResourceApplyMomentum(
                    accum=moments[0].handle, momentum=settings["momentum"], **shared
                )
            else:
                tf.raw_ops.ResourceApplyAdam(
                    m=moments[0].handle,
                    v=moments[1].handle,
                    beta1_power=powers[0],
                    beta2_power=powers[1],
                    beta1=ADAM_BETAS[0],
                    beta2=ADAM_BETAS[1],
                    epsilon=ADAM_EPSILON,
                    **shared,
                )

    def whole_step(self, batch: Batch) -> Any:
        loss, gradients = self.gradients(batch)
        self.update(self.mean_of_ranks(gradients) if self.synchronises else gradients)
        return loss

    def local_step(self, batch: Batch) -> Any:
        loss, gradients = self.gradients(batch)
        self.update(gradients)
        return loss

    def collective(self, batch: Batch) -> Any:
        """Mean over ranks of buffers of the gradients' sizes."""
        return self.mean_of_ranks([tf.identity(moment) for moment in self.moments[0]])

    def run(self, name: str, index: int) -> Any:
        """Run a compiled part on the batch of a step."""
        with tf.device(self.device):
            return self.compiled[name](self.data[index % len(self.data)])

    def step(self, index: int) -> Any:
        return self.run("step", index)

    def wait(self, handle: Any) -> None:
        tf.nest.flatten(handle)[0].numpy()
        if self.device != "/CPU:0":
            tf.test.experimental.sync_devices()

    def forward_flops(self) -> "float | None":
        """FLOPs of the convolutions and GEMMs of a forward pass, as counted by TensorFlow."""
        if self.synchronises:
            return None
        return product_flops(tf.function(self.loss_of).get_concrete_function(self.data[0]).graph)

    def parts(self) -> dict[str, Callable[[int], Any]]:
        functions = {
            "forward": self.loss_of,
            "forward_backward": self.gradients,
            "local_step": self.local_step,
        }
        if self.synchronises:
            functions["collective"] = self.collective
        self.compiled |= {name: self.compile(part) for name, part in functions.items()}
        return {name: partial(self.run, name) for name in functions}
