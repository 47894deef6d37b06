"""Trains one job with PyTorch's pipeline parallelism: one stage per rank (1F1B schedule).

    python torch_pp.py JOB.json EVENTS.jsonl

The global batch passes through the stages in micro-batches; the gradients are those of
the mean loss. Batch statistics (`batch_norm`) are those of a micro-batch.
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
        """Return this rank's stage and create the schedule."""
        if self.job["precision"] != "fp32":
            raise ValueError(f"torch-pp only supports fp32, not {self.job['precision']}")
        own = cut(network, self.world)[self.rank]
        stage = PipelineStage(own, self.rank, self.world, self.device)
        global_batch = self.job["batch_per_rank"] * self.world
        # The number of micro-batches must divide the global batch.
        count = math.gcd(global_batch, MICRO_BATCHES_PER_STAGE * self.world)
        self.schedule = Schedule1F1B(
            stage, count, loss_fn=lambda out, wanted: self.loss_of(out, wanted)
        )
        return own

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        """Global batches: all ranks work on the same samples."""
        if not self.synchronises:
            return super().batches(inputs, targets)
        if len(targets) != 1:
            raise ValueError(f"torch-pp supports one target, not {len(targets)}")
        return global_batches(self.job, self.world, inputs, targets)

    def step(self, index: int) -> torch.Tensor:
        """Run one optimiser step; return the loss, known to the last stage only."""
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
        """Broadcast the losses from the last stage after the steps."""
        loss = handle.detach().clone()
        if self.synchronises:
            dist.broadcast(loss, src=self.world - 1)
        return float(loss)

    def parts(self) -> dict:
        """Return no part that needs communication between stages."""
        return {} if self.synchronises else super().parts()


if __name__ == "__main__":
    run_worker(PipelineTraining, versions)
