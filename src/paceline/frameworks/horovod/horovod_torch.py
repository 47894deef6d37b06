"""Trains one job with PyTorch under Horovod.

    python horovod_torch.py JOB.json EVENTS.jsonl

Started once per rank; Horovod, PyTorch and the standard library only.
"""

import horovod
import horovod.torch as hvd
import torch
from horovod_rendezvous import join_ranks
from stepping import run_worker
from torch_devices import versions
from torch_training import TorchTraining


class HorovodTraining(TorchTraining):
    """A rank whose gradients Horovod averages during the backward pass."""

    whole_gradients = False

    def join_ranks(self) -> None:
        """Join Horovod's rendezvous if there are several ranks."""
        self.rendezvous = join_ranks(self.rank, self.world)
        hvd.init()
        if hvd.size() != self.world:
            raise RuntimeError(f"Horovod found {hvd.size()} ranks, expected {self.world}")

    def make_optimiser(self) -> torch.optim.Optimizer:
        """The job's optimiser, with Horovod's hooks if ranks synchronise.

        An emulated network computes no gradients; the hooks read existing buffers.
        """
        plain = super().make_optimiser()
        if not self.synchronises:
            return plain
        if self.emulation is not None:
            for own in self.network.parameters():
                own.grad = torch.zeros_like(own) if own.requires_grad else None
        return hvd.DistributedOptimizer(plain, named_parameters=self.network.named_parameters())

    def barrier(self) -> None:
        if self.world > 1:
            hvd.allreduce(torch.zeros(1), name="barrier")

    def collective(self, buffer: torch.Tensor) -> None:
        """All-reduce of a buffer of the gradients' size."""
        hvd.allreduce_(buffer, name="buffer")

    def parts(self) -> dict:
        """Parts run on a second network: Horovod's hooks stay on the first."""
        if self.synchronises:
            self.network = self.build_network().to(self.device)
        return super().parts()

    def close(self) -> None:
        if self.world > 1:
            hvd.shutdown()


if __name__ == "__main__":
    run_worker(HorovodTraining, versions, horovod=horovod.__version__)
