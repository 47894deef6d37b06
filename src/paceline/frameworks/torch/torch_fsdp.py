"""Trains one job with PyTorch's fully sharded data parallelism (FSDP2).

    python torch_fsdp.py JOB.json EVENTS.jsonl

Weights, gradients and optimiser state are sharded over ranks. Each block of the network (each
layer, if it has no blocks) is one FSDP unit, as predictions assume: gathering one unit overlaps
with computing another. Weights that several blocks share belong to the root unit.
"""

from typing import Any

import torch
import torch.distributed as dist
from layer_graph import parameter_owners
from stepping import run_worker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch_devices import versions
from torch_emulated import ScatterAhead
from torch_training import TorchTraining


class FsdpTraining(TorchTraining):
    """A rank with its shard of weights, gradients and optimiser state."""

    def share(self, network: torch.nn.Module) -> Any:
        """Shard the network; its gradients are means over ranks."""
        mesh = init_device_mesh(self.device.type, (self.world,))
        units = [fully_shard(unit, mesh=mesh) for unit in self.units(network)]
        whole = fully_shard(network, mesh=mesh)
        if self.emulation is not None:
            self.overlap([unit[0] for unit in units], whole)
        return whole

    def units(self, network: Any) -> list[list[torch.nn.Module]]:
        """Modules with their own weights of each block, in the order they run."""
        owners = parameter_owners(self.job["graph"])
        lent = {
            name
            for reader, own in owners.items()
            for owner in own.values()
            if owner != reader
            for name in (owner, reader)
        }
        modules = dict(network.node_modules())
        units = [
            [
                modules[name]
                for name in block
                if name in modules
                and name not in lent
                and any(True for _ in modules[name].parameters())
            ]
            for block in self.job["blocks"]
        ]
        return [unit for unit in units if unit]

    def overlap(self, units: list[Any], whole: Any) -> None:
        """Overlap messages with the work of an emulated device, as GPU streams do.

        On CPUs FSDP would wait for each message where it is issued. A GPU stream starts the next
        gather before the previous one has ended; a host that waits cannot, so it prefetches two
        units.
        """
        scatter = ScatterAhead(self.emulation)
        whole._set_unshard_async_op(True)
        for number, unit in enumerate(units):
            unit.set_modules_to_forward_prefetch(units[number + 1 : number + 3])
            unit.set_modules_to_backward_prefetch(units[max(0, number - 2) : number][::-1])
        for unit in (*units, whole):
            unit.set_custom_reduce_scatter(scatter)

    def parts(self) -> dict:
        """Return the collective only: a sharded network cannot run without communication."""
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
