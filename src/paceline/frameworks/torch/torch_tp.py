"""Trains one job with PyTorch's tensor parallelism: each rank holds a shard of every matrix.

    python torch_tp.py JOB.json EVENTS.jsonl

Linear layers are split alternately by columns and by rows, so that two layers need one all-reduce
(Megatron-LM). Every rank computes the global batch and its loss.
"""

from typing import Any

import torch
from stepping import run_worker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch_devices import versions
from torch_training import TorchTraining, global_batches


class TensorParallelTraining(TorchTraining):
    """A rank with its shard of every linear layer."""

    def share(self, network: torch.nn.Module) -> Any:
        """Split the linear layers in pairs: columns, then rows."""
        linear = [name for name, module in network.named_modules() if _splits(module, self.world)]
        # An odd layer stays whole: a column split alone would need a gather of its own.
        pairs = linear[: len(linear) // 2 * 2]
        if not pairs:
            raise ValueError(f"no pair of linear layers is divisible by {self.world} ranks")
        styles = {
            name: RowwiseParallel() if number % 2 else ColwiseParallel()
            for number, name in enumerate(pairs)
        }
        mesh = init_device_mesh(self.device.type, (self.world,))
        return parallelize_module(network, mesh, styles)

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        """Global batches: all ranks work on the same samples."""
        if not self.synchronises:
            return super().batches(inputs, targets)
        return global_batches(self.job, self.world, inputs, targets)

    def parts(self) -> dict:
        """Return no part that needs communication inside layers."""
        return {} if self.synchronises else super().parts()


def _splits(module: torch.nn.Module, world: int) -> bool:
    """Return whether both dimensions of a layer are divisible by the number of ranks."""
    linear = isinstance(module, torch.nn.Linear)
    return linear and module.in_features % world == 0 and module.out_features % world == 0


if __name__ == "__main__":
    run_worker(TensorParallelTraining, versions)
