"""Trains one job with TensorFlow under Horovod.

    python horovod_tensorflow.py JOB.json EVENTS.jsonl

Started once per rank; Horovod, TensorFlow, NumPy and the standard library only.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import horovod
import horovod.tensorflow as hvd
import tensorflow as tf
from horovod_rendezvous import join_ranks
from stepping import run_worker
from tensorflow_training import TensorflowTraining, configure, versions


class HorovodTraining(TensorflowTraining):
    """A rank whose gradients Horovod averages."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        configure(job["threads"])
        if world > 1:
            self.rendezvous = join_ranks(rank, world)
            hvd.init()
        super().__init__(job, rank, world)

    def mean_of_ranks(self, gradients: list) -> list:
        """Mean of each gradient over ranks; Horovod fuses messages."""
        return [hvd.allreduce(gradient, op=hvd.Average) for gradient in gradients]

    def barrier(self) -> None:
        if self.world > 1:
            hvd.allreduce(tf.zeros(1), name="barrier")

    def close(self) -> None:
        if self.world > 1:
            hvd.shutdown()


if __name__ == "__main__":
    run_worker(HorovodTraining, versions, horovod=horovod.__version__)
