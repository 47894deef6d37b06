"""Trains one job with PyTorch's pipeline: each rank has some of the layers (1F1B schedule).

    python torch_pp.py JOB.json EVENTS.jsonl

The global batch of all ranks goes through the stages in micro-batches; its gradients are those of
the mean loss. Statistics of a batch (`batch_norm`) are those of a micro-batch.
"""

import math
from typing import Any

import torch
import torch.distributed as dist
from stepping import run_worker
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch_devices import versions
from torch_stages import cut
from torch_training import TorchTraining, global_batches

MICRO_BATCHES_PER_STAGE = 2


class PipelineTraining(TorchTraining):
    """A rank that holds one stage of the network."""

    def share(self, network: torch.nn.Module) -> Any:
        """This rank's stage; the schedule is made around it."""
        if self.job["precision"] != "fp32":
            raise ValueError(f"torch-pp trains in fp32, not in {self.job['precision']}")
        own = cut(network, self.world)[self.rank]
        stage = PipelineStage(own, self.rank, self.world, self.device)
        together = self.job["batch_per_rank"] * self.world
        count = math.gcd(together, MICRO_BATCHES_PER_STAGE * self.world)
        self.schedule = Schedule1F1B(
            stage, count, loss_fn=lambda out, wanted: self.loss_of(out, wanted)
        )
        return own

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        """The batches of all ranks together, when they share the work of each."""
        if not self.synchronises:
            return super().batches(inputs, targets)
        if len(targets) != 1:
            raise ValueError(f"a pipeline reads one target, not {len(targets)}")
        return global_batches(self.job, self.world, inputs, targets)

    def step(self, index: int) -> torch.Tensor:
        """One optimiser step; the loss, which only the last stage knows."""
        if not self.synchronises:
            return super().step(index)
        inputs, targets = self.fetch(index)
        self.optimiser.zero_grad()
        losses: list[torch.Tensor] = []
        fed = inputs if self.rank == 0 else []
        last = {"target": targets[0], "losses": losses} if self.rank == self.world - 1 else {}
        self.schedule.step(*fed, **last, return_outputs=False)
        self.optimiser.step()
        return torch.stack(losses).mean() if losses else torch.zeros((), device=self.device)

    def loss_value(self, handle: Any) -> float:
        """The last stage tells the others, after the steps."""
        told = handle.detach().clone()
        if self.synchronises:
            dist.broadcast(told, src=self.world - 1)
        return float(told)

    def parts(self) -> dict:
        """Only what a rank alone can do: stages cannot but talk."""
        return {} if self.synchronises else super().parts()


if __name__ == "__main__":
    run_worker(PipelineTraining, versions)
