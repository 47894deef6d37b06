"""Trains one job with MXNet under Horovod.

    python horovod_mxnet.py JOB.json EVENTS.jsonl

Started once per rank; Horovod, MXNet, NumPy and the standard library only. Every rank creates the
same initial weights instead of a broadcast: broadcasting after a first pass aborts both libraries.
"""

from typing import Any

import horovod
import horovod.mxnet as hvd
import mxnet as mx
from horovod_rendezvous import join_ranks
from mxnet_kvstore import KvstoreTraining, versions
from stepping import run_worker


class HorovodTraining(KvstoreTraining):
    """A rank whose gradients Horovod averages."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        if world > 1:
            self.rendezvous = join_ranks(rank, world)
            hvd.init()
        super().__init__(job, rank, world)

    def connect(self) -> None:
        """Return no store: Horovod has connected the ranks."""

    def make_trainer(self, synchronises: bool) -> Any:
        """Horovod's trainer, or MXNet's own for a rank that does not synchronise."""
        if not synchronises:
            return super().make_trainer(synchronises)
        return hvd.DistributedTrainer(self.network.collect_params(), "sgd", self.settings)

    def step(self, index: int) -> Any:
        """Run one optimiser step; Horovod's trainer averages, so the gradient is not divided."""
        loss = self.gradients(index)
        self.trainer.step(1)
        return loss

    def barrier(self) -> None:
        mx.nd.waitall()
        if self.world > 1:
            hvd.allreduce(mx.nd.zeros(1), name="barrier").wait_to_read()

    def close(self) -> None:
        if self.world > 1:
            hvd.shutdown()


if __name__ == "__main__":
    run_worker(HorovodTraining, versions, horovod=horovod.__version__)
