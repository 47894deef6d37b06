"""Trains one job with PyTorch under Horovod.

    python horovod_torch.py JOB.json EVENTS.jsonl

Started once per rank; Horovod, PyTorch and the standard library only.
"""

import horovod
import horovod.torch as hvd
import torch
from horovod_meeting import join_ranks
from stepping import run_worker
from torch_devices import versions
from torch_training import TorchTraining


class HorovodTraining(TorchTraining):
    """A rank whose gradients Horovod averages as the backward pass makes them."""

    whole_gradients = False

    def join_ranks(self) -> None:
        """Meet through Horovod's rendezvous, at every world size above one."""
        self.rendezvous = join_ranks(self.rank, self.world)
        hvd.init()
        if hvd.size() != self.world:
            raise RuntimeError(f"Horovod found {hvd.size()} ranks, expected {self.world}")

    def make_optimiser(self) -> torch.optim.Optimizer:
        """The job's optimiser; Horovod's hooks are in it where ranks synchronise.

        They find the gradients of an emulated network, which makes none, where they are sent from.
        """
        plain = super().make_optimiser()
        if not self.synchronises:
            return plain
        if self.emulation is not None:
            for own in self.network.parameters():
                own.grad = torch.zeros_like(own) if own.requires_grad else None
        return hvd.DistributedOptimizer(plain, named_parameters=self.network.named_parameters())

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.world > 1:
            hvd.allreduce(torch.zeros(1), name="barrier")

    def collective(self, buffer: torch.Tensor) -> None:
        """The mean over ranks of a buffer of the gradients' size."""
        hvd.allreduce_(buffer, name="buffer")

    def parts(self) -> dict:
        """Passes run on a second network, since Horovod's hooks stay on the first."""
        if self.synchronises:
            self.network = self.build_network().to(self.device)
        return super().parts()

    def close(self) -> None:
        """Shut down communication."""
        if self.world > 1:
            hvd.shutdown()


if __name__ == "__main__":
    run_worker(HorovodTraining, versions, horovod=horovod.__version__)
