"""Trains one job with PyTorch, alone or under DistributedDataParallel, and times its steps.

Started as a script, once per rank, with PyTorch and the standard library only:

    python torch_ddp.py JOB.json EVENTS.jsonl

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are in the environment. `runtime/protocol.md`
describes the job and the events. A plain job only reads a clock in the step; an instrumented one
adds hooks that time phases, buckets and layers, at a small cost.
"""

from collections.abc import Callable
from typing import Any

import torch
from channel import Events
from stepping import run_worker
from torch.nn.parallel import DistributedDataParallel
from torch_devices import versions
from torch_probes import Probes
from torch_training import TorchTraining

INSTRUMENTS = ("none", "difference", "phases", "layers")


class DdpTraining(TorchTraining):
    """A rank under DistributedDataParallel, with the probes of the job."""

    whole_gradients = False

    def __init__(self, job: dict, rank: int, world: int) -> None:
        super().__init__(job, rank, world)
        hooks = job["instrument"] if job["instrument"] in ("phases", "layers") else "none"
        self.probes = Probes(self, hooks)
        if self.probes.active:
            self.step = self.probes.step

    def share(self, network: torch.nn.Module) -> Any:
        bucket = self.job["bucket_bytes"]
        return DistributedDataParallel(
            network,
            bucket_cap_mb=bucket / 2**20 if bucket else None,
            broadcast_buffers=self.job["broadcast_buffers"],
            # Emulated layers return no gradients: DDP sends the buckets that exist already.
            gradient_as_bucket_view=self.emulation is not None,
        )

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """Parts run under ``no_sync``: DDP's hooks stay on the parameters of the bare network."""
        parts = super().parts()
        if not self.synchronises:
            return parts
        return {name: self.without_sync(part) for name, part in parts.items()}

    def without_sync(self, part: Callable[[int], Any]) -> Callable[[int], Any]:
        """Run a part without DDP's gradient averaging."""

        def run(index: int) -> Any:
            with self.model.no_sync():
                return part(index)

        return run

    def report(self, events: Events) -> None:
        super().report(events)
        self.probes.report(events)


if __name__ == "__main__":
    run_worker(DdpTraining, versions, INSTRUMENTS)
