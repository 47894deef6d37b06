"""Trains one job with PyTorch's fully sharded data parallelism (FSDP2).

    python torch_fsdp.py JOB.json EVENTS.jsonl

Weights, gradients and optimiser state are split over ranks. Modules with many weights are sharded
each on its own, so that gathering one overlaps computing another; the rest goes together.
"""

from typing import Any

import torch
import torch.distributed as dist
from stepping import run_worker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch_devices import versions
from torch_training import TorchTraining

OWN_SHARD_PARAMETERS = 1_000_000
"""A module with at least so many weights is gathered and scattered by itself."""


class FsdpTraining(TorchTraining):
    """A rank that holds its shard of everything."""

    def share(self, network: torch.nn.Module) -> Any:
        """The network in shards; its gradients come as means over ranks."""
        mesh = init_device_mesh(self.device.type, (self.world,))
        for module in network.modules():
            leaf = next(module.children(), None) is None
            if leaf and sum(p.numel() for p in module.parameters()) >= OWN_SHARD_PARAMETERS:
                fully_shard(module, mesh=mesh)
        return fully_shard(network, mesh=mesh)

    def parts(self) -> dict:
        """Only the collective: no part of the network is whole enough to run by itself."""
        if not self.synchronises:
            return super().parts()
        per_rank = -(-self.parameters // self.world)
        shard = torch.zeros(per_rank, device=self.device)
        whole = torch.zeros(per_rank * self.world, device=self.device)

        def collective(_: int) -> None:
            dist.all_gather_into_tensor(whole, shard)
            dist.reduce_scatter_tensor(shard, whole)

        return {"collective": collective}


if __name__ == "__main__":
    run_worker(FsdpTraining, versions)
