"""Trains one job with TensorFlow's MultiWorkerMirroredStrategy, in a custom loop.

    python tensorflow_mirrored.py JOB.json EVENTS.jsonl

Started once per rank; TensorFlow, NumPy and the standard library only. Gradients are averaged by
the strategy's collectives (a ring on CPUs, NCCL on GPUs).
"""

import json
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from rank_exchange import exchange, own_endpoint
from stepping import run_worker
from tensorflow_training import TensorflowTraining, configure, versions


def join_ranks(rank: int, device: str) -> tf.distribute.Strategy:
    """Return the strategy of all ranks, after they exchange their addresses."""
    addresses = exchange(own_endpoint())
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    )
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=kinds.NCCL if device == "cuda" else kinds.RING
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


class MirroredTraining(TensorflowTraining):
    """A replica of the strategy; a single rank, or one that does not synchronise, has none."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        configure(job["threads"])
        self.strategy = join_ranks(rank, job["device"]) if world > 1 else None
        super().__init__(job, rank, world)

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile ``function`` as one graph that the strategy's replica runs."""
        strategy = self.strategy
        if strategy is None:
            return tf.function(function)
        return tf.function(lambda *batch: strategy.run(function, args=batch))

    def mean_of_ranks(self, gradients: list) -> list:
        """Mean over ranks in one packed collective."""
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)

    def barrier(self) -> None:
        if self.strategy is not None:
            self.strategy.reduce(
                tf.distribute.ReduceOp.SUM, self.strategy.run(lambda: tf.ones(())), axis=None
            )


if __name__ == "__main__":
    run_worker(MirroredTraining, versions)
